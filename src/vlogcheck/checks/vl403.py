"""VL403: max_num_seqs can never be reached, however short the requests are."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.checks._kv import Plans, capacity_line
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_bytes


@check("max_num_seqs can never be reached, at any length", Severity.WARNING)
def max_num_seqs_out_of_reach(plans: Plans) -> Iterator[Finding]:
    """Flag a fixed part per request that fills the pool before `max_num_seqs` requests run."""
    judged = False
    for plan in plans:
        cap = plan.engine.ledger["max_num_seqs"].interval
        blocks, least = observed_blocks(plan), plan.plan.blocks_per_request(1)
        if cap is None or blocks is None or not least:
            continue
        judged = True
        most = blocks.hi // least
        if most >= cap.lo:
            continue
        tokens = sum(group.block_size for group in plan.plan.groups if group.kind != "MambaSpec")
        size = plan.plan.bytes_per_block()
        fixed = f"{least} blocks" + (f" ({format_bytes(least * size)} per rank)" if size else "")
        yield Finding(
            f"{cap.lo} requests can never run at once: the shortest ones fill the KV cache with {most:,}",
            line=capacity_line(plan.engine),
            expected=f"max_num_seqs={cap.lo} requests of some length",
            observed=f"{blocks.lo:,} blocks, {fixed} for the shortest request: {most:,} requests",
            remedy=f"--max-num-seqs {most}: more are preempted or wait whatever their length",
            explanation=f"every request holds a whole block in each of {len(plan.plan.groups)} groups of layers"
            + (f" (room for {tokens:,} tokens)" if tokens else ""),
            fix={"max_num_seqs": most},
        )
    if not judged:
        raise Missing("the log does not state max_num_seqs, or its blocks are not known")
