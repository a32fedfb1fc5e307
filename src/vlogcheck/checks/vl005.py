"""VL005: an earlier start-up failed, and the last one worked."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks.vl004 import servers
from vlogcheck.context import LogFacts
from vlogcheck.failures import failure_of, reason
from vlogcheck.registry import Finding, Severity, check


@check("an earlier start-up failed, and the last one worked", Severity.NOTE, per_log=True)
def earlier_startup_failed(log: LogFacts) -> Iterator[Finding]:
    """Flag failures of a server whose last start-up in the log came to its end."""
    for rounds in servers(log):
        if not rounds[-1].usable or failure_of(rounds[-1]) is not None:
            continue
        failed = [(s, f) for s in rounds[:-1] if (f := failure_of(s)) is not None]
        if not failed:
            continue
        startup, failure = failed[-1]
        yield Finding(
            f"{len(failed)} earlier start-up{'s' if len(failed) != 1 else ''} of {startup.model or 'the server'}"
            " failed, the"
            " last one worked",
            line=failure.line,
            expected="a start-up that works the first time",
            observed=reason(startup),
            remedy=f"compare the two: `vlogcheck diff` on the lines from {startup.first_line} and from"
            f" {rounds[-1].first_line};"
            " if nothing was changed in between, it can fail again",
        )
