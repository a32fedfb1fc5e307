"""VL101: the card was still nearly full when the server started."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers, gib, held_before, is_unified, kept, signed_gib
from vlogcheck.records import FreeMemoryGrew, FreeMemoryTooLow, ProfilingMemoryChanged
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import GIB


@check("the card was still nearly full when the server started", Severity.WARNING)
def just_released_memory(workers: DeviceWorkers | None, startup: Startup) -> Iterator[Finding]:
    """Flag a start for which as much is missing as a whole server takes, and memory that came back while it started."""
    grown = startup.last(FreeMemoryGrew) or startup.last(ProfilingMemoryChanged)
    if grown is not None and not _equal(grown):
        yield _grown(grown, startup)
    judged = False
    refused = startup.last(FreeMemoryTooLow) is not None
    for worker in workers or ():
        ledger = worker.ledger
        missing, free, requested = held_before(ledger), ledger["free"].interval, ledger["requested"].interval
        margin = kept(ledger)
        if missing is None or free is None or requested is None or margin is None or is_unified(ledger):
            continue
        judged = True
        if free.hi >= requested.lo or missing.lo < requested.lo - margin:
            continue
        total = ledger["total"].interval
        assert total is not None
        wanted = total.mid - margin
        where = workers.where(worker, _full) if workers else ""
        yield Finding(
            f"only {gib(free.mid)} of {gib(total.mid)} were free at start{where}",
            line=ledger["free"].line,
            expected=f"about {gib(total.mid)} free on a card that nobody uses",
            observed=f"{gib(missing.mid)} in use, as much as a server with these options takes ({gib(requested.mid)})",
            remedy="no leak: the driver gives a stopped process's memory back tens of seconds later. Wait until the"
            f" card reads at least {gib(wanted)} free, then start again; if it stays at {gib(free.mid)}, the old server"
            " still runs (nvidia-smi, or fuser -v /dev/kfd /dev/dri/*): end it, or take another card",
            explanation=("the cause of VL901: " if refused else "")
            + "memory just released, or an earlier server that is still running",
            severity=Severity.NOTE if refused else None,  # one thing, told once: the refusal is what fails
        )
        return
    if not judged and grown is None:
        raise Missing("the log does not print what was free at start")


def _equal(record: FreeMemoryGrew | ProfilingMemoryChanged) -> bool:
    """Whether nothing came back: XPU workers refused equal readings, too (VL914)."""
    return isinstance(record, ProfilingMemoryChanged) and (
        (record.initial_free_gib is not None and record.initial_free_gib == record.current_free_gib)
        or (record.initial_used_gib is not None and record.initial_used_gib == record.current_used_gib)
    )


def _full(worker: object) -> bool:
    ledger = worker.ledger  # type: ignore[attr-defined]
    free, requested = ledger["free"].interval, ledger["requested"].interval
    return free is not None and requested is not None and free.hi < requested.lo


def _grown(record: FreeMemoryGrew | ProfilingMemoryChanged, startup: Startup) -> Finding:
    still = f"stands still (twice the same at line {record.line}'s time or later)"
    if isinstance(record, FreeMemoryGrew):
        still = f"stands at {gib(record.current_free_gib * GIB)} or more"
        grown = f"{signed_gib(record.grew_gib * GIB)} came back"
    elif record.initial_free_gib is not None and record.current_free_gib is not None:
        still = f"stands at {gib(record.current_free_gib * GIB)} or more"
        grown = f"{signed_gib((record.current_free_gib - record.initial_free_gib) * GIB)} came back"
    elif record.initial_used_gib is not None and record.current_used_gib is not None:
        still = f"stands still with {gib(record.current_used_gib * GIB)} or less in use"
        grown = f"{signed_gib((record.initial_used_gib - record.current_used_gib) * GIB)} came back"
    else:
        grown = "memory came back"
    return Finding(
        f"{grown} on the card while the memory was profiled",
        line=record.line,
        expected="free memory that only this process changes between the two readings",
        observed=grown,
        remedy=f"another process was ending: start again once the card's free memory {still} in two readings of nvidia-smi or"
        " rocm-smi 30 seconds apart, and start servers on one card one after the other",
        explanation="memory just released by another process",
        fix={},
        severity=Severity.NOTE if startup.usable else None,
    )
