"""VL907: out of device memory while capturing graphs."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._failing import Remedy, amount, card_of, lower_utilization, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Severity, check


@check("out of device memory while capturing graphs", Severity.ERROR)
def out_of_memory_capturing(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a device allocation that failed during graph capture."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or failure.phase != "capturing graphs":
        return
    record = failure.record
    assert isinstance(record, OutOfMemory)
    missing = missing_gib(record)
    share = lower_utilization(card_of(context, record), missing) if missing is not None else None
    fix: dict[str, int | float | str] = {}
    if share is not None and missing is not None:
        fix["gpu_memory_utilization"] = share
        text = f"--gpu-memory-utilization {share:.2f} leaves the {amount(missing)} that were missing at this graph"
        text += ", 0.80 the usual room for all of them" if share > 0.8 else ""
    else:
        text = "--gpu-memory-utilization 0.80"
    version = context.startup.version
    uncounted = version is not None and parse_release(version).before("0.20.2")
    yield oom_finding(
        failure,
        Remedy(
            f"{text}; or fewer graphs (--max-num-seqs, cudagraph_capture_sizes); or --enforce-eager, which saves 1"
            " to 2 GB of"
            " device memory and costs 10 to 20 % of latency",
            fix,
        ),
        expected="room for the graphs outside the budget" if uncounted else "room for the graphs inside the budget",
        what="while capturing graphs",
    )
