"""VL904: out of device memory while loading the weights."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import Remedy, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Severity, check


@check("out of device memory while loading the weights", Severity.ERROR)
def out_of_memory_loading(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a device allocation that failed before the weights were in place."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or failure.phase not in ("starting", "loading weights"):
        return
    record = failure.record
    assert isinstance(record, OutOfMemory)
    config = context.startup.config
    tp = (config.tensor_parallel_size if config is not None else None) or 1
    missing = missing_gib(record)
    least = f"at least {missing:.2f} GiB more per card are needed for the weights alone: " if missing else ""
    remedy = Remedy(
        f"{least}--tensor-parallel-size {2 * tp} halves them, quantised weights take a half or a quarter;"
        " --gpu-memory-utilization changes nothing here, it only sizes the KV cache that comes later",
        {"tensor_parallel_size": 2 * tp},
    )
    yield oom_finding(failure, remedy, expected="the weights fit on the card", what="while loading the weights")
