"""VL904: out of device memory while loading the weights."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from vlogcheck.checks._failing import Remedy, amount, card_of, lower_utilization, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Failure, Outcome
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
    if not failure.shown:
        yield _unknown_phase(failure, context, missing)
        return
    least = f"at least {amount(missing)} more per card are needed for the weights alone: " if missing else ""
    remedy = Remedy(
        f"{least}--tensor-parallel-size {2 * tp} halves them, quantised weights take a half or a quarter;"
        " --gpu-memory-utilization changes nothing here, it only sizes the KV cache that comes later",
        {"tensor_parallel_size": 2 * tp},
    )
    yield oom_finding(failure, remedy, expected="the weights fit on the card", what="while loading the weights")


def _unknown_phase(failure: Failure, context: Context, missing: Decimal | None) -> Finding:
    """Say of a message without its start-up what each phase would mean, instead of taking it for the first."""
    assert isinstance(failure.record, OutOfMemory)
    least = f"at least {amount(missing)} more are needed on the card: " if missing else ""
    share = lower_utilization(card_of(context, failure.record), missing or Decimal(0)) if missing is not None else None
    below = f" (to {share} or less)" if share is not None else ""
    remedy = Remedy(
        f"give the lines before line {failure.record.line} too, they tell the phase; {least}while the weights are loaded"
        " only more cards (--tensor-parallel-size 2) or smaller weights give them, after 'Available KV cache memory' a lower"
        f" --gpu-memory-utilization does{below}",
        {},
    )
    return oom_finding(
        failure, remedy, expected="the allocation fits on the card", what="in a phase that the log does not show"
    )
