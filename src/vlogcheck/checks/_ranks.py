"""What the checks about ranks share: ranks that must be alike, and what an uneven KV cache costs."""

from __future__ import annotations

from vlogcheck.checks._memory import Worker, Workers
from vlogcheck.checks._weights import parallel_sizes, stage_of
from vlogcheck.startup import Startup
from vlogcheck.units import Interval

Reading = tuple[Worker, Interval]


def stages(workers: Workers, startup: Startup, key: str) -> list[list[Reading]]:
    """Return the ranks that must hold the same of a term: those of one engine and pipeline stage, where two print it.

    A rank whose stage is not known (old releases with pipeline parallelism) is alike to none.
    """
    groups: dict[tuple[int, int], list[Reading]] = {}
    for worker in workers:
        stage, value = stage_of(worker, startup), worker.ledger[key].interval
        if stage is not None and value is not None:
            groups.setdefault((worker.engine.engine.index, stage), []).append((worker, value))
    return [group for group in groups.values() if len(group) > 1]


def engines(workers: Workers, key: str) -> list[list[Reading]]:
    """Return the ranks of each engine that print a term, where there are two."""
    groups: dict[int, list[Reading]] = {}
    for worker in workers:
        if (value := worker.ledger[key].interval) is not None:
            groups.setdefault(worker.engine.engine.index, []).append((worker, value))
    return [group for group in groups.values() if len(group) > 1]


def even(ranks: list[Reading], key: str) -> bool:
    """Whether a term of these ranks is the same within its rounding."""
    known = [i for worker, _ in ranks if (i := worker.ledger[key].interval) is not None]
    return not known or max(i.lo for i in known) <= min(i.hi for i in known)


def pipelined(startup: Startup) -> bool:
    """Whether the model is split into pipeline stages."""
    return parallel_sizes(startup)[1] > 1
