"""VL309: the attention block grew to cover a state page, so every request has a large fixed part."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.checks._kv import Plans
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.records import HybridBlockSize
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.units import format_bytes


@check("the block size grew to the size of a state page", Severity.NOTE)
def block_size_of_hybrid(record: HybridBlockSize, plans: Plans | None, context: Context) -> Iterator[Finding]:
    """Say what a request holds at least, in blocks, tokens and requests."""
    size = record.block_size_tokens
    plan = next((p for p in plans or () if p.plan.pool is not None), None)
    least = plan.plan.blocks_per_request(1) if plan is not None else None
    if plan is None or not least:
        remedy = (
            f"count every request as at least {size:,} tokens in each group of layers; how many groups there are needs"
            " --model-config"
        )
        observed = f"blocks of {size:,} tokens"
    else:
        observed, remedy = _numbers(plan, size, least)
    yield Finding(
        f"attention blocks hold {size:,} tokens: a short request takes as much as one of {size:,} tokens",
        line=record.line,
        expected="blocks of 16 tokens on GPUs, where layers are alike",
        observed=observed,
        remedy=f"{remedy}; --block-size {size} says that the plan does",
        fix={"block_size": size},
        explanation="every page is as large as a state (Mamba, linear attention), and so is the smallest piece of KV cache",
    )


def _numbers(plan: ExpectedEngine, size: int, least: int) -> tuple[str, str]:
    groups = len(plan.plan.groups)
    observed = f"blocks of {size:,} tokens, {groups} groups of layers, {least} blocks for the shortest request"
    per_block = plan.plan.bytes_per_block()
    if per_block:
        observed += f" ({format_bytes(per_block * least)} per rank)"
    blocks = observed_blocks(plan)
    if blocks is None:
        return observed, f"count every request as at least {least} blocks of {size:,} tokens"
    most = Fraction(blocks.lo, least)
    return observed, (
        f"however short the requests are, {int(most):,} run at once ({blocks.lo:,} blocks ÷ {least}): keep"
        f" --max-num-seqs at or below {int(most):,}"
    )
