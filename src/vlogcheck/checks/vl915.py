"""VL915: an engine did not come up or answer in time."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import duration
from vlogcheck.checks._failing import when_text
from vlogcheck.failures import Outcome
from vlogcheck.records import EngineTimeout
from vlogcheck.registry import Finding, Severity, check


@check("an engine did not come up or answer in time", Severity.ERROR)
def engine_timed_out(outcome: Outcome) -> Iterator[Finding]:
    """Flag a time-out of vLLM's own processes where nothing else explains it."""
    failure = outcome.failure
    if failure is None or not isinstance(failure.record, EngineTimeout):
        return
    record = failure.record
    if record.seconds:
        doubled = int(2 * record.seconds)
        remedy = (
            f"VLLM_ENGINE_READY_TIMEOUT_S={doubled} waits twice as long; a local disk or a prefetched model loads"
            " faster"
        )
        fix: dict[str, int | float | str] = {"VLLM_ENGINE_READY_TIMEOUT_S": doubled}
    else:
        remedy = (
            f"look at what the workers did last before line {record.line}: compilation and first requests take minutes, a"
            " hanging rank takes for ever"
        )
        fix = {}
    yield Finding(
        f"the engine did not answer in time {when_text(failure)}",
        line=record.line,
        expected=f"an answer within {duration(record.seconds)}" if record.seconds else "an answer",
        observed="none",
        remedy=remedy,
        explanation="loading slowly is the usual reason, not a lack of memory" if not failure.after_ready else "",
        fix=fix,
    )
