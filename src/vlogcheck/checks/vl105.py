"""VL105: the utilization does not suit the card's situation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.advice import advise
from vlogcheck.checks._memory import (
    DeviceWorkers,
    args_line,
    figure,
    gib,
    held_before,
    is_unified,
    kept,
    release_of,
    worth,
)
from vlogcheck.context import Context
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the utilization does not suit a small or shared card", Severity.WARNING)
def utilization_unsuitable(workers: DeviceWorkers, context: Context) -> Iterator[Finding]:
    """Hold the utilization against the table for small cards and, with `--shared-card` or a full card, shared ones."""
    shared = context.expectation.shared_card
    if all(worker.rank.rule.pinned for worker in workers):
        raise Missing("the KV cache was given in bytes: the utilization plays no part")
    judged = False
    for worker in workers:
        ledger = worker.ledger
        total, share = ledger["total"].interval, ledger["utilization"]
        if share.lo is None or (total is None and not shared):
            continue
        judged = True
        held, margin = held_before(ledger), kept(ledger)
        others = held.lo if held is not None and margin is not None and held.lo > margin else 0
        if total is not None and is_unified(ledger):
            continue
        size = total.mid if total is not None else None
        row = advise(size, release_of(context.startup), others=others, shared=shared)
        if row.high is None or row.low is None or row.key == "production" or share.lo <= row.high:
            continue
        if others and not shared and row.key in ("shared", "several"):
            continue  # VL102 says so, with the utilization that fits what is free
        wanted = f"{float(row.low):g}" + (f" to {float(row.high):g}" if row.low != row.high else "")
        cost = ""
        if total is not None:
            freed = (Fraction(share.lo + (share.hi or share.lo)) / 2 - Fraction(row.high)) * total.mid
            cost = f": frees {gib(freed)}{worth(worker, freed)}"
        yield Finding(
            f"utilization {figure(share)} is too much for {row.text}",
            line=share.line or args_line(context.startup),
            expected=f"{wanted} for {row.text}: {row.why}",
            observed=f"{figure(share)}" + (f" of {gib(total.mid)}" if total is not None else ""),
            remedy=f"--gpu-memory-utilization {float(row.high):g}{cost}",
            fix={"gpu_memory_utilization": float(row.high)},
        )
        return
    if not judged:
        raise Missing("the log does not print the card's memory: give --total-memory")
