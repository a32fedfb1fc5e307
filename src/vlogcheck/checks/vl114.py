"""VL114: the card's memory is the host's memory."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.advice import largest_utilization
from vlogcheck.checks._memory import DeviceWorkers, gib, is_unified, kept
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("the card shares its memory with the host", Severity.NOTE)
def unified_memory(workers: DeviceWorkers, startup: Startup) -> Iterator[Finding]:
    """Explain free memory on machines whose CPU and GPU share one pool (GB10, GH200)."""
    known = [worker for worker in workers if "total" in worker.ledger]
    if not known:
        raise Missing("the log does not print the card's memory: give --total-memory")
    for worker in known:
        name = is_unified(worker.ledger)
        if name is None:
            continue
        total, free = worker.ledger["total"].interval, worker.ledger["free"].interval
        requested = worker.ledger["requested"].interval
        assert total is not None
        short = free is not None and requested is not None and free.hi < requested.lo
        margin = kept(worker.ledger)
        rest = total.minus(requested) if requested is not None else None
        if startup.usable and free is not None and not short and rest is not None and rest.lo >= (margin or 0):
            continue  # it started, and the host has its reserve
        remedy = "drop the page cache before the start (sync; echo 3 > /proc/sys/vm/drop_caches)"
        fix = {}
        if free is not None and (short or requested is None):
            fits = largest_utilization(total.hi, free.lo)
            remedy += f"; as it is, --gpu-memory-utilization {fits:g} is the largest that starts"
            fix = {"gpu_memory_utilization": fits} if short else {}
        elif requested is not None:
            remedy += (
                f" and leave the operating system its share of the same pool: with {gib(requested.mid)} requested"
                f" {gib(total.minus(requested).mid)} remain for it, for graphs and for what the profile run takes meanwhile;"
                " the host hangs or kills processes where that does not do"
            )
        else:
            remedy += " and leave the operating system its share of the same pool"
        yield Finding(
            f"{name}: {gib(total.mid)} are shared by CPU and GPU, and the page cache counts as used",
            line=worker.ledger["free"].line or worker.ledger["total"].line,
            expected=f"{gib(requested.mid)} requested" if requested is not None else "a card of its own memory",
            observed=f"{gib(free.mid)} free at start" if free is not None else f"{gib(total.mid)} in total",
            remedy=remedy,
            explanation="free memory below the request is no leak here, nor is total × utilization a bound for the host",
            fix=fix,
            severity=Severity.WARNING if short else None,
        )
        return
