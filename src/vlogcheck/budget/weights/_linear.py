"""Layers of models that mix attention with linear attention or short convolutions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.weights._attention import gqa, latent
from vlogcheck.budget.weights._kinds import STATE_KINDS, layer_kind, two_norms
from vlogcheck.budget.weights._mixers import delta_net, kimi_delta, short_conv
from vlogcheck.budget.weights._mlp import dense, feed_forward, is_sparse, mixture, moe, width

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["bailing_hybrid_layer", "kimi_linear_layer", "lfm2_layer", "qwen_gdn_layer"]


def qwen_gdn_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Qwen3-Next and Qwen3.5: gated delta net or gated attention, then a mixture or a dense layer."""
    values = model.values
    if layer_kind(model, index) == "linear_attention":
        delta_net(
            build,
            model.hidden_size,
            key_heads=values.need("linear_num_key_heads", minimum=1),
            value_heads=values.need("linear_num_value_heads", minimum=1),
            key_dim=values.need("linear_key_head_dim", minimum=1),
            value_dim=values.need("linear_value_head_dim", minimum=1),
            kernel=values.need("linear_conv_kernel_dim", minimum=1),
            interleaved="qwen3_next" in (model.text_model_type or model.model_type),
        )
    else:
        gqa(build, model, traits, index)
    feed_forward(build, model, traits, index)
    two_norms(build, model, traits)


def kimi_linear_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Kimi-Linear: delta attention or latent attention, then a mixture or a dense layer."""
    linear = model.values.object("linear_attn_config")
    listed = linear.integers("kda_layers") or []
    if index + 1 in listed:
        kimi_delta(
            build,
            model.hidden_size,
            heads=linear.need("num_heads", minimum=1),
            head=linear.need("head_dim", minimum=1),
            kernel=linear.integer("short_conv_kernel_size", minimum=1) or 4,
        )
    else:
        latent(build, model, traits, index, rope=not model.values.flag("mla_use_nope"))
    sizes = mixture(model)
    if sizes is not None and is_sparse(model, index):
        item = 4 if build.release.since("0.27.1") else build.item
        moe(build, model, replace(traits, correction_item=item), sizes, name="block_sparse_moe")
    else:
        dense(build, model, traits, width(model, index))
    two_norms(build, model, traits)


def lfm2_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """LFM2: short convolution or attention, then a dense layer or a mixture."""
    values = model.values
    if layer_kind(model, index) in STATE_KINDS:
        short_conv(
            build,
            model.hidden_size,
            inner=values.integer("conv_dim", minimum=1) or model.hidden_size,
            kernel=values.integer("conv_L_cache", minimum=1) or 3,
            bias=values.flag("conv_bias"),
        )
    else:
        gqa(build, model, traits, index)
    sizes = mixture(model)
    if sizes is not None and is_sparse(model, index):
        moe(build, model, traits, sizes, name="feed_forward")
    else:
        dense(build, model, traits, _lfm2_width(model), name="feed_forward")
    two_norms(build, model, traits)


def _lfm2_width(model: ModelConfig) -> int:
    values = model.values
    inner = values.integer("block_ff_dim") or width(model, 0)
    if values.flag("block_auto_adjust_ff_dim") and model.num_experts == 0:
        inner = 2 * inner // 3
        factor = values.number("block_ffn_dim_multiplier")
        if factor is not None:
            inner = int(factor * inner)
        multiple = values.integer("block_multiple_of", minimum=1) or 256
        inner = -(-inner // multiple) * multiple
    return inner


def bailing_hybrid_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Ring-2.5: lightning attention with a gate and a grouped norm, every few layers latent attention; mixtures."""
    values = model.values
    every = values.integer("layer_group_size")
    every = 1 if every is None else every
    if every > 0 and (index + 1) % every:
        heads, head = model.num_attention_heads, model.head_dim
        gqa(build, model, traits, index, kv_heads=heads)
        build.column("attention", "self_attn.g_proj", model.hidden_size, [heads * head])
        build.norm(build.cut(heads * head, "lightning attention"))
    else:
        latent(build, model, replace(traits, qkv_bias=False, o_bias=False), index)
    sizes = mixture(model)
    if sizes is not None and is_sparse(model, index):
        moe(build, model, traits, replace(sizes, shared=_bailing_shared(model, sizes.inner)))
    else:
        dense(build, model, traits, width(model, index))
    two_norms(build, model, traits)


def _bailing_shared(model: ModelConfig, inner: int) -> int:
    stated = model.values.integer("moe_shared_expert_intermediate_size", minimum=1)
    return (stated or inner) * model.num_shared_experts
