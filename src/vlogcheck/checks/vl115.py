"""VL115: the process has less memory than the card (a slice or a quota)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import DeviceWorkers, Worker, floor_hundredths, gib
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.smi import Occupancy
from vlogcheck.units import Interval


@check("the process may use less memory than the card the budget was made for", Severity.WARNING)
def memory_quota(workers: DeviceWorkers, failed: OutOfMemory | None, occupancy: Occupancy | None) -> Iterator[Finding]:
    """Flag a total that another line or reading contradicts, and an allocation refused while enough was free."""
    totals = [
        (total, w) for w in workers if w.ledger["total"].status == "printed" and (total := w.ledger["total"].interval)
    ]
    if not totals and failed is None:
        raise Missing("the log does not print the card's memory")
    if failed is not None and failed.total_gib is not None and totals:
        total, worker = totals[0]
        other = failed.total_gib.bytes
        requested = worker.ledger["requested"].interval
        if other.hi < total.lo and (requested is None or other.hi < requested.hi):
            fits = floor_hundredths(Fraction(other.lo, total.hi))
            yield Finding(
                f"the budget was made for {gib(total.mid)}, the process may use {gib(other.mid)}",
                line=failed.line,
                expected=f"{gib(total.mid)} as when the budget was made (line {worker.ledger['total'].line})",
                observed=f"{gib(other.mid)} in total when an allocation failed",
                remedy=f"a slice or quota (MIG, HAMi): --gpu-memory-utilization {fits:g} of the whole card is what it"
                " holds; or make the device plug-in report the slice",
                explanation="the utilization applies to the physical card, the quota to the process",
                fix={"gpu_memory_utilization": fits},
            )
            return
    over = _over_the_total(totals)
    if over is not None:
        yield over
        return
    tried = failed.tried_gib if failed is not None else None
    free = failed.free_gib if failed is not None else None
    if failed is not None and tried is not None and free is not None and tried.bytes.hi < free.bytes.lo:
        remedy, fix = _limit(failed)
        yield Finding(
            f"{gib(tried.bytes.mid)} were refused although {gib(free.bytes.mid)} of the card are free",
            line=failed.line,
            expected="an allocation smaller than what is free succeeds",
            observed=f"{gib(tried.bytes.mid)} asked for, {gib(free.bytes.mid)} free",
            remedy=remedy,
            explanation="a quota on the process, not the card's memory, ended it",
            fix=fix,
        )
    slices = [card for card in occupancy.cards if card.slice is not None] if occupancy is not None else []
    if slices and totals and not any(card.total.overlaps(total) for card in slices for total, _ in totals):
        total = totals[0][0]
        yield Finding(
            f"the card is cut into {len(slices)} slices, and the budget was made for the whole of it",
            line=totals[0][1].ledger["total"].line,
            expected=f"a total of {gib(slices[0].total.mid)} (slice {slices[0].slice})",
            observed=f"{gib(total.mid)} in the log",
            remedy="run the server on a slice by its UUID (CUDA_VISIBLE_DEVICES=MIG-…): the total is then the slice's"
            f" {gib(slices[0].total.mid)}",
        )


def _limit(failed: OutOfMemory) -> tuple[str, dict[str, int | float | str]]:
    """Return where the limit lies that refused an allocation, and the utilization that stays below it."""
    assert failed.tried_gib is not None
    assert failed.free_gib is not None
    what = "a limit on the process (HAMi or MIG slice, a container's quota, torch's memory fraction)"
    held: float | None = failed.process_gib
    if held is None and failed.total_gib is not None:
        held = failed.total_gib - failed.free_gib
    if held is None or failed.total_gib is None or held <= 0:
        return f"look for {what} below {failed.free_gib:.2f} GiB: the utilization counts the whole card", {}
    fits = floor_hundredths(Fraction(str(held)) / Fraction(str(failed.total_gib)))
    return (
        f"look for {what} between {held:.2f} and {held + failed.tried_gib:.2f} GiB: the utilization counts the whole card and"
        f" does not know it; --gpu-memory-utilization {fits:g} keeps within what the process had"
    ), {"gpu_memory_utilization": fits}


def _over_the_total(totals: list[tuple[Interval, Worker]]) -> Finding | None:
    """Return the finding of a request that exceeds what the process sees of the card, or None."""
    for total, worker in totals:
        requested, share = worker.ledger["requested"].interval, worker.ledger["utilization"]
        if requested is None or worker.ledger["requested"].status != "printed" or requested.lo <= total.hi:
            continue
        whole = f" ({gib(requested.mid / float(share.hi))} × {float(share.hi):g})" if share.hi else ""
        fits = floor_hundredths(Fraction(total.lo, requested.hi) * Fraction(share.lo)) if share.lo else None
        return Finding(
            f"the budget was made for {gib(requested.mid)}{whole}, the process may use {gib(total.mid)}",
            line=worker.ledger["total"].line,
            expected=f"at most {gib(total.mid)} requested",
            observed=f"{gib(requested.mid)} requested (line {worker.ledger['requested'].line})",
            remedy="a slice or quota (MIG, HAMi): "
            + (f"--gpu-memory-utilization {fits:g} of the whole card is what it holds; or " if fits else "")
            + "make the device plug-in report the slice",
            explanation="the utilization applies to the physical card, the quota to the process",
            fix={"gpu_memory_utilization": fits} if fits else {},
        )
    return None
