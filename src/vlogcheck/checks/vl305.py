"""VL305: the tokens are not those the configuration gives in the printed memory (layers that differ)."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.checks._kv import (
    Plans,
    capacity_line,
    contradiction,
    cost_of,
    diagnosed,
    overridden,
    same_for_all,
    tokens_text,
)
from vlogcheck.checks._reserved import reserved_for_media
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the KV cache's tokens are not those of the configuration", Severity.ERROR)
def tokens_outside_the_plan(plans: Plans, context: Context) -> Iterator[Finding]:
    """Flag tokens that lie outside what the layers, groups and pages of the configuration give in the printed memory."""
    if overridden(context.startup):
        raise Missing("the number of blocks was set by hand: memory does not explain it")
    judged = False
    for plan in plans:
        tokens, planned = plan.engine.ledger["tokens"], plan.plan.tokens_interval
        if tokens.interval is None or tokens.status != "printed":
            continue
        if same_for_all(plan) and cost_of(plan) is not None:
            continue  # VL304's
        if observed_blocks(plan) is None and plan.plan.pool is not None:
            judged = True
            yield _no_layout(context, plan)
            continue
        if planned is None or same_for_all(plan):
            continue
        judged = True
        if planned.overlaps(tokens.interval):
            continue
        fewer = tokens.interval.hi < planned.lo
        if fewer and reserved_for_media(context, plan):
            continue
        yield _finding(context, plan, fewer=fewer)
    if not judged:
        raise Missing("the log prints no memory for the KV cache, or all layers are alike (see VL304)")


def _finding(context: Context, plan: ExpectedEngine, *, fewer: bool) -> Finding:
    tokens, planned = plan.engine.ledger["tokens"], plan.plan.tokens_interval
    assert tokens.interval is not None
    assert planned is not None
    weight = contradiction(context, plan)
    explanation = diagnosed(plan, tokens.interval, "tokens", length=plan.plan.max_model_len)
    severity = weight.severity
    if fewer and not plan.setup.complete:
        severity = Severity.WARNING
        explanation += "; or a rank whose memory is not printed has less of it"
    if weight.doubt:
        explanation += f"; {weight.doubt}"
    seen, due = tokens.interval.lo, planned.mid
    return Finding(
        f"{seen:,} tokens are {seen / due:.4g} times what the configuration gives in this memory"
        if due
        else "no tokens planned",
        line=capacity_line(plan.engine),
        expected=f"{tokens_text(planned)} tokens ({_layers(plan)})",
        observed=f"{seen:,} tokens",
        remedy=f"correct the changed term, or plan with what the log prints: {_printed(plan)}",
        explanation=explanation,
        severity=severity,
    )


def _no_layout(context: Context, plan: ExpectedEngine) -> Finding:
    """Return the finding for figures that no number of blocks of the planned layout gives."""
    weight = contradiction(context, plan)
    tokens, planned = plan.engine.ledger["tokens"], plan.plan.tokens_interval
    assert tokens.interval is not None
    seen = tokens.interval
    explanation = diagnosed(plan, seen, "tokens", length=plan.plan.max_model_len) if planned is not None else ""
    if weight.doubt:
        explanation = f"{explanation}; {weight.doubt}" if explanation else weight.doubt
    return Finding(
        "no number of blocks gives the printed tokens and concurrency with the layers of the configuration",
        line=capacity_line(plan.engine),
        expected=f"figures of {_layers(plan)}" + (f": {tokens_text(planned)} tokens" if planned is not None else ""),
        observed=_printed(plan),
        remedy=f"give the configuration of the model that was served; until then plan with {_printed(plan)} and nothing at other"
        " lengths",
        explanation=explanation,
        severity=weight.severity,
    )


def _layers(plan: ExpectedEngine) -> str:
    groups = len(plan.plan.groups)
    size = plan.plan.specs[0].spec.block_size if plan.plan.specs else 0
    said = f"{sum(item.count for item in plan.plan.specs)} layers in {groups} group{'s' if groups != 1 else ''}"
    return f"{said}, blocks of {size} tokens" if size else said


def _printed(plan: ExpectedEngine) -> str:
    ledger = plan.engine.ledger
    tokens, printed, length = ledger["tokens"].interval, ledger["concurrency"], ledger["max_model_len"].interval
    said = f"{tokens.lo:,} tokens" if tokens else ""
    if printed.lo is not None and printed.hi is not None and length is not None:
        said += f", {float(printed.lo + printed.hi) / 2:.2f} requests of {length.lo:,} tokens"
    return said
