"""VL001: the log shows no vLLM start-up."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import LogFacts
from vlogcheck.registry import Finding, Severity, check

_WHAT = {
    "serving": "the log begins after the start-up",
    "vllm": "lines of vLLM's, none of which shows a start-up",
}


@check("the log shows no vLLM start-up", Severity.WARNING, per_log=True)
def no_startup_found(log: LogFacts) -> Iterator[Finding]:
    """Flag a log in which nothing identifies vLLM."""
    if log.startups:
        return
    lines = f"{log.lines:,} line{'s' if log.lines != 1 else ''}"
    yield Finding(
        _WHAT.get(log.others, "this is not a vLLM log, or it begins after the start-up")
        if log.lines
        else "the log is empty",
        line=1 if log.lines else None,
        expected="vLLM's banner, weight report or KV cache lines",
        observed=f"{lines} without any of them",
        remedy=f"{lines} and no start-up: give what the server printed before them too, from its banner"
        " ('Initializing a V1 LLM engine …') on, both stdout and stderr (VLLM_LOGGING_LEVEL=INFO or lower)"
        if log.lines
        else "0 lines: start the server with both stdout and stderr in this file (VLLM_LOGGING_LEVEL=INFO or lower)",
    )
