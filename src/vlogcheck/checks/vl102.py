"""VL102: other programs used the card when the server started."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.advice import advise
from vlogcheck.checks._memory import (
    DeviceWorkers,
    Worker,
    floor_hundredths,
    gib,
    held_before,
    is_unified,
    kept,
    release_of,
)
from vlogcheck.context import Context
from vlogcheck.records import FreeMemoryTooLow
from vlogcheck.registry import Finding, Missing, Severity, check


@check("other programs used the card when the server started", Severity.WARNING)
def shared_card(workers: DeviceWorkers, context: Context) -> Iterator[Finding]:
    """Flag a card of which more than its reserve was in use at start, unless `--shared-card` says so."""
    known = [worker for worker in workers if held_before(worker.ledger) is not None and not is_unified(worker.ledger)]
    if not known:
        raise Missing("the log does not print what was free at start")
    if context.expectation.shared_card:
        return
    fullest = max(known, key=lambda worker: _held(worker))
    if not _shared(fullest):
        return
    ledger = fullest.ledger
    total, free, held, margin = ledger["total"].interval, ledger["free"].interval, _held(fullest), kept(ledger)
    assert total is not None
    assert free is not None
    assert margin is not None
    requested = ledger["requested"].interval
    if requested is not None and free.hi < requested.lo and held >= requested.lo - margin:
        return  # as much as a whole server is missing: VL101
    refused = context.startup.last(FreeMemoryTooLow) is not None
    row = advise(total.mid, release_of(context.startup), others=held)
    fits = floor_hundredths(min(Fraction(free.lo - margin, total.hi), row.high or 1))
    share = ledger["utilization"]
    remedy = "find out who (nvidia-smi, rocm-smi --showpids, fuser -v /dev/kfd /dev/dri/*) and move one of the two"
    if fits > 0:
        remedy += (
            f", or share: --gpu-memory-utilization {fits:g} leaves the others their {gib(held)} and"
            f" {gib(margin)} in reserve"
        )
    if share.lo is not None and share.lo <= Fraction(str(fits)):  # what may be rounding is no finding
        return
    yield Finding(
        f"{gib(held)} of the card were in use before the server loaded anything" + workers.where(fullest, _shared),
        line=ledger["free"].line,
        expected=f"at most {gib(margin)} in use on a card of {gib(total.mid)} for itself",
        observed=f"{gib(free.mid)} free of {gib(total.mid)}",
        remedy=remedy + "; say --shared-card where it is meant to be so",
        explanation="the cause of VL901" if refused else "",
        fix={"gpu_memory_utilization": fits} if fits > 0 else {},
        severity=Severity.NOTE if refused else None,  # one thing, told once: the refusal is what fails
    )


def _held(worker: Worker) -> int:
    held = held_before(worker.ledger)
    return held.mid if held is not None else 0


def _shared(worker: Worker) -> bool:
    held, margin = held_before(worker.ledger), kept(worker.ledger)
    return held is not None and margin is not None and held.lo > margin
