"""VL908: out of device memory while warming up."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import Remedy, amount, card_of, lower_utilization, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Severity, check

_PHASES = ("warming up", "starting the API server", "ready")


@check("out of device memory while warming up", Severity.ERROR)
def out_of_memory_warming_up(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a device allocation that failed after the KV cache was in place: sampler, pooler, kernels."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or failure.phase not in _PHASES or failure.after_ready:
        return
    record = next((r for r in context.startup.all(OutOfMemory) if r.dummy_requests and r.line >= failure.line), None)
    first = failure.record
    assert isinstance(first, OutOfMemory)
    missing = missing_gib(first)
    share = lower_utilization(card_of(context, first), missing) if missing is not None else None
    fix: dict[str, int | float | str] = {}
    texts = []
    if record is not None and record.dummy_requests and record.dummy_requests > 1:
        fix["max_num_seqs"] = record.dummy_requests // 2
        texts.append(
            f"--max-num-seqs {record.dummy_requests // 2} halves what {record.dummy_requests} requests need"
            " (requests × vocabulary × 4 bytes and its copies)"
        )
    if share is not None and missing is not None:
        fix["gpu_memory_utilization"] = share
        texts.append(f"--gpu-memory-utilization {share:.2f} leaves the {amount(missing)} that were missing")
    elif not texts:
        by = f" by {amount(missing)} ÷ the card's memory" if missing else ""
        texts.append(f"lower --max-num-seqs to half (128 where nothing is stated) or --gpu-memory-utilization{by}")
    yield oom_finding(
        failure,
        Remedy("; or ".join(texts), fix),
        expected="room for the warm-up beside the KV cache",
        what="while warming up" + (f" the {record.phase}" if record is not None and record.phase else ""),
    )
