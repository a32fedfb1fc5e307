"""Tensors of layers that keep a state instead of keys and values: Mamba, gated delta nets, short convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.budget.weights._build import Builder

__all__ = ["Ssm", "delta_net", "kimi_delta", "mamba1", "mamba2", "short_conv"]

_PART = "mamba"


@dataclass(frozen=True, slots=True)
class Ssm:
    """Sizes of a Mamba mixer, before any tensor-parallel share.

    Attributes:
        hidden: width of the residual stream.
        inner: width inside the mixer.
        state: state elements per channel.
        kernel: length of the convolution.
        conv_bias: bias on the convolution.
        bias: bias on the projections.
        rank: rank of the time-step projection (Mamba-1).
        heads: heads (Mamba-2).
        groups: groups of B and C (Mamba-2).
        norms: whether norms with weights are inside the mixer.

    """

    hidden: int
    inner: int
    state: int
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    rank: int = 0
    heads: int = 0
    groups: int = 1
    norms: bool = False


def mamba1(build: Builder, sizes: Ssm) -> None:
    """Add a Mamba-1 mixer (mamba_mixer.py); its projections are never quantised."""
    inner = build.cut(sizes.inner, "Mamba width")
    build.add(_PART, inner * sizes.kernel)
    if sizes.conv_bias:
        build.add(_PART, inner)
    build.plain(_PART, sizes.hidden, 2 * inner, bias=sizes.bias)
    build.add(_PART, inner * (sizes.rank + 2 * sizes.state))
    build.plain(_PART, sizes.rank, inner, bias=True)
    build.add(_PART, inner * sizes.state, 4)
    build.add(_PART, inner)
    build.add(_PART, inner * sizes.hidden)
    if sizes.bias:
        build.add(_PART, sizes.hidden)
    if sizes.norms:
        for width in (sizes.rank, sizes.state, sizes.state):
            build.norm(width)


def mamba2(build: Builder, sizes: Ssm, *, name: str = "mamba") -> None:
    """Add a Mamba-2 mixer (mamba_mixer2.py); groups that do not divide over the ranks are copied to each."""
    tp = build.share.tp
    inner = build.cut(sizes.inner, "Mamba width")
    heads = build.cut(sizes.heads, "Mamba heads")
    if sizes.groups % tp == 0:
        grouped = [sizes.groups // tp * sizes.state] * 2
    elif sizes.groups == 1:
        grouped = [sizes.state] * 2
    else:
        build.cut(sizes.groups, "Mamba groups")
        return
    conv = inner + sum(grouped)
    build.add(_PART, heads, 4)
    build.add(_PART, heads)
    build.add(_PART, heads)
    build.add(_PART, conv * sizes.kernel)
    if sizes.conv_bias:
        build.add(_PART, conv)
    fused = [inner, inner, *grouped, heads] if sizes.groups % tp == 0 else [2 * inner + sum(grouped) + heads]
    build.linear(_PART, f"{name}.in_proj", sizes.hidden, fused, bias=sizes.bias)
    build.linear(_PART, f"{name}.out_proj", inner, [sizes.hidden], bias=sizes.bias)
    if sizes.norms:
        build.norm(inner)


def delta_net(
    build: Builder,
    hidden: int,
    *,
    key_heads: int,
    value_heads: int,
    key_dim: int,
    value_dim: int,
    kernel: int,
    interleaved: bool,
) -> None:
    """Add a gated delta net (Qwen3-Next, Qwen3.5): fused projections, one convolution, a norm per value head."""
    keys, values = key_heads * key_dim, value_heads * value_dim
    conv = build.cut(2 * keys + values, "delta-net convolution")
    heads = build.cut(value_heads, "delta-net value heads")
    single = build.item if build.release.since("0.11.1") and build.release.before("0.19.1") else 4
    build.add(_PART, heads)
    build.add(_PART, heads, single)
    build.add(_PART, conv * kernel)
    fused = [2 * keys + 2 * values] if interleaved else [keys, keys, values, values]
    build.column(_PART, "linear_attn.in_proj_qkvz", hidden, fused, pieces=("in_proj_qkv", "in_proj_z"))
    pair = [2 * value_heads] if interleaved else [value_heads, value_heads]
    build.column(_PART, "linear_attn.in_proj_ba", hidden, pair, pieces=("in_proj_a", "in_proj_b"))
    build.norm(value_dim)
    build.row(_PART, "linear_attn.out_proj", values, hidden)


def kimi_delta(build: Builder, hidden: int, *, heads: int, head: int, kernel: int) -> None:
    """Kimi's delta attention: q, k, v, gates of low rank, three convolutions in float32."""
    width = heads * head
    mine = build.cut(width, "delta-attention width")
    build.linear(_PART, "self_attn.in_proj_qkvgfab", hidden, [mine, mine, mine, build.cut(heads, "heads"), head])
    build.column(_PART, "self_attn.f_b_proj", head, [width])
    build.add(_PART, mine, 4)
    build.add(_PART, 3 * mine * kernel, 4)
    build.add(_PART, build.cut(heads, "heads"), 4)
    build.linear(_PART, "self_attn.g_a_proj", hidden, [head])
    build.column(_PART, "self_attn.g_b_proj", head, [width])
    build.norm(head)
    build.row(_PART, "self_attn.o_proj", width, hidden)


def short_conv(build: Builder, hidden: int, *, inner: int, kernel: int, bias: bool) -> None:
    """Add a gated short convolution (LFM2)."""
    mine = build.cut(inner, "convolution width")
    build.add(_PART, mine * kernel)
    if bias:
        build.add(_PART, mine)
    build.column(_PART, "short_conv.in_proj", hidden, [inner, inner, inner], bias=bias)
    build.row(_PART, "short_conv.out_proj", inner, hidden, bias=bias)
