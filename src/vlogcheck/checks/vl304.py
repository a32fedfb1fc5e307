"""VL304: a token costs another number of bytes than the configuration says (layers that are all alike)."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import (
    ROUNDING,
    Cost,
    Plans,
    bytes_text,
    capacity_line,
    contradiction,
    cost_of,
    diagnosed,
    overridden,
    same_for_all,
)
from vlogcheck.checks._reserved import reserved_for_media
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.registry import Finding, Missing, Severity, check


@check("KV bytes per token are not those of the configuration", Severity.ERROR)
def kv_bytes_per_token(plans: Plans, context: Context) -> Iterator[Finding]:
    """Flag memory ÷ tokens that no rounding brings to the configuration's bytes per token and rank."""
    if overridden(context.startup):
        raise Missing("the number of blocks was set by hand: memory does not explain it")
    judged = False
    for plan in plans:
        if not same_for_all(plan) or (cost := cost_of(plan)) is None:
            continue
        judged = True
        if cost.agrees or (cost.more and reserved_for_media(context, plan)):
            continue
        yield _finding(context, plan, cost)
    if not judged:
        raise Missing("the log prints no memory for the KV cache, or the layers differ (see VL305)")


def _finding(context: Context, plan: ExpectedEngine, cost: Cost) -> Finding:
    weight = contradiction(context, plan)
    low, high = cost.seen
    explanation = diagnosed(plan, cost.seen)
    severity = weight.severity
    if cost.more and not plan.setup.complete:
        severity = Severity.WARNING
        explanation += "; or a rank whose memory is not printed has less of it"
    if weight.doubt:
        explanation += f"; {weight.doubt}"
    planned = plan.plan.tokens_interval
    tokens = plan.engine.ledger["tokens"]
    held = tokens.interval.lo if tokens.interval else 0
    ratio = float((low + high) / 2 / cost.expected)
    return Finding(
        f"a token takes {ratio:.4g} times the KV cache memory that {_origin(context)} says",
        line=capacity_line(plan.engine),
        expected=f"{bytes_text(cost.expected)} per token and rank"
        + (f", so {planned.lo:,} tokens" if planned is not None else ""),
        observed=f"{bytes_text(low, high)} per token and rank ({cost.basis or f'memory ÷ {held:,} tokens, within {ROUNDING}'})",
        remedy=f"correct the changed term, or plan with {bytes_text((low + high) / 2)} per token: {held:,} tokens in this memory"
        + (f" instead of {planned.lo:,}" if planned is not None else ""),
        explanation=explanation,
        severity=severity,
    )


def _origin(context: Context) -> str:
    return (
        "the configuration"
        if context.model is None or context.model.stated
        else f"the configuration {context.model.origin}"
    )
