"""VL910: out of device memory after the server was ready."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from vlogcheck.checks._failing import Remedy, amount, card_of, lower_utilization, missing_gib, oom_finding, when_text
from vlogcheck.context import Context
from vlogcheck.failures import Failure, Outcome
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Severity, check


@check("out of device memory while serving", Severity.ERROR)
def out_of_memory_serving(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a server that started cleanly and ran out of memory later."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or not failure.after_ready:
        return
    record = failure.record
    assert isinstance(record, OutOfMemory)
    card = card_of(context, record)
    missing = missing_gib(record)
    share = lower_utilization(card, missing) if missing is not None else None
    fix: dict[str, int | float | str] = {}
    texts = ["more cards or quantised weights, so that the same KV cache leaves a thicker margin"]
    if share is not None and missing is not None:
        fix["gpu_memory_utilization"] = share
        texts.append(f"until then --gpu-memory-utilization {share:.2f} returns the {amount(missing)} that were missing")
    texts.append("a smaller --max-num-batched-tokens lowers the peak of long inputs and large batches")
    finding = oom_finding(
        failure,
        Remedy("; ".join(texts), fix),
        expected=_margin(card.total_gib, card.utilization),
        what=when_text(failure),
    )
    yield finding._replace(
        observed=finding.observed + _state(failure),
        explanation=finding.explanation
        or "a start-up's ledger does not hold the peak of a long input or a large batch",
    )


def _margin(total: Decimal | None, share: Decimal | None) -> str:
    if total is None or share is None:
        return "a margin outside the KV cache for the largest batch"
    return (
        f"activations within the {float((1 - share) * total):.2f} GiB that utilization {float(share):g} leaves outside"
    )


def _state(failure: Failure) -> str:
    """Return what the metrics line before it said."""
    sample = failure.sample
    if sample is None:
        return ""
    return (
        f"; just before (line {sample.line}) {sample.running} requests ran, {sample.waiting} waited, KV cache"
        f" {sample.usage:g} % full"
    )
