"""The bytes a plan is given: one figure for all ranks or one per rank, exact or an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vlogcheck.budget.model import ModelConfigError
from vlogcheck.units import Interval

__all__ = ["Available", "cpu_space", "ends"]

Available = int | Interval | Sequence[int | Interval] | None


def cpu_space(env: Mapping[str, str]) -> int | None:
    """Bytes of ``VLLM_CPU_KVCACHE_SPACE`` (GiB), where the variable holds a whole number."""
    stated = env.get("VLLM_CPU_KVCACHE_SPACE", "").strip()
    return int(stated) << 30 if stated.isdecimal() and len(stated) < 6 and int(stated) else None


def ends(available: Available, ranks: int) -> tuple[list[int], list[int]]:
    """Lower and upper bytes per pipeline rank."""
    given: list[int | Interval]
    if isinstance(available, (int, Interval)):
        given = [available] * ranks
    else:
        given = [*(available or ())]
        if len(given) != ranks:
            if not given or len(given) % ranks:
                raise ModelConfigError(f"{len(given)} numbers of available bytes for {ranks} pipeline ranks")
            each = len(given) // ranks
            given = [_least(given[rank * each : (rank + 1) * each]) for rank in range(ranks)]
    lows = [value.lo if isinstance(value, Interval) else value for value in given]
    highs = [value.hi if isinstance(value, Interval) else value for value in given]
    return lows, highs


def _least(values: Sequence[int | Interval]) -> Interval:
    """Return the tightest of a stage's tensor-parallel ranks."""
    lows = [v.lo if isinstance(v, Interval) else v for v in values]
    highs = [v.hi if isinstance(v, Interval) else v for v in values]
    return Interval(min(lows), min(highs))
