"""VL409: running requests were preempted for lack of KV cache."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._load import average_tokens
from vlogcheck.context import Context
from vlogcheck.records import Preempted
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.runtime import RunTime


@check("running requests were preempted for lack of KV cache", Severity.WARNING)
def preemptions(runtime: RunTime | None, preempted: Preempted | None, context: Context) -> Iterator[Finding]:
    """Flag preemptions in the metrics lines (from 0.13) or in V0's own line."""
    count, line = 0, None
    if runtime is not None and runtime.preemptions:
        count, line = runtime.preemptions, runtime.first_preemption
    if preempted is not None:
        seen = context.startup.counts.get("Preempted", 1)
        count, line = max(count, preempted.total or 0, seen), line or context.all(Preempted)[0].line
    if not count:
        if runtime is None and preempted is None:
            raise Missing("the log has no metrics lines")
        return
    fix: dict[str, int | float | str] = {}
    peak = (runtime.peak_full or runtime.peak_usage) if runtime is not None else None
    remedy = (
        "lower --max-num-seqs to what fits at the length that is really used (one running request less for each of the"
        f" {count:,} preempted at the same time), or give the KV cache more memory"
    )
    observed = f"{count:,} preemption{'s' if count != 1 else ''}, the first on line {line}"
    if peak is not None and peak.running > 1:
        average = average_tokens(context, peak.running, peak.usage)
        keep = max(peak.running - 1, 1)
        if average is not None:
            observed += f"; {peak.running} ran with {average.text} (line {peak.line})"
        remedy = (
            f"--max-num-seqs {keep} keeps the KV cache from running over at the length that is used; or"
            " give it more memory"
        )
        fix["max_num_seqs"] = keep
    yield Finding(
        f"{count:,} running request{'s were' if count != 1 else ' was'} preempted: the KV cache ran full"
        " while they grew",
        line=line,
        expected="no preemption: every request that starts has room to finish",
        observed=observed,
        remedy=remedy,
        explanation="a preempted request loses its KV cache and is computed again: latency, not memory, pays for it",
        fix=fix,
    )
