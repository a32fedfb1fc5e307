"""VL106: less of the card is kept free than its reserve."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import DeviceWorkers, args_line, floor_hundredths, gib, is_unified, kept, worth
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("less of the card is kept free than its reserve", Severity.WARNING)
def reserve_too_small(workers: DeviceWorkers, startup: Startup) -> Iterator[Finding]:
    """Flag a request that leaves less than 2 GB, or less than 5 % of a card above 40 GB."""
    judged = False
    for worker in workers:
        ledger = worker.ledger
        total, requested, margin = ledger["total"].interval, ledger["requested"].interval, kept(ledger)
        if total is None or requested is None or margin is None or worker.rank.rule.pinned:
            continue
        judged = True
        left = total.minus(requested)
        share = ledger["utilization"]
        if left.hi < 0:
            continue  # more than the card was requested: the process sees a slice of it (VL115)
        if left.hi >= margin or is_unified(ledger) or (share.lo is not None and share.lo >= 1):
            continue
        fits = floor_hundredths(Fraction(total.lo - margin, total.lo))
        size = requested.mid - fits * total.mid
        yield Finding(
            f"{gib(left.mid)} of the card stay outside vLLM's budget: less than its reserve of {gib(margin)}",
            line=ledger["requested"].line or ledger["total"].line or args_line(startup),
            expected=f"at least {gib(margin)} of {gib(total.mid)} kept free",
            observed=f"{gib(requested.mid)} requested",
            remedy=f"--gpu-memory-utilization {fits:g}; it costs {gib(size)} of KV cache per rank"
            + worth(worker, int(size)),
            fix={"gpu_memory_utilization": fits},
        )
        return
    if not judged:
        raise Missing("the log does not print the card's memory: give --total-memory")
