"""VL315: tensor-parallel ranks hold copies of the same KV cache."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import Plans, capacity_line
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.units import format_gib


@check("tensor-parallel ranks hold copies of the same KV cache", Severity.NOTE)
def replicated_kv_heads(plans: Plans, context: Context) -> Iterator[Finding]:
    """Flag more tensor-parallel ranks than KV heads (or latents), so that ranks hold copies."""
    plan = plans[0]
    tp = plan.setup.options.tensor_parallel_size
    settings = plan.plan.settings
    if tp == 1 or settings is None or plan.plan.pool is None:
        return
    heads = 1 if settings.use_mla else plan.setup.config.num_kv_heads
    shards = plan.setup.options.decode_context_parallel_size
    if heads <= 0 or tp <= heads * shards:
        return
    copies = tp // (heads * shards)
    what = "the latent (MLA)" if settings.use_mla else f"{heads} KV head{'s' if heads > 1 else ''}"
    yield Finding(
        f"{what} over {tp} tensor-parallel ranks: every token is kept {copies} times",
        line=capacity_line(plan.engine),
        expected=f"1/{tp} of every token on each of {tp} ranks",
        observed=f"1/{heads} on each: {copies} copies",
        remedy=_remedy(plan, tp, heads, copies),
        explanation="KV heads cannot be split further than one to a rank; more ranks add weights' memory, not tokens per GiB",
        fix={"decode_context_parallel_size": copies * shards},
    )


def _remedy(plan: ExpectedEngine, tp: int, heads: int, copies: int) -> str:
    said = f"--decode-context-parallel-size {copies} keeps each token once and makes the pool {copies} times as large"
    if heads > 1:
        said += f"; or --tensor-parallel-size {heads} with --data-parallel-size {copies}"
    if plan.available is not None and plan.available.lo > 0:
        wasted = plan.available.lo * (copies - 1) // copies
        said += f" ({format_gib(wasted)} of {format_gib(plan.available.lo)} on every rank are copies)"
    return said
