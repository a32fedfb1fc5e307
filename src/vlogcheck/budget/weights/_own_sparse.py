"""Mixtures whose layers have an arrangement of their own: AFMoE, DBRX, HunYuan, LongCat, MiMo-V2, MiniMax-01, Step-3."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.weights._attention import gqa, latent, per_layer
from vlogcheck.budget.weights._kinds import two_norms
from vlogcheck.budget.weights._mlp import Mixture, dense, is_sparse, moe, width
from vlogcheck.budget.weights._rope import rope_cache

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = [
    "afmoe_layer", "dbrx_layer", "hunyuan_moe_layer", "longcat_layer", "mimo_v2_layer", "minimax_01_layer",
    "step3_layer", "step3p5_layer",
]  # fmt: skip


def _expert_width(model: ModelConfig) -> int:
    inner = model.moe_intermediate_size
    if inner is None:
        raise ModelConfigError("config lacks 'moe_intermediate_size'")
    return inner


def _kind(model: ModelConfig, index: int) -> str:
    kinds = model.layer_types
    return kinds[index] if kinds is not None and index < len(kinds) else "full_attention"


def afmoe_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """AFMoE: attention with an output gate, positions in sliding layers only, four norms."""
    heads = model.num_attention_heads * model.head_dim
    gqa(build, model, traits, index, rope=_kind(model, index) == "sliding_attention")
    build.column("attention", "self_attn.gate_proj", model.hidden_size, [heads])
    if model.num_experts > 0 and index >= (model.values.integer("num_dense_layers") or 0):
        inner = _expert_width(model)
        moe(build, model, traits, Mixture(model.num_experts, inner, inner * model.num_shared_experts))
    else:
        dense(build, model, traits, width(model, index))
    for _ in range(2):
        two_norms(build, model, traits)


def dbrx_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """DBRX: sizes of the mixture in an object of their own, norms without bias in the config but with one in vLLM."""
    inner = model.values.object("ffn_config")
    gqa(build, model, traits, index)
    sizes = Mixture(inner.need("moe_num_experts", minimum=1), inner.need("ffn_hidden_size", minimum=1), 0)
    moe(build, model, traits, sizes, name="ffn")
    two_norms(build, model, traits)


def hunyuan_moe_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """HunYuan: a mixture in every layer; widths and shared experts may be given layer by layer."""
    gqa(build, model, traits, index)
    dense_width = width(model, index)
    inner = per_layer(model, "moe_intermediate_size", index, model.moe_intermediate_size or dense_width)
    shared = 0
    if model.values.flag("use_mixed_mlp_moe"):
        count = (
            per_layer(model, "num_shared_expert", index, model.values.integer("num_shared_expert") or 1)
            if not (isinstance(model.text.get("num_shared_expert"), list))
            else per_layer(model, "num_shared_expert", index, 1)
        )
        shared = count * dense_width
    if model.num_experts > 1:
        moe(build, model, traits, Mixture(model.num_experts, inner, shared), name="mlp")
    else:
        dense(build, model, traits, dense_width)
    two_norms(build, model, traits)


def longcat_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """LongCat-Flash: two latent attentions and two dense parts around one mixture, some of whose experts are empty."""
    values = model.values
    for _ in range(2):
        latent(build, model, traits, index)
    for _ in range(2):
        two_norms(build, model, traits)
    for number in range(2):
        dense(build, model, traits, width(model, index), name=f"mlps.{number}")
    empty = values.integer("zero_expert_num") or 0
    inner = values.need("expert_ffn_hidden_size", "moe_intermediate_size", minimum=1)
    build.plain("router", model.hidden_size, model.num_experts + empty, item=4)
    build.add("router", model.num_experts + empty, 4)
    build.experts(model.num_experts, model.hidden_size, inner, name="mlp.experts")


def mimo_v2_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """MiMo-V2: sliding layers with heads, head sizes and sinks of their own; values narrower than keys."""
    values = model.values
    pattern = values.integers("hybrid_layer_pattern") or []
    slides = index < len(pattern) and pattern[index] == 1
    prefix = "swa_" if slides else ""
    heads = values.integer(f"{prefix}num_attention_heads", minimum=1) or model.num_attention_heads
    kv_heads = values.integer(f"{prefix}num_key_value_heads", minimum=1) or model.num_kv_heads
    key = values.integer(f"{prefix}head_dim", minimum=1) or model.head_dim
    value = values.integer(f"{prefix}v_head_dim", minimum=1) or key
    mine = build.cut(heads, "attention heads")
    kept = build.cut(kv_heads, "key/value heads") if kv_heads >= build.share.tp else 1
    bias = values.flag("attention_bias")
    build.linear(
        "attention", "self_attn.qkv_proj", model.hidden_size, [mine * key, kept * key, kept * value], bias=bias,
        pieces=("q_proj", "k_proj", "v_proj"),
    )  # fmt: skip
    build.row("attention", "self_attn.o_proj", heads * value, model.hidden_size)
    if slides and values.flag("add_swa_attention_sink_bias"):
        build.add("attention", mine)
    rope_cache(build, model, traits, key, index)
    build.attention_scales()
    if model.num_experts > 0 and is_sparse(model, index):
        item = build.item if (values.text("moe_router_dtype") or "float32") in {"bfloat16", "float16"} else 4
        moe(build, model, replace(traits, router_item=item), Mixture(model.num_experts, _expert_width(model), 0))
    else:
        dense(build, model, traits, width(model, index))
    two_norms(build, model, traits)


def minimax_01_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """MiniMax-Text-01 and M1: lightning attention with an output gate, or attention; then a mixture."""
    values = model.values
    kinds = values.integers("attn_type_list", "decoder_attention_types")
    full = _kind(model, index) == "full_attention" if kinds is None else index < len(kinds) and kinds[index] == 1
    if full:
        gqa(build, model, traits, index)
    else:
        inner = model.head_dim * model.num_attention_heads
        build.column("attention", "self_attn.qkv_proj", model.hidden_size, [3 * inner])
        build.column("attention", "self_attn.output_gate", model.hidden_size, [inner])
        build.row("attention", "self_attn.out_proj", inner, model.hidden_size)
        build.norm(build.cut(inner, "lightning attention"))
    if model.num_experts > 1:
        inner = model.intermediate_size or 0
        moe(build, model, traits, Mixture(model.num_experts, inner, 0), name="block_sparse_moe")
    else:
        dense(build, model, traits, width(model, index))
    two_norms(build, model, traits)
    shared = per_layer(model, "shared_intermediate_size", index, 0) or (
        0
        if isinstance(model.text.get("shared_intermediate_size"), list)
        else values.integer("shared_intermediate_size") or 0
    )
    if shared:
        dense(build, model, traits, shared, part="shared_experts", name="shared_mlp")
        build.plain("router", model.hidden_size, 1, item=4)


def _step_sparse(model: ModelConfig, index: int) -> bool:
    listed = model.values.text("moe_layers_enum")
    if listed is None:
        return index >= 1
    return str(index) in {part.strip() for part in listed.split(",")}


def _step_mixture(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    if _step_sparse(model, index):
        shared = model.values.need("share_expert_dim", minimum=1)
        moe(build, model, traits, Mixture(model.num_experts, _expert_width(model), shared), name="moe")
    else:
        dense(build, model, traits, width(model, index))
    two_norms(build, model, traits)


def step3_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Step-3: queries of low rank and one key/value head, projected whole on every rank."""
    heads, head = model.num_attention_heads, model.head_dim
    rank = model.values.integer("share_q_dim", minimum=1) or head
    build.linear(
        "attention", "self_attn.qkv_proj", model.hidden_size, [rank + 2 * head], pieces=("q_proj", "k_proj", "v_proj")
    )
    build.row("attention", "self_attn.o_proj", heads * head, model.hidden_size)
    build.norm(rank)
    build.column("attention", "self_attn.wq", rank, [heads * head])
    rope_cache(build, model, traits, head, index)
    build.attention_scales()
    _step_mixture(build, model, traits, index)


def step3p5_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Step-3.5: sliding layers with more query heads, a gate per head."""
    other = model.values.object("attention_other_setting")
    heads = model.num_attention_heads
    if _kind(model, index) == other.text("attention_type"):
        heads = other.integer("num_attention_heads", minimum=1) or heads
    elif _kind(model, index) == "sliding_attention":
        heads = model.values.integer("num_sliding_attention_heads", minimum=1) or heads
    gqa(build, model, traits, index, heads=heads)
    if model.values.flag("use_head_wise_attn_gate"):
        build.column("attention", "self_attn.g_proj", model.hidden_size, [heads])
    _step_mixture(build, model, traits, index)
