"""VL916: the server failed for a reason that is not memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vlogcheck._lazy import pattern
from vlogcheck.checks._failing import ranks_text, when_text
from vlogcheck.failures import Outcome
from vlogcheck.records import Raised, WorkerFailed
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_LENGTH = 240
_SHORT = 100
_OF_MEMORY = pattern(
    r"\bmemory\b|\bKV cache\b|\bmax(?:imum)? seq(?:uence)? len|\bGiB\b|\bnumber of pages available\b"
    r"|OutOfMemory|\berror code is 20700[15]\b",  # Ascend: no memory, no resources
    re.IGNORECASE,
)
"""What a refusal says whose figures were cut off: memory is not excluded then."""


_OTHER_MEMORY = pattern(
    r"illegal memory access|host memory first|memory[ _]?format|non-?contiguous memory|memory space [sv]mem|memory overlap"
    r"|shared memory file|memory address|memory layout|memory-mapp\w+",
    re.IGNORECASE,
)
"""Sentences of drivers and torch in which memory is a place, not an amount."""


def _speaks_of_memory(error: str) -> bool:
    return _OF_MEMORY.search(_OTHER_MEMORY.sub("", error)) is not None


def _short(error: str) -> str:
    """Return the error's class and the beginning of its text, in one line."""
    if not error:
        return "by an error that the log does not hold"
    kind, colon, text = error.partition(": ")
    line = " ".join(f"{kind.rpartition('.')[2]}{colon}{text}".split())
    return ("by an error that speaks of memory: " if _speaks_of_memory(error) else "not for memory: ") + (
        line if len(line) <= _SHORT else f"{line[: _SHORT - 1].rstrip()}…"
    )


@check("the server failed for a reason that is not memory", Severity.ERROR)
def failed_for_another_reason(outcome: Outcome, startup: Startup) -> Iterator[Finding]:
    """Flag a failed start-up or a dead engine whose error says nothing of memory, with the error."""
    failure = outcome.failure
    if failure is None or failure.kind != "error":
        return
    record = failure.record
    error = ""
    if isinstance(record, Raised):
        error = f"{record.error}{record.ending}" + (f": {record.text}" if record.text else "")
    elif isinstance(record, WorkerFailed):
        error = record.error or ""
        if error == "%s":  # 0.8 logs the placeholder instead of the error
            error = ""
    script = failure.after_ready and startup.offline and isinstance(record, Raised) and record.level is None
    what = "the start-up failed" if failure.shown else "the engine failed"
    if failure.after_ready:
        what = "the script failed" if script else "the engine failed"
    yield Finding(
        f"{what} {when_text(failure)}{ranks_text(failure)}, {_short(error)}",
        line=record.line,
        expected="a start-up that comes to its end"
        if failure.shown and not failure.after_ready
        else "a server that keeps serving",
        observed=error[:_LENGTH] or "the log holds no more than the announcement of a traceback",
        remedy=f"read the traceback that ends at line {record.line}: "
        + (
            "it speaks of memory in a wording without the figures, or they are cut off: give the lines after it too"
            if _speaks_of_memory(error)
            else "no term of the memory ledger is at fault as far as the log tells"
        ),
        severity=Severity.WARNING if script else None,
        explanation=f"printed {failure.repeats} times" if failure.repeats > 1 else "",
    )
