"""VL107: the captured graphs are not counted in the budget."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers, Worker, floor_hundredths, gib, kept, release_of
from vlogcheck.records import GraphUtilization
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("the captured graphs are not counted in the budget", Severity.NOTE)
def graphs_not_counted(workers: DeviceWorkers, startup: Startup) -> Iterator[Finding]:
    """Flag graph memory outside the request: releases before 0.18, and later ones where the estimate is off."""
    if startup.version is None and startup.last(GraphUtilization) is None:
        raise Missing("the release is not known")
    worker = workers.worst(lambda w: _graphs(w))
    if worker is None:
        raise Missing("the log prints no memory of captured graphs")
    if worker.rank.rule.graphs != "uncounted":
        return
    taken = worker.ledger["graphs"].interval
    if taken is None or taken.lo <= 0:
        return
    total, requested = worker.ledger["total"].interval, worker.ledger["requested"].interval
    free = worker.ledger["free"].interval
    outside = None
    if requested is not None and (free or total) is not None:
        # What was free at start is the bound; where only the total is known, others may hold some of it too.
        outside = (free or total).minus(requested)  # type: ignore[union-attr]
    margin = kept(worker.ledger)
    if outside is not None and margin is not None and outside.lo >= taken.hi + margin:
        return  # there is room for them, and the reserve besides
    release = release_of(startup)
    rule = "vLLM counts it only from 0.20.2" if release.before("0.18") else "its estimate is switched off"
    room = None
    remedy = f"leave {gib(taken.hi)} more of the card free than its reserve (--total-memory says whether it is)"
    if outside is not None and total is not None and requested is not None and margin is not None:
        room = floor_hundredths((requested.lo - max(taken.hi + margin - outside.lo, 0)) / total.hi)  # type: ignore[arg-type]
        remedy = f"--gpu-memory-utilization {room:g} leaves room for them and {gib(margin)} in reserve"
    fix: dict[str, int | float | str] = {} if room is None else {"gpu_memory_utilization": room}
    if release.since("0.18"):
        remedy = f"set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1, or {remedy}"
    over = outside is not None and taken.lo > outside.hi
    if over and room is not None:
        remedy = f"{remedy}; or --enforce-eager"
    yield Finding(
        f"captured graphs took {gib(taken.mid)} outside the budget"
        + (f", of which {gib(outside.mid)} were left" if over and outside is not None else "")
        + workers.where(worker, lambda other: _graphs(other) == _graphs(worker)),
        line=worker.ledger["graphs"].line,
        expected=f"{gib(outside.mid)} outside the request hold the graphs"
        if outside is not None
        else "room outside it",
        observed=f"{gib(taken.mid)} captured after the KV cache was sized; {rule}",
        remedy=remedy,
        fix=fix,
        severity=Severity.WARNING if over else None,
    )


def _graphs(worker: Worker) -> int | None:
    interval = worker.ledger["graphs"].interval
    return interval.mid if interval is not None else None
