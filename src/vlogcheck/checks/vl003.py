"""VL003: the log is cut off or damaged."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import LogFacts
from vlogcheck.failures import failure_of
from vlogcheck.registry import Finding, Severity, check


@check("the log is cut off or damaged", Severity.NOTE, per_log=True)
def log_damaged(log: LogFacts) -> Iterator[Finding]:
    """Flag a compressed file that ends early, and a last line without its end in a start-up that was not complete."""
    if log.damage is not None:
        yield Finding(
            f"the file is damaged: {log.damage}",
            line=log.damaged_at or None,
            expected="a file that can be read to its end",
            observed=f"{log.damaged_at:,} line{'s' if log.damaged_at != 1 else ''} until there",
            remedy=f"copy the file again and see that it goes on after line {log.damaged_at:,}; if it is still being written,"
            " read it uncompressed",
            severity=Severity.WARNING,
        )
    waiting = [s for s in log.startups if not s.usable and failure_of(s) is None]
    if log.truncated and waiting and waiting[-1] is log.startups[-1]:
        yield Finding(
            "the log is cut in the middle of a line, before the server was ready",
            line=log.end,
            expected="a last line that ends",
            observed=f"line {log.end:,} has no end",
            remedy=f"give the log from line {log.end:,} on: lines of the ledger may be missing",
        )
