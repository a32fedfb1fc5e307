"""VL112: a term computed by hand contradicts the log."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import Workers, stated_utilization
from vlogcheck.checks._totals import TotalReading, nominal_size
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("the stated device memory or utilization contradicts the log", Severity.ERROR)
def hand_terms_contradicted(
    expected: Expectation, startup: Startup, workers: Workers | None, reading: TotalReading | None
) -> Iterator[Finding]:
    """Hold `--total-memory` and `--gpu-memory-utilization` against what the log says."""
    total, share = expected.size("total_memory"), expected.gpu_memory_utilization
    if total is None and share is None:
        raise Missing("neither --total-memory nor --gpu-memory-utilization was stated")
    judged = False
    if total is not None and reading is not None:
        judged = True
        if not total.overlaps(reading.total) and nominal_size(total, reading.total) is None:
            yield Finding(
                f"the stated {format_gib(total.mid)} of device memory are not those of the card",
                line=reading.line,
                expected=f"{format_gib(total.mid)} as stated",
                observed=f"{format_gib(reading.total.mid)} {reading.origin}",
                remedy=f"--total-memory {reading.total.mid // 2**20}MiB, or see whether the server runs on the card"
                " you mean",
                explanation=_ratio(total.mid, reading.total.mid),
                fix={"total_memory_bytes": reading.total.mid},
            )
    if share is not None:
        try:
            term = stated_utilization(startup, workers)
        except Missing:
            if not judged:
                raise
            return
        judged = True
        low, high = term.lo, term.hi
        if low is not None and high is not None and not low <= Fraction(str(share)) <= high:
            yield Finding(
                f"the server runs with utilization {term.text()}, not {share:g}",
                line=term.line,
                expected=f"{share:g} as stated",
                observed=f"{term.text()} {term.origin}".rstrip(),
                remedy=f"start it with --gpu-memory-utilization {share:g}, or budget with {term.text()}",
                fix={"gpu_memory_utilization": share},
            )
    if not judged:
        raise Missing("the log does not print the card's memory")


def _ratio(stated: int, read: int) -> str:
    """Return the whole number of cards that explains the difference, if one does."""
    count = round(stated / read) if read else 0
    if count > 1 and nominal_size_of(stated // count, read):
        return f"the stated size is that of {count} cards together; the ledger is per card"
    return ""


def nominal_size_of(stated: int, read: int) -> bool:
    """Whether one card of the stated size reads like this."""
    from vlogcheck.units import Interval

    exact = Interval.exactly(read)
    return Interval.exactly(stated).overlaps(exact) or nominal_size(Interval.exactly(stated), exact) is not None
