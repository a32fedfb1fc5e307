"""Questions asked before a pool is made: does one request fit, how long may it be, are the stages alike.

Source: ``check_enough_kv_cache_memory``, ``estimate_max_model_len`` and ``unify_kv_cache_configs`` of
vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget._errors import PlanError, no_memory, too_long
from vlogcheck.budget._group import CannotGroupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vlogcheck.budget._group import Group
    from vlogcheck.budget._layer import LayerSpec
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.specs import Layer


def largest_length(upper: int, fits: Callable[[int], bool]) -> int:
    """Return the largest length up to ``upper`` that fits, by vLLM's binary search; 0 if one token does not."""
    if not fits(1):
        return 0
    low, high, best = 1, upper, 1
    while low <= high:
        middle = (low + high) // 2
        if fits(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def check_layers(ranks: Sequence[Sequence[Layer]], settings: Settings, available: Sequence[int]) -> PlanError | None:
    """Return the refusal of the admission check before 0.14.1, which asked layer by layer and came before grouping."""
    length, release = settings.max_model_len, settings.release
    for layers, size in zip(ranks, available, strict=True):
        if not layers:
            continue
        if size <= 0:
            return no_memory(release, size)
        needed = layers_need(layers, settings, length)
        if needed > size:
            estimate = largest_length(length, lambda n, h=layers, b=size: layers_need(h, settings, n) <= b)  # type: ignore[misc]
            return too_long(release, length, needed, size, estimate)
    return None


def layers_need(layers: Sequence[Layer], settings: Settings, length: int) -> int:
    """Return the bytes that layers take for one request of `length` tokens."""
    return sum(layer.spec.blocks(length, settings) * layer.spec.page_size_bytes for layer in layers)


def same_on_all(per_rank: Sequence[Sequence[Group]]) -> None:
    """Until 0.10.2 every stage grouped its own layers, and start-up failed where the groups came out unlike."""
    ordered = [sorted((group.spec for group in groups), key=_by_fields) for groups in per_rank]
    for specs in ordered[1:]:
        for first, other in zip(ordered[0], specs, strict=False):
            if first != other:
                raise CannotGroupError("the pipeline stages' KV cache groups differ, which this release cannot run")


def _by_fields(spec: LayerSpec) -> tuple[str, int, int, int, str, int]:
    return spec.kind, spec.block_size, spec.num_kv_heads, spec.head_size, spec.dtype, spec.window or 0
