"""VL914: another process gave memory back while vLLM profiled."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import exact, ranks_text
from vlogcheck.failures import Outcome
from vlogcheck.records import ProfilingMemoryChanged
from vlogcheck.registry import Finding, Severity, check


@check("another process gave memory back while vLLM profiled", Severity.ERROR)
def memory_changed_while_profiling(outcome: Outcome) -> Iterator[Finding]:
    """Flag the assertion `Error in memory profiling`, with the memory that was given back."""
    failure = outcome.failure
    if failure is None or not isinstance(failure.record, ProfilingMemoryChanged):
        return
    record = failure.record
    before, after, sign, what = record.initial_free_gib, record.current_free_gib, 1, "free"
    if before is None or after is None:
        before, after, sign, what = record.initial_used_gib, record.current_used_gib, -1, "used"
    grew = sign * (exact(after) - exact(before)) if before is not None and after is not None else None
    same = grew == 0
    message = "the memory of the card changed while vLLM profiled"
    if grew is not None and not same:
        message = f"another process gave {grew:.2f} GiB back while vLLM profiled"
    yield Finding(
        f"{message}{ranks_text(failure)}",
        line=record.line,
        expected=f"{what} memory falls while the model runs"
        if what == "free"
        else "used memory grows while the model runs",
        observed=f"{before:.2f} GiB {what} before, {after:.2f} GiB after"
        if before is not None and after is not None
        else "the assertion failed; this release prints no figures",
        remedy=f"nothing came back, both readings are {after:.2f} GiB: take a release that lets equal readings pass, or start"
        " again until they differ"
        if same
        else "start again now that the other process has let go"
        + (f" of its {grew:.2f} GiB" if grew is not None else "")
        + (f" (free memory stands at {after:.2f} GiB)" if after is not None and what == "free" else "")
        + "; start servers that share a card one after the other, not at once",
        explanation="the two readings are equal: some releases for XPU refuse that too (a strict comparison)"
        if same
        else "",
    )
