"""What would fit: the longest context, the smallest utilization and the fewest ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig, ModelConfigError
from vlogcheck.budget.plan import KVPlan
from vlogcheck.budget.pool import largest_length
from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.budget.weights import WeightEstimate
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget._budget import Budget

__all__ = ["bytes_needed", "bytes_required", "largest_context_of", "smallest_of"]

_DEGREES = (1, 2, 4, 8, 16)


def bytes_needed(made: KVPlan, concurrency: float, context: int | None) -> int | None:
    """Return the KV cache bytes per rank that the requests take, the null block included where admission counts it."""
    per_request = made.blocks_per_request(context) if context else None
    if made.pool is None or not per_request:
        return None
    blocks = math.ceil(Fraction(str(concurrency)) * per_request)
    if made.settings is not None and made.settings.release.since("0.29.0"):
        blocks += 1
    return max(blocks * made.pool.bytes_per_block(rank) for rank in range(len(made.pool.ranks)))


def largest_context_of(
    made: KVPlan, concurrency: float, available: Interval | None, retry: Callable[[int], KVPlan]
) -> int | None:
    """Return the longest request of which so many fit. Where vLLM refuses the longest context, a shorter one is tried."""
    pool = made.pool
    if pool is None or not made.max_model_len:
        return None
    wanted = Fraction(str(concurrency))
    blocks = made.num_blocks
    if blocks is not None:
        return largest_length(made.max_model_len, lambda n: wanted * pool.blocks_per_request(n) <= blocks) or None
    if available is None or available.lo <= 0:
        return None
    least = max(wanted, Fraction(1))  # vLLM starts only where one request fits

    def holds(length: int) -> bool:
        changed = retry(length)
        each = changed.blocks_per_request(length)
        return changed.num_blocks is not None and each is not None and least * each <= changed.num_blocks

    return largest_length(made.max_model_len, holds) or None


def smallest_of(
    model: ModelConfig, options: ServeOptions, weights: tuple[WeightEstimate, ...], needed: int | None, total: Interval,
    other: Interval | None, release: str | None, retry: Callable[[ServeOptions], Budget],
) -> tuple[Fraction | None, int | None]:  # fmt: skip
    """Return the smallest utilization and tensor-parallel size with which the needed KV cache fits on each card."""
    if needed is None or not weights or any(w.unknown for w in weights):
        return None, None
    demand = max(w.high_bytes for w in weights) + needed + (other.hi if other else 0)
    hundredths = math.ceil(Fraction(demand * 100, total.lo)) if total.lo else 101
    utilization = Fraction(hundredths, 100) if hundredths <= 100 else None
    share = options.gpu_memory_utilization or default_utilization(parse_release(release))
    room = math.floor(total.lo * Fraction(str(share)))
    heads = model.num_attention_heads or 0
    for size in sorted({*_DEGREES, options.tensor_parallel_size}):
        if heads and heads % size:
            continue
        if size == options.tensor_parallel_size:
            fits = demand <= room
        else:
            fits = _demand(retry, replace(options, tensor_parallel_size=size), other, room)
        if fits:
            return utilization, size
    return utilization, None


def bytes_required(made: KVPlan, options: ServeOptions, needed: int | None) -> int | None:
    """Return what the KV cache must hold: the requests asked for, and one of the longest context, or vLLM refuses to start."""
    one = bytes_needed(made, 1, made.max_model_len) if options.max_model_len != -1 else None
    return needed if needed is None or one is None else max(needed, one)


def _demand(retry: Callable[[ServeOptions], Budget], options: ServeOptions, other: Interval | None, room: int) -> bool:
    """Whether the changed options fit in `room` bytes."""
    unsized = replace(options, kv_cache_memory_bytes=1 << 60)  # only the request's blocks and the weights matter here
    try:
        budget = retry(unsized)
    except ModelConfigError:
        return False
    required = bytes_required(budget.plan, options, budget.needed_bytes)
    if required is None or any(w.unknown for w in budget.weights):
        return False
    demand = max(w.high_bytes for w in budget.weights) + required + (other.hi if other else 0)
    return demand <= room
