"""Ways to run more requests of a length at once, each computed in the ledger: shorter, more memory, more ranks, 8-bit cache."""

from __future__ import annotations

import math
from fractions import Fraction

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._tuples import NamedTuple
from vlogcheck.checks._kv import utilization_for
from vlogcheck.checks._load import engine_of, per_engine, plan_of
from vlogcheck.context import ConcurrencyCeiling, Context, ceiling
from vlogcheck.expected import ExpectedEngine
from vlogcheck.observed import EngineLedger
from vlogcheck.units import Interval, format_gib

LARGEST_UTILIZATION = 0.95
_DEGREES = (2, 4, 8, 16)

Fix = dict[str, "int | float | str"]


def grow_ways(context: Context, limit: ConcurrencyCeiling, wanted: float) -> tuple[list[str], Fix]:
    """Return what to do so that `wanted` requests fit, in words with numbers and as options."""
    engine = engine_of(context)
    plan = plan_of(context, engine)
    ways: list[str] = []
    fix: Fix = {}
    longest = longest_for(context, limit, wanted)
    if longest:
        ways.append(f"keep requests within {longest:,} tokens (--max-model-len {longest})")
        fix["max_model_len"] = longest
    if engine is None or not limit.kv_lo:
        return ways, fix
    need = _needed(context, plan, engine, limit, wanted)
    if need is not None:
        ways += _memory_ways(engine, need, fix, "or " if ways else "")
    if plan is not None:
        ways += _other_ways(plan, engine, limit, wanted, fix)
    elif need is not None:
        config = context.startup.config
        narrow = config is not None and str(config.kv_cache_dtype or "auto")[:3] in ("fp8", "int")
        halved = "" if narrow or need.total > 2 * need.have else " or an 8-bit KV cache"
        ways.append(
            f"more cards{', ' if halved else ' or '}a smaller model{halved} give it without thinning the margin"
        )
    return ways, fix


class _Need(NamedTuple):
    """KV cache memory of a rank, in bytes."""

    have: int
    least: int
    """What the requests take at least, and `total` at most: where layers may differ a log alone only bounds it."""
    total: int


def _memory_ways(engine: EngineLedger, need: _Need, fix: Fix, lead: str) -> list[str]:
    have, least, total = need
    if least * 50 < total * 49:
        bounds = f"{format_gib(least - have)} to {format_gib(total - have)}"
        return [f"{lead}give each rank more for the KV cache: {bounds}, --model-config computes which"]
    ways = [f"{lead}give each rank {format_gib(total - have)} more for the KV cache ({format_gib(total)} in all)"]
    fix["kv_cache_memory_bytes"] = total
    share = utilization_for(engine, total - have)
    if share is not None and share <= LARGEST_UTILIZATION:
        ways.append(f"--gpu-memory-utilization {share:.2f} would do")
        fix["gpu_memory_utilization"] = share
    elif share is not None:
        ways.append(
            f"no utilization up to {LARGEST_UTILIZATION} gives that" + (f" ({share:.2f} would)" if share <= 1 else "")
        )
    return ways


def longest_for(context: Context, limit: ConcurrencyCeiling, wanted: float) -> int | None:
    """Return the longest request of which `wanted` are certain to fit; None where none is or the curve is not known."""
    low, high = 0, limit.context
    while high - low > 1:
        middle = (low + high) // 2
        if ceiling(context, middle).kv_lo >= wanted:
            low = middle
        else:
            high = middle
    if not low:
        return None
    plan = plan_of(context, engine_of(context))
    if plan is None or _holds(plan, low, per_engine(wanted, limit.engines)):
        return low
    from vlogcheck.budget.pool import largest_length

    # A shorter max_model_len changes the layout itself (states kept per length): search over whole plans.
    each = per_engine(wanted, limit.engines)
    return largest_length(low, lambda length: _holds(plan, length, each)) or None


def _holds(plan: ExpectedEngine, length: int, each: int) -> bool:
    """Whether the same memory, planned with this max_model_len, holds `each` requests of it."""
    from vlogcheck.budget.model import ModelConfigError

    blocks = observed_blocks(plan)
    try:
        changed = plan.setup.plan(max_model_len=length)
    except ModelConfigError:
        return False
    needed = changed.blocks_per_request(length)
    before, after = plan.plan.bytes_per_block(), changed.bytes_per_block()
    if blocks is None or not needed or not before or not after:
        return False
    held = blocks.lo if before == after else blocks.lo * before // after
    return held >= each * needed


def _needed(
    context: Context, plan: ExpectedEngine | None, engine: EngineLedger, limit: ConcurrencyCeiling, wanted: float
) -> _Need | None:
    """Return the KV cache memory of a rank and what `wanted` requests take of it; None where it is not known."""
    if engine.available is None or engine.available.tightest.hi <= 0:
        return None
    have = engine.available.tightest.hi
    if plan is not None and plan.plan.pool is not None:
        layout = plan.plan.pool
        each = per_engine(wanted, limit.engines)
        stages = [stage for stage in range(len(layout.ranks)) if layout.ranks[stage]]
        blocks = each * layout.blocks_per_request(limit.context)
        total = max((layout.bytes_per_block(stage) * blocks for stage in stages), default=0)
        return _Need(have, total, total) if total > have else None
    least, total = (math.ceil(have * Fraction(str(wanted)) / held) for held in (limit.kv_hi, limit.kv_lo))
    return _Need(have, least, total)


def _other_ways(
    plan: ExpectedEngine, engine: EngineLedger, limit: ConcurrencyCeiling, wanted: float, fix: Fix
) -> list[str]:
    each = per_engine(wanted, limit.engines)
    ways = []
    settings = plan.plan.settings
    if settings is not None and settings.cache_bytes > 1:
        got = _held(plan, limit.context, kv_cache_dtype="fp8")
        if got is not None:
            said = "holds them" if got >= each else f"holds {float(got):,.2f} of them"
            ways.append(f"--kv-cache-dtype fp8 {said}")
            if got >= each:
                fix["kv_cache_dtype"] = "fp8"
    degree = _degree(plan, engine, limit.context, each)
    if degree is not None:
        ways.append(f"--tensor-parallel-size {degree} does")
        fix["tensor_parallel_size"] = degree
    return ways


def _held(plan: ExpectedEngine, length: int, available: Interval | None = None, **changed: object) -> Fraction | None:
    """Return the requests of a length that fit with options changed."""
    from vlogcheck.budget.model import ModelConfigError

    setup = plan.setup if available is None else plan.setup._replace(available=available)
    if setup.available is None:
        return None
    try:
        other = setup.plan(**changed)
    except ModelConfigError:
        return None
    if other.unknown is not None or other.pool is None or other.num_blocks is None:
        return None
    needed = other.blocks_per_request(length)
    return Fraction(other.num_blocks, needed) if needed else None


def _degree(plan: ExpectedEngine, engine: EngineLedger, length: int, each: int) -> int | None:
    """Return the smallest tensor-parallel size with which the requests fit: weights shrink with it too."""
    tp = plan.setup.options.tensor_parallel_size
    weights = [i.lo for rank in engine.ranks if (i := rank.ledger["weights"].interval) is not None]
    if plan.available is None or plan.setup.options.pipeline_parallel_size > 1:
        return None
    for degree in _DEGREES:
        if degree <= tp or degree % tp:
            continue
        freed = int(min(weights) * (1 - Fraction(tp, degree))) if weights else 0
        memory = Interval(plan.available.lo + freed, plan.available.hi + freed)
        got = _held(plan, length, memory, tensor_parallel_size=degree)
        if got is not None and got >= each:
            return degree
    return None
