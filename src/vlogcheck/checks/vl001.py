"""VL001: the log shows no vLLM start-up."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import LogFacts
from vlogcheck.registry import Finding, Severity, check


@check("the log shows no vLLM start-up", Severity.WARNING, per_log=True)
def no_startup_found(log: LogFacts) -> Iterator[Finding]:
    """Flag a log in which nothing identifies vLLM."""
    if log.startups:
        return
    yield Finding(
        "this is not a vLLM log, or it begins after the start-up" if log.lines else "the log is empty",
        line=1 if log.lines else None,
        expected="vLLM's banner, weight report or KV cache lines",
        observed=f"{log.lines:,} line{'s' if log.lines != 1 else ''} without any of them",
        remedy="give the server's own output from its first line on, both stdout and stderr"
        " (VLLM_LOGGING_LEVEL=INFO or lower)",
    )
