"""Layers with an arrangement of their own: Llama 4, Gemma 4, IQuest LoopCoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.weights._attention import gqa, per_layer
from vlogcheck.budget.weights._mlp import Mixture, dense, is_sparse, moe, width

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["gemma4_layer", "llama4_layer", "loop_coder_layer"]


def llama4_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Llama 4: mixtures with one shared expert of the same width, dense layers wider."""
    gqa(build, model, traits, index)
    inner = model.intermediate_size
    if inner is None:
        raise ModelConfigError("config lacks 'intermediate_size'")
    if model.num_experts > 0 and is_sparse(model, index):
        moe(
            build,
            model,
            traits,
            Mixture(model.num_experts, inner, inner),
            name="feed_forward",
            order=("router", "experts", "shared"),
        )
    else:
        dense(build, model, traits, model.values.integer("intermediate_size_mlp") or inner, name="feed_forward")
    for _ in range(2):
        build.norm(model.hidden_size)


def gemma4_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Gemma 4: head sizes per layer kind, layers that reuse earlier keys, inputs per layer."""
    values = model.values
    kinds = model.layer_types
    full = kinds is not None and index < len(kinds) and kinds[index] == "full_attention"
    wide = full and not values.has("per_layer_config")
    head = (values.integer("global_head_dim") or 512) if wide else model.head_dim
    same = wide and values.flag("attention_k_eq_v", default=True)
    kv_heads = values.integer("num_global_key_value_heads") if same else None
    shared = values.integer("num_kv_shared_layers") or 0
    reuses = shared > 0 and index >= model.num_layers - shared
    hidden = model.hidden_size
    _gemma4_attention(
        build,
        model,
        traits,
        index,
        per_layer(model, "head_dim", index, head),
        per_layer(model, "num_key_value_heads", index, kv_heads or model.num_kv_heads),
        reuses=reuses,
    )
    inner = width(model, index) * (2 if reuses and values.flag("use_double_wide_mlp") else 1)
    dense(build, model, traits, inner)
    for _ in range(4):
        build.norm(hidden)
    build.buffer("norms", build.item)
    if model.num_experts > 0:
        # the mixture stands beside the dense layer, with a scaled router and norms of its own
        build.plain("router", hidden, model.num_experts)
        build.add("router", hidden)
        build.add("router", model.num_experts)
        build.buffer("router", build.item)
        build.experts(model.num_experts, hidden, _expert_width(model), name="moe.experts")
        for _ in range(3):
            build.norm(hidden)
    narrow = values.integer("hidden_size_per_layer_input") or 0
    if narrow:
        build.plain("mlp", hidden, narrow)
        build.plain("mlp", narrow, hidden)
        build.norm(hidden)


def _expert_width(model: ModelConfig) -> int:
    inner = model.moe_intermediate_size or model.values.integer("expert_intermediate_size", minimum=1)
    if inner is None:
        raise ModelConfigError("config lacks 'moe_intermediate_size'")
    return inner


def _gemma4_attention(
    build: Builder, model: ModelConfig, traits: Traits, index: int, head: int, kv_heads: int, *, reuses: bool
) -> None:
    if not reuses:
        gqa(build, model, traits, index, head=head, kv_heads=kv_heads)
        return
    heads = model.num_attention_heads
    build.column("attention", "self_attn.q_proj", model.hidden_size, [heads * head], bias=traits.qkv_bias)
    build.row("attention", "self_attn.o_proj", heads * head, model.hidden_size, bias=traits.o_bias)
    build.norm(head)
    build.attention_scales()


def loop_coder_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """LoopCoder: a plain decoder layer and the gate between its rounds."""
    heads = model.num_attention_heads
    gqa(build, model, traits, index)
    dense(build, model, traits, width(model, index))
    for _ in range(2):
        build.norm(model.hidden_size)
    build.column("attention", "gate_proj", model.hidden_size // heads, [heads], bias=True)
