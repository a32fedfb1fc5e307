"""VL402: max_num_seqs holds before the KV cache does."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._load import counted
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.registry import Finding, Missing, Severity, check


@check("max_num_seqs caps the concurrency below what the KV cache holds", Severity.NOTE)
def capped_by_max_num_seqs(ceiling: ConcurrencyCeiling, context: Context) -> Iterator[Finding]:
    """Say that the printed concurrency is not reached because fewer requests may run at once."""
    if ceiling.max_num_seqs is None:
        raise Missing("the log does not state max_num_seqs")
    if not ceiling.capped:
        return
    cap, held = ceiling.max_num_seqs, int(ceiling.kv_lo / ceiling.engines)
    if held <= cap:
        return  # the rest is less than one request
    on = f" on each of {ceiling.engines} engines" if ceiling.engines > 1 else ""
    expected = context.expectation.concurrency
    wanted = expected is not None and ceiling.hi < expected <= ceiling.kv_lo
    yield Finding(
        f"at most {counted(cap)} at once{on}, the KV cache holds {held:,} of {ceiling.context:,} tokens",
        line=ceiling.line,
        expected=f"{float(ceiling.kv_lo):,.2f} requests of {ceiling.context:,} tokens, as the KV cache holds",
        observed=f"max_num_seqs={cap}{on}",
        remedy=f"--max-num-seqs {held} uses the whole KV cache at that length; keep {cap} if that is the"
        " load you plan for",
        explanation="the printed maximum concurrency knows nothing of max_num_seqs",
        fix={"max_num_seqs": held},
        severity=Severity.WARNING if wanted else None,
    )
