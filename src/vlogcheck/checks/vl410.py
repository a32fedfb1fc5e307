"""VL410: requests waited because the KV cache was full."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._load import average_tokens, counted
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.runtime import FULL_PERCENT, RunTime


@check("requests waited because the KV cache was full", Severity.WARNING)
def kv_cache_full(runtime: RunTime, ceiling: ConcurrencyCeiling | None, context: Context) -> Iterator[Finding]:
    """Flag a KV cache that was full while requests waited, with the tokens per request that it implies."""
    peak = runtime.peak_full
    if peak is None:
        return
    running = Fraction(runtime.full_running, runtime.full)
    usage = runtime.full_usage / runtime.full
    average = average_tokens(context, running, usage) if running else None
    observed = (
        f"{float(running):.1f} running on average over the {runtime.full:,} of {runtime.samples:,} metrics"
        f" lines like it, {usage:.1f} % of the KV cache used"
    )
    remedy = f"plan for {counted(int(running))} at once"
    explanation = ""
    if average is not None:
        observed += f": {average.text}"
        remedy += f" of {average.tokens:,} tokens; {int(running) + peak.waiting} need"
        remedy += (
            f" {float((running + peak.waiting) / running):.2f} times the KV cache memory, or requests that much shorter"
        )
        planned = context.expectation.context
        if planned is not None and average.tokens > planned:
            explanation = f"requests are {average.tokens / planned:.2f} times as long as the planned {planned:,} tokens"
        elif ceiling is not None and average.tokens < ceiling.context:
            explanation = (
                f"the ceiling of {float(ceiling.kv_lo):,.2f} is for {ceiling.context:,} tokens; at"
                f" {average.tokens:,} more fit"
            )
    yield Finding(
        f"{counted(peak.waiting)} waited with {peak.running} running: the KV cache was full",
        line=peak.line,
        expected=f"less than {FULL_PERCENT:g} % of the KV cache used while requests wait",
        observed=observed,
        remedy=remedy,
        explanation=explanation,
    )
