"""VL906: out of device memory while allocating the KV cache."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import Remedy, amount, card_of, lower_utilization, missing_gib, oom_finding
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding, Severity, check


@check("out of device memory while allocating the KV cache", Severity.ERROR)
def out_of_memory_allocating(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a KV cache that was sized but could not be allocated."""
    failure = outcome.failure
    if failure is None or failure.kind != "oom" or failure.phase != "allocating the KV cache":
        return
    record = failure.record
    assert isinstance(record, OutOfMemory)
    missing = missing_gib(record)
    if missing == 0 and record.tried_gib is not None and record.free_gib is not None:
        yield oom_finding(
            failure,
            Remedy(
                f"the card has the room ({record.free_gib:.2f} GiB), the process may not use it: look for its quota (VL115)"
                " before any flag",
                {},
            ),
            expected="an allocation smaller than what is free succeeds",
            what="while allocating the KV cache",
        )
        return
    share = lower_utilization(card_of(context, record), missing) if missing is not None else None
    fix: dict[str, int | float | str] = {}
    if share is not None and missing is not None:
        fix["gpu_memory_utilization"] = share
        text = f"--gpu-memory-utilization {share:.2f} gives back the missing {amount(missing)}"
    else:
        text = "lower --gpu-memory-utilization" + (
            f" by {amount(missing)} ÷ the card's memory" if missing else " by the size asked for ÷ the card's memory"
        )
    yield oom_finding(
        failure,
        Remedy(f"{text}; first see who else took memory on the card since the profile run", fix),
        expected="the KV cache that was sized can be allocated",
        what="while allocating the KV cache",
    )
