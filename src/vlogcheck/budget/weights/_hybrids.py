"""Layers of models that mix attention with state layers, by how their configuration says which layer is which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.weights._attention import gqa, latent
from vlogcheck.budget.weights._build import Builder, NotModelled
from vlogcheck.budget.weights._mixers import Ssm, delta_net, kimi_delta, mamba1, mamba2, short_conv
from vlogcheck.budget.weights._mlp import Mixture, dense, is_sparse, mixture, moe, width

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._traits import Traits

__all__ = [
    "bamba_layer",
    "falcon_h1_layer",
    "granite_hybrid_layer",
    "jamba_layer",
    "kimi_linear_layer",
    "lfm2_layer",
    "mamba1_layer",
    "mamba2_layer",
    "nemotron_h_layer",
    "qwen_gdn_layer",
    "zamba2_layer",
]

_STATE = frozenset({"mamba", "linear_attention", "conv", "short_conv", "recurrent"})


def _kind(model: ModelConfig, index: int) -> str:
    kinds = model.layer_types
    if kinds is not None and index < len(kinds):
        return kinds[index]
    values = model.values
    interval = values.integer("full_attention_interval", minimum=1)
    if interval is not None:
        return "full_attention" if (index + 1) % interval == 0 else "linear_attention"
    listed = values.integers("full_attn_idxs", "attn_layer_indices")
    if listed is not None:
        return "full_attention" if index in listed else "conv"
    period = values.integer("attn_layer_period", minimum=1)
    if period is not None:
        return "full_attention" if index % period == (values.integer("attn_layer_offset") or 0) else "mamba"
    return "full_attention"


def _ssm2(model: ModelConfig) -> Ssm:
    """Mamba-2 sizes in the spelling of Bamba, Granite and Falcon-H1."""
    values = model.values
    hidden = model.hidden_size
    inner = values.integer("mamba_d_ssm") or (values.integer("mamba_expand") or 2) * hidden
    return Ssm(
        hidden,
        inner,
        values.need("mamba_d_state", minimum=1),
        values.integer("mamba_d_conv", minimum=1) or 4,
        values.flag("mamba_conv_bias", default=True),
        values.flag("mamba_proj_bias"),
        heads=values.need("mamba_n_heads", minimum=1),
        groups=values.integer("mamba_n_groups", minimum=1) or 1,
        norms=True,
    )


def _two_norms(build: Builder, model: ModelConfig, traits: Traits) -> None:
    build.norm(model.hidden_size, traits.norm)
    build.norm(model.hidden_size, traits.norm)


def jamba_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Jamba: Mamba-1 or attention, then a dense layer or a mixture."""
    values = model.values
    if _kind(model, index) in _STATE:
        rank = values.integer("mamba_dt_rank") if values.data.get("mamba_dt_rank") != "auto" else None
        sizes = Ssm(
            model.hidden_size,
            (values.integer("mamba_expand", minimum=1) or 2) * model.hidden_size,
            values.integer("mamba_d_state", minimum=1) or 16,
            values.integer("mamba_d_conv", minimum=1) or 4,
            values.flag("mamba_conv_bias", default=True),
            values.flag("mamba_proj_bias"),
            rank=rank or -(-model.hidden_size // 16),
            norms=True,
        )
        mamba1(build, sizes)
    else:
        gqa(build, model, traits, index, rope=False)
    sparse = mixture(model)
    if sparse is not None and sparse.count > 1 and is_sparse(model, index):
        moe(build, model, traits, sparse, name="feed_forward")
    else:
        dense(build, model, traits, width(model, index), name="feed_forward")
    _two_norms(build, model, traits)


def falcon_h1_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Falcon-H1: attention and Mamba-2 side by side in every layer."""
    gqa(build, model, traits, index)
    sizes = replace(_ssm2(model), norms=model.values.flag("mamba_rms_norm"))
    mamba2(build, sizes)
    groups = sizes.groups if sizes.groups % build.share.tp == 0 else build.share.tp
    multipliers = 2 * sizes.inner + 2 * groups * sizes.state + sizes.heads
    build.buffer("mamba", build.cut(multipliers, "Mamba projection") * build.item)
    dense(build, model, traits, width(model, index), name="feed_forward")
    _two_norms(build, model, traits)


def bamba_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Bamba: Mamba-2 or attention, then a dense layer."""
    if _attends(model, index):
        gqa(build, model, traits, index)
    else:
        mamba2(build, _ssm2(model))
    dense(build, model, traits, width(model, index), name="feed_forward")
    _two_norms(build, model, traits)


def _attends(model: ModelConfig, index: int) -> bool:
    return _kind(model, index) not in _STATE


def granite_hybrid_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Granite 4: Mamba-2 or attention, then a mixture with a shared expert, or the shared expert alone."""
    if _attends(model, index):
        gqa(build, model, traits, index, rope=model.values.text("position_embedding_type") == "rope")
    else:
        mamba2(build, _ssm2(model))
    shared = model.values.integer("shared_intermediate_size") or 0
    count = model.num_experts
    if count > 0:
        inner = model.intermediate_size
        if inner is None:
            raise ModelConfigError("config lacks 'intermediate_size'")
        moe(build, model, traits, Mixture(count, inner, 0), name="block_sparse_moe")
    if shared:
        dense(build, model, traits, shared, part="shared_experts", name="shared_mlp")
    _two_norms(build, model, traits)


def mamba1_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Mamba and Falcon-Mamba: one mixer and one norm."""
    values = model.values
    rank = values.data.get("time_step_rank")
    inner = (
        values.integer("intermediate_size", "d_inner") or (values.integer("expand", minimum=1) or 2) * model.hidden_size
    )
    sizes = Ssm(
        model.hidden_size,
        inner,
        values.integer("state_size", minimum=1) or 16,
        values.integer("conv_kernel", minimum=1) or 4,
        values.flag("use_conv_bias", default=True),
        values.flag("use_bias"),
        rank=-(-model.hidden_size // 16) if rank in {None, "auto"} else values.need("time_step_rank", minimum=1),
    )
    mamba1(build, sizes)
    build.norm(model.hidden_size)


def mamba2_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Mamba-2 and Codestral-Mamba: one mixer and one norm."""
    values = model.values
    inner = (values.integer("expand", minimum=1) or 2) * model.hidden_size
    sizes = Ssm(
        model.hidden_size,
        inner,
        values.integer("state_size", minimum=1) or 128,
        values.integer("conv_kernel", minimum=1) or 4,
        values.flag("use_conv_bias", default=True),
        values.flag("use_bias"),
        heads=values.need("num_heads", minimum=1),
        groups=values.integer("n_groups", minimum=1) or 1,
        norms=values.flag("rms_norm", default=True),
    )
    mamba2(build, sizes, name="mixer")
    build.norm(model.hidden_size)


def zamba2_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Zamba2: Mamba-2 everywhere; hybrid layers pass a shared transformer block with adapters of their own."""
    if not (build.share.first and build.share.last):
        raise NotModelled("Zamba2 does not run in pipeline stages")
    values = model.values
    hidden = model.hidden_size
    hybrid = values.integers("hybrid_layer_ids")
    if hybrid is None:
        hybrid = [i for i, kind in enumerate(model.layer_types or ()) if kind == "hybrid"]
    if index in hybrid:
        _zamba2_block(build, model, hybrid.index(index))
        build.plain("attention", hidden, hidden)
    inner = (values.integer("mamba_expand", minimum=1) or 2) * hidden
    sizes = Ssm(
        hidden,
        inner,
        values.need("mamba_d_state", minimum=1),
        values.integer("mamba_d_conv", minimum=1) or 4,
        values.flag("use_conv_bias", default=True),
        values.flag("add_bias_linear"),
        heads=values.need("n_mamba_heads", minimum=1),
        groups=values.integer("mamba_ngroups", minimum=1) or 1,
        norms=True,
    )
    mamba2(build, sizes)
    build.norm(hidden)


def _zamba2_block(build: Builder, model: ModelConfig, order: int) -> None:
    """Add the shared block where it is first used, and the low-rank adapters of this use."""
    values = model.values
    hidden, width_ = model.hidden_size, model.intermediate_size or 4 * model.hidden_size
    attention = values.integer("attention_hidden_size") or 2 * hidden
    bias = values.flag("add_bias_linear")
    if order < (values.integer("num_mem_blocks", minimum=1) or 1):
        build.column("attention", "self_attn.qkv_proj", attention, [attention] * 3)
        build.row("attention", "self_attn.o_proj", attention, hidden)
        build.column("mlp", "feed_forward.gate_up_proj", hidden, [width_, width_], bias=bias)
        build.row("mlp", "feed_forward.down_proj", width_, hidden, bias=bias)
        build.norm(attention)
        build.norm(hidden)
    rank = values.integer("adapter_rank", minimum=1) or 128
    build.column("mlp", "adapter.A", hidden, [rank])
    build.column("mlp", "adapter.B", rank, [width_, width_])
    if values.flag("use_shared_attention_adapter"):
        for _ in range(3):
            build.column("attention", "adapter.A", attention, [rank])
            build.column("attention", "adapter.B", rank, [attention])
    build.attention_scales()


def nemotron_h_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Nemotron-H: one sublayer per layer, named by a letter of ``hybrid_override_pattern``."""
    values = model.values
    pattern = values.text("hybrid_override_pattern")
    names = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
    if pattern is None:
        kinds = model.layer_types
        if kinds is None:
            raise ModelConfigError("config lacks 'hybrid_override_pattern'")
        pattern = "".join(names.get(kind, "?") for kind in kinds)
    letter = pattern[index] if index < len(pattern) else "?"
    if letter == "M":
        sizes = Ssm(
            model.hidden_size,
            values.need("mamba_num_heads", minimum=1) * values.need("mamba_head_dim", minimum=1),
            values.need("ssm_state_size", minimum=1),
            values.integer("conv_kernel", minimum=1) or 4,
            values.flag("use_conv_bias", default=True),
            values.flag("use_bias"),
            heads=values.need("mamba_num_heads", minimum=1),
            groups=values.integer("n_groups", minimum=1) or 1,
            norms=True,
        )
        mamba2(build, sizes, name="mixer")
    elif letter == "*":
        gqa(build, model, traits, index, rope=False)
    elif letter == "-":
        dense(build, model, traits, _nemotron_width(model, pattern, index), name="mixer")
    elif letter == "E":
        _nemotron_moe(build, model, traits)
    else:
        raise NotModelled(f"layer {index} of the pattern is {letter!r}")
    build.norm(model.hidden_size)


def _nemotron_width(model: ModelConfig, pattern: str, index: int) -> int:
    listed = model.text.get("intermediate_size")
    if isinstance(listed, list):
        sizes = model.values.integers("intermediate_size") or [0]
        return sizes[0] if len(sizes) == 1 else sizes[min(pattern[:index].count("-"), len(sizes) - 1)]
    return width(model, index)


def _nemotron_moe(build: Builder, model: ModelConfig, traits: Traits) -> None:
    sizes = mixture(model)
    if sizes is None:
        raise ModelConfigError("config lacks 'n_routed_experts'")
    small = model.values.integer("moe_latent_size")
    shared = model.num_shared_experts * (model.values.integer("moe_shared_expert_intermediate_size") or sizes.inner)
    moe(build, model, traits, replace(sizes, shared=shared), name="mixer", order=("router", "shared"))
    if small is not None:
        for name, n_in, n_out in (
            ("fc1_latent_proj", model.hidden_size, small),
            ("fc2_latent_proj", small, model.hidden_size),
        ):
            build.linear("mlp", f"mixer.{name}", n_in, [n_out], bias=traits.mlp_bias)
    build.experts(sizes.count, small or model.hidden_size, sizes.inner, gated=False, name="mixer.experts")


def qwen_gdn_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Qwen3-Next and Qwen3.5: gated delta net or gated attention, then a mixture or a dense layer."""
    values = model.values
    if _kind(model, index) == "linear_attention":
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
    sizes = mixture(model)
    if sizes is not None and is_sparse(model, index):
        moe(build, model, traits, sizes)
    else:
        dense(build, model, traits, width(model, index))
    _two_norms(build, model, traits)


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
    _two_norms(build, model, traits)


def lfm2_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """LFM2: short convolution or attention, then a dense layer or a mixture."""
    values = model.values
    if _kind(model, index) in _STATE:
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
    _two_norms(build, model, traits)


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
