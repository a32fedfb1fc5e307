"""Bytes of a quantised layer, by method.

Each scheme answers two questions in exact integers: the tensors of a linear layer and the tensors of a layer's
routed experts. Layouts follow ``vllm/model_executor/layers/quantization`` (0.8.5 to 0.33); what kernels repack after
loading is not in them. Long because it holds one class a layout.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PLAIN", "BlockFp8", "Grouped", "Mxfp4", "PerTensor", "Scheme", "Unknown"]


#: Tiles are not made smaller than this (``refine_fp8_moe_block_shape``).
_SMALLEST_TILE = 32


def _ceil(size: int, step: int) -> int:
    return -(-size // step)


@dataclass(frozen=True)
class Scheme:
    """No quantisation: every weight in the model's type.

    Attributes:
        method: name as vLLM writes it.
        skipped: names of modules that stay in the model's type; ``re:`` starts a regular expression.
        substring: whether a name matches anywhere in a module's name (AWQ, GPTQ) or only as a whole.
        cache_scales: whether attention layers get scale parameters.
        tolerance: relative uncertainty of the weights, as a fraction.
        reason: why.

    """

    method: str = "none"
    skipped: tuple[str, ...] = ()
    substring: bool = False
    cache_scales: bool = False
    tolerance: float = 0.005
    reason: str = "16-bit weights: parameters are exact, allocator rounding and caches are modelled"

    def covers(self, name: str, pieces: Sequence[str] = ()) -> bool:
        """Whether the module of that name is quantised."""
        stem = name.rpartition(".")[0]
        names = [name, *(f"{stem}.{piece}" for piece in pieces)]
        names += [f"{name}.{piece}" for piece in pieces]
        return not any(self._matches(pattern, candidate) for pattern in self.skipped for candidate in names)

    def _matches(self, pattern: str, name: str) -> bool:
        if pattern.startswith("re:"):
            return _search(pattern[3:], name)
        if pattern == name or name.endswith(f".{pattern}"):
            return True
        if _tail(pattern) == _tail(name):
            return True
        if "*" in pattern:
            return _search(".*".join(re.escape(bit) for bit in pattern.split("*")), name)
        return (self.substring and pattern in name) or name.startswith(f"{pattern}.")

    def linear(self, n_in: int, outs: Sequence[int], item: int) -> list[int]:
        """Tensor sizes in bytes of a linear layer with ``n_in`` inputs and these fused outputs."""
        return [n_in * sum(outs) * item]

    def experts(
        self, count: int, hidden: int, inner: int, item: int, *, shards: int = 2, bias: bool = False
    ) -> list[int]:
        """Tensor sizes in bytes of ``count`` experts; ``shards`` is 2 for gated experts, 1 otherwise."""
        sizes = [count * shards * inner * hidden * item]
        if bias:
            sizes.append(count * shards * inner * item)
        sizes.append(count * hidden * inner * item)
        if bias:
            sizes.append(count * hidden * item)
        return sizes


def _tail(name: str) -> str:
    """Return the name from ``layers.`` on: wrappers put different words before it in checkpoints and in vLLM."""
    index = name.find("layers.")
    return name[index:] if index >= 0 else name


def _search(pattern: str, name: str) -> bool:
    if len(pattern) > 300:
        return False
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return False


PLAIN = Scheme()


@dataclass(frozen=True)
class BlockFp8(Scheme):
    """8-bit floats with one scale per tile of every fused shard (DeepSeek, Qwen3-FP8).

    Attributes:
        rows: outputs per tile.
        columns: inputs per tile.
        scale_item: bytes per scale.
        refined: whether experts whose share is not a whole number of tiles get smaller tiles (from 0.29.0 on).

    """

    rows: int = 128
    columns: int = 128
    scale_item: int = 4
    refined: bool = False

    def linear(self, n_in: int, outs: Sequence[int], item: int) -> list[int]:
        """See :meth:`Scheme.linear`."""
        scales = sum(_ceil(out, self.rows) for out in outs) * _ceil(n_in, self.columns)
        return [n_in * sum(outs), scales * self.scale_item]

    def experts(
        self, count: int, hidden: int, inner: int, item: int, *, shards: int = 2, bias: bool = False
    ) -> list[int]:
        """See :meth:`Scheme.experts`."""
        rows, columns = self.rows, self.columns
        if self.refined and (inner % rows or inner % columns):
            step = math.gcd(rows, columns, inner, hidden)
            rows, columns = (step, step) if step >= _SMALLEST_TILE else (rows, columns)
        first = shards * _ceil(inner, rows) * _ceil(hidden, columns)
        second = _ceil(hidden, rows) * _ceil(inner, columns)
        sizes = [count * shards * inner * hidden, count * hidden * inner]
        if bias:
            sizes += [count * shards * inner * item, count * hidden * item]
        return [*sizes, count * first * self.scale_item, count * second * self.scale_item]


@dataclass(frozen=True)
class PerTensor(Scheme):
    """One byte a weight with one scale per tensor or per output channel."""

    channel: bool = False
    static_input: bool = False
    scale_item: int = 4

    def linear(self, n_in: int, outs: Sequence[int], item: int) -> list[int]:
        """See :meth:`Scheme.linear`."""
        scales = sum(outs) if self.channel else len(outs)
        sizes = [n_in * sum(outs), scales * self.scale_item]
        if self.static_input:
            sizes.append(len(outs) * 4)
        return sizes

    def experts(
        self, count: int, hidden: int, inner: int, item: int, *, shards: int = 2, bias: bool = False
    ) -> list[int]:
        """See :meth:`Scheme.experts`."""
        first, second = (shards * inner, hidden) if self.channel else (shards, 1)
        sizes = [count * shards * inner * hidden, count * hidden * inner]
        if bias:
            sizes += [count * shards * inner * item, count * hidden * item]
        sizes += [count * first * self.scale_item, count * second * self.scale_item]
        if self.static_input:
            sizes += [count * 4, count * 4]
        return sizes


@dataclass(frozen=True)
class Grouped(Scheme):
    """Integers packed into 32-bit words with a scale (and a zero point) per group: AWQ, GPTQ, compressed-tensors.

    Attributes:
        bits: bits per weight.
        group: inputs per scale; -1 for one scale per output channel.
        zeros: whether packed zero points are stored.
        g_idx: whether a 4-byte group index per input is stored.
        shape: bytes of a stored shape tensor (compressed-tensors keeps two int64).
        scale_item: bytes per scale; 0 for the model's type.
        global_scale: bytes of extra per-layer scales.

    """

    bits: int = 4
    group: int = 128
    zeros: bool = True
    g_idx: bool = False
    shape: int = 0
    scale_item: int = 0
    global_scale: int = 0

    def linear(self, n_in: int, outs: Sequence[int], item: int) -> list[int]:
        """See :meth:`Scheme.linear`."""
        out = sum(outs)
        groups = 1 if self.group <= 0 else _ceil(n_in, self.group)
        sizes = [n_in * out * self.bits // 8]
        if self.g_idx:
            sizes.append(4 * n_in)
        sizes.append(groups * out * (self.scale_item or item))
        if self.zeros:
            sizes.append(groups * out * self.bits // 8)
        if self.shape:
            sizes.append(self.shape)
        if self.global_scale:
            sizes.append(self.global_scale * len(outs))
        return sizes

    def experts(
        self, count: int, hidden: int, inner: int, item: int, *, shards: int = 2, bias: bool = False
    ) -> list[int]:
        """See :meth:`Scheme.experts`."""
        sizes: list[int] = []
        for n_in, n_out in ((hidden, shards * inner), (inner, hidden)):
            sizes += [count * size for size in self.linear(n_in, [n_out], item)]
        if bias:
            sizes += [count * shards * inner * item, count * hidden * item]
        return sizes


@dataclass(frozen=True)
class Mxfp4(Scheme):
    """4-bit floats with an 8-bit scale per 32 weights, on routed experts only; the expert width is padded per rank."""

    width_multiple: int = 32
    hidden_multiple: int = 32

    def experts(
        self, count: int, hidden: int, inner: int, item: int, *, shards: int = 2, bias: bool = False
    ) -> list[int]:
        """See :meth:`Scheme.experts`."""
        inner = _ceil(inner, self.width_multiple) * self.width_multiple
        hidden = _ceil(hidden, self.hidden_multiple) * self.hidden_multiple
        sizes = [
            count * shards * inner * hidden // 2,
            count * shards * inner * (hidden // 32),
            count * hidden * inner // 2,
            count * hidden * (inner // 32),
        ]
        if bias:
            sizes += [count * shards * inner * item, count * hidden * item]
        return sizes


@dataclass(frozen=True)
class Unknown(Scheme):
    """A method whose layout is not modelled: nothing is claimed about its size."""

    tolerance: float = 1.0
    reason: str = "the quantisation method is not modelled"
