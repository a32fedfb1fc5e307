"""How many bytes PyTorch's caching allocator counts for a list of tensors.

``torch.cuda.memory_allocated`` counts *blocks*, not tensors: a tensor's block is its size rounded up to 512 bytes,
or the whole free block it was given where the remainder is too small to be split off. The rules followed here are
those of ``c10/cuda/CUDACachingAllocator.cpp`` (PyTorch 2.x): tensors up to 1 MiB come from 2 MiB segments, tensors
below 10 MiB from 20 MiB segments, larger ones from segments of their own rounded up to 2 MiB; a remainder is split
off in the small pool from 512 bytes on, in the large pool only above 1 MiB; with a ``max_split_size`` blocks of at
least that size are never split nor lent to smaller requests.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["allocated_bytes"]

_MIB = 1 << 20
_ROUND = 512
_SMALL_LIMIT = _MIB
_SMALL_SEGMENT = 2 * _MIB
_LARGE_SEGMENT = 20 * _MIB
_LARGE_LIMIT = 10 * _MIB
_LARGE_ROUND = 2 * _MIB


def allocated_bytes(sizes: Iterable[int], *, max_split_size: int | None = None, expandable: bool = False) -> int:
    """Bytes the allocator counts for tensors of these sizes, allocated in this order and all kept.

    Args:
        sizes: tensor sizes in bytes; empty tensors cost nothing.
        max_split_size: ``max_split_size_mb`` of the allocator's settings in bytes (vLLM loads weights with 20 MiB
            from 0.21.0 on), ``None`` for no limit.
        expandable: whether ``expandable_segments:True`` is set: segments grow as needed and every remainder is split
            off.

    Returns:
        Bytes as ``torch.cuda.memory_allocated`` reports them.

    """
    if expandable:
        return sum(-(-size // _ROUND) * _ROUND for size in sizes if size > 0)
    total = 0
    free_small: list[int] = []
    free_large: list[int] = []
    for wanted in sizes:
        if wanted <= 0:
            continue
        size = -(-wanted // _ROUND) * _ROUND
        small = size <= _SMALL_LIMIT
        pool = free_small if small else free_large
        block = _take(pool, size, max_split_size)
        if block is None:
            block = _segment(size)
        rest = block - size
        split = rest >= _ROUND if small else rest > _SMALL_LIMIT and (max_split_size is None or size < max_split_size)
        if split:
            insort(pool, rest)
            block = size
        total += block
    return total


def _take(pool: list[int], size: int, max_split_size: int | None) -> int | None:
    """Remove and return the smallest free block that fits, as the allocator's best-fit search does."""
    index = bisect_left(pool, size)
    if index == len(pool):
        return None
    block = pool[index]
    if max_split_size is not None:
        if size < max_split_size <= block:
            return None
        if size >= max_split_size and block >= size + _LARGE_SEGMENT:
            return None
    return pool.pop(index)


def _segment(size: int) -> int:
    """Size of the segment the allocator asks the driver for."""
    if size <= _SMALL_LIMIT:
        return _SMALL_SEGMENT
    if size < _LARGE_LIMIT:
        return _LARGE_SEGMENT
    return -(-size // _LARGE_ROUND) * _LARGE_ROUND
