"""VL909: a device allocation failed, and the start-up went on."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import cause, figures
from vlogcheck.failures import Outcome
from vlogcheck.registry import Finding, Severity, check


@check("a device allocation failed, and the start-up went on", Severity.WARNING)
def out_of_memory_survived(outcome: Outcome) -> Iterator[Finding]:
    """Flag an out-of-memory message in a start-up that came to its end."""
    if not outcome.survived:
        return
    first = outcome.survived[0]
    times = len(outcome.survived)
    yield Finding(
        "a device allocation failed during start-up, which went on"
        + (f" ({times} such messages)" if times > 1 else ""),
        line=first.line,
        expected="no failed allocation",
        observed=figures(first),
        remedy="what was tried (a kernel variant, an autotuning run) was left out: compare the throughput with a"
        " start on an"
        " empty card, and leave "
        + (f"{first.tried_gib:.2f} GiB more free" if first.tried_gib is not None else "more memory free"),
        explanation=cause(first),
    )
