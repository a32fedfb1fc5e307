"""VL111: the stated device memory is the card's nominal size."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._totals import TotalReading, nominal_size
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the stated device memory is the card's nominal size", Severity.WARNING)
def nominal_memory(reading: TotalReading, expected: Expectation) -> Iterator[Finding]:
    """Flag a `--total-memory` that is the size on the box instead of what the driver reports."""
    stated = expected.size("total_memory")
    if stated is None:
        raise Missing("no device memory was stated: give --total-memory")
    total = reading.total
    named = nominal_size(stated, total)
    if stated.overlaps(total) or named is None:
        return
    size, why = named
    difference = total.mid - stated.mid
    word = "more" if difference > 0 else "less"
    share = expected.gpu_memory_utilization
    budget = f"; at utilization {share:g} that is {format_gib(abs(difference) * share)} of budget" if share else ""
    yield Finding(
        f"the card reads {format_gib(total.mid)}, {format_gib(abs(difference))} {word} than the stated size",
        line=reading.line,
        expected=f"{stated.mid:,} bytes ({format_gib(stated.mid)}) as stated",
        observed=f"{format_gib(total.mid)} {reading.origin}",
        remedy=f"budget with the reading: --total-memory {total.mid // 2**20}MiB{budget}",
        explanation=f"a card sold as {size // 2**30} GB: {why}",
        fix={"total_memory_bytes": total.mid},
    )
