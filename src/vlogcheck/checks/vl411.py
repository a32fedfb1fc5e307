"""VL411: requests waited though the KV cache had room."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._load import counted, seqs_reached
from vlogcheck.context import Context
from vlogcheck.records import ChunkedPrefill
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.runtime import RunTime


@check("requests waited though the KV cache had room", Severity.NOTE)
def waiting_with_room(runtime: RunTime, context: Context) -> Iterator[Finding]:
    """Say which limit holds where requests wait and the KV cache is not full."""
    peak = runtime.peak_roomy
    if peak is None:
        return
    cap = seqs_reached(context, peak)
    observed = (
        f"{peak.running} running, {peak.waiting} waiting, {peak.usage:g} % of the KV cache used;"
        f" on {runtime.roomy:,} of {runtime.samples:,} metrics lines"
    )
    if cap is not None:
        held = int(peak.running * 100 / peak.usage) if peak.usage > 0 else cap + peak.waiting
        yield Finding(
            f"{counted(peak.waiting)} waited while max_num_seqs={cap} held",
            line=peak.line,
            expected=f"{cap + peak.waiting} requests at once, for which the KV cache has room",
            observed=observed,
            remedy=f"--max-num-seqs {min(held, cap + peak.waiting)}: at the length that is used the KV cache"
            f" holds about {held:,}",
            explanation="max_num_seqs holds before the KV cache does",
            fix={"max_num_seqs": min(held, cap + peak.waiting)},
            severity=Severity.WARNING,
        )
        return
    yield Finding(
        f"{counted(peak.waiting)} waited with {peak.running} running and {100 - peak.usage:g} % of the KV cache free",
        line=peak.line,
        expected="requests start while the KV cache has room",
        observed=observed,
        remedy=f"if the lines are more than a burst of new prompts: raise --max-num-batched-tokens {_batch(context)}, which is"
        f" what the {peak.waiting} prompts are admitted by;"
        f" {runtime.roomy:,} of {runtime.samples:,} metrics lines show it",
        explanation="neither the KV cache nor a stated max_num_seqs holds: prompts wait for the step's token"
        " budget, an adapter, a"
        " grammar, the encoder or a KV connector",
    )


def _batch(context: Context) -> str:
    """Return the tokens of a step as far as the log tells, and twice as many."""
    stated, line = context.startup.args.get("max_num_batched_tokens"), context.startup.last(ChunkedPrefill)
    tokens = stated if isinstance(stated, int) and not isinstance(stated, bool) else None
    if tokens is None and line is not None:
        tokens = line.max_num_batched_tokens
    return f"from {tokens:,} to {2 * tokens}" if tokens else "(2,048 by default, 8,192 on cards of 70 GiB and more)"
