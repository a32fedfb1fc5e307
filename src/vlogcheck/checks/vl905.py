"""VL905: out of device memory while profiling."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import Remedy, amount, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import ChunkedPrefill, OutOfMemory
from vlogcheck.registry import Finding, Severity, check

_STEP = 2048


@check("out of device memory while profiling", Severity.ERROR)
def out_of_memory_profiling(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a device allocation that failed in the profile run or in compilation, before the KV cache was sized."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or failure.phase != "profiling memory":
        return
    record = failure.record
    assert isinstance(record, OutOfMemory)
    batch = _batched_tokens(context)
    missing = missing_gib(record)
    least = f"{amount(missing)} are missing at least: " if missing else ""
    fix: dict[str, int | float | str] = {}
    if batch:
        fix["max_num_batched_tokens"] = batch // 2
        text = f"--max-num-batched-tokens {batch // 2} (half of {batch:,}) halves the activations of the profile run"
    else:
        text = f"lower --max-num-batched-tokens ({_STEP:,} is its smallest default): the profile run's activations shrink with it"
    remedy = Remedy(
        f"{least}{text}; or more cards, or quantised weights; --gpu-memory-utilization plays no part yet", fix
    )
    yield oom_finding(
        failure,
        remedy,
        expected="weights and the activations of the largest batch fit on the card",
        what="while profiling",
    )


def _batched_tokens(context: Context) -> int | None:
    stated = context.startup.args.get("max_num_batched_tokens")
    if isinstance(stated, int) and stated > 1:
        return stated
    line = context.startup.last(ChunkedPrefill)
    return line.max_num_batched_tokens if line is not None else None
