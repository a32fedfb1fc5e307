"""Layers of pure state-space models, and of Zamba2, whose attention blocks are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._dimensions import NotModelled
from vlogcheck.budget.weights._mixers import Ssm, mamba1, mamba2

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["mamba1_layer", "mamba2_layer", "zamba2_layer"]


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
        rank=-(-model.hidden_size // 16) if rank in (None, "auto") else values.need("time_step_rank", minimum=1),
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
