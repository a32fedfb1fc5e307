"""VL307: the stated KV bytes per token are not those of the log."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._kv import Capacities, bytes_text, capacity_line, cost_of, same_for_all
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.expected import ExpectedEngine
from vlogcheck.ledger import Number
from vlogcheck.observed import EngineLedger
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import Interval


@check("the stated KV bytes per token are contradicted", Severity.ERROR)
def stated_bytes_per_token(capacities: Capacities, expected: Expectation, context: Context) -> Iterator[Finding]:
    """Flag `--expect-kv-bytes-per-token` that is neither a rank's figure nor the whole model's."""
    told = expected.size("kv_bytes_per_token")
    if told is None:
        raise Missing("no KV bytes per token were stated: give --expect-kv-bytes-per-token")
    engine = capacities[0]
    plan = _plan(context, engine)
    seen = _seen(engine, plan)
    if seen is None:
        raise Missing("the log prints no memory for the KV cache, so what a token costs is not known")
    low, high, source = seen
    if high <= 0:
        raise Missing("a token takes no KV cache memory at all")
    if low <= told.hi and told.lo <= high:
        return
    tp, pp = parallel_sizes(context.startup)
    whole = _whole_factor(plan, tp, pp)
    for factor, what in (
        (whole, "the whole model's"),
        (Fraction(tp), f"all {tp} tensor-parallel ranks'"),
        (Fraction(pp), f"all {pp} stages'"),
    ):
        if factor > 1 and low * factor <= told.hi and told.lo <= high * factor:
            yield _whole(engine, told, (low, high), factor, what, source)
            return
    yield _wrong(context, engine, plan, told, (low, high), source)


def _whole_factor(plan: ExpectedEngine | None, tp: int, pp: int) -> Fraction:
    """Return how many times a rank's bytes the whole model's are."""
    if plan is None:
        return Fraction(tp * pp)
    from vlogcheck.diagnose import case_of
    from vlogcheck.diagnose.quantities import ranks_of_a_token

    case = case_of(plan)
    return Fraction(tp * pp) if case is None else ranks_of_a_token(case)


def _plan(context: Context, engine: EngineLedger) -> ExpectedEngine | None:
    if context.model is None:
        return None
    try:
        return context.model.expected(context, engine)
    except Missing:
        return None


def _seen(engine: EngineLedger, plan: ExpectedEngine | None) -> tuple[Number, Number, str] | None:
    """Return the bounds of a token's bytes per rank and where they are from."""
    if plan is not None and not same_for_all(plan):
        from vlogcheck.diagnose import case_of

        case = case_of(plan)
        if case is None:
            return None
        full = case.bytes_per_token(case.unchanged)
        return full, full, "by the configuration, every attention layer holding the token"
    cost = cost_of(plan) if plan is not None else None
    if cost is not None and cost.agrees:
        return cost.expected, cost.expected, "by the configuration, which the log confirms"
    term = engine.ledger["kv_bytes_per_token"]
    if cost is not None:
        return *cost.seen, "available memory ÷ tokens in the log"
    if term.lo is not None and term.hi is not None:
        return term.lo, term.hi, "available memory ÷ tokens in the log"
    if plan is not None and (exact := plan.ledger["kv_bytes_per_token"]).lo is not None and exact.hi is not None:
        return exact.lo, exact.hi, "by the configuration"
    return None


def _whole(
    engine: EngineLedger, told: Interval, seen: tuple[Number, Number], factor: Fraction, what: str, source: str
) -> Finding:
    return Finding(
        f"the stated KV bytes per token are {what}, not one rank's",
        line=capacity_line(engine),
        expected=f"{bytes_text(told.lo, told.hi)} per token as stated",
        observed=f"{bytes_text(*seen)} per token and rank ({source}), times {factor} is the stated figure",
        remedy=f"use {bytes_text(Fraction(told.lo + told.hi) / 2 / factor)} for what one rank's memory holds; the total is right"
        " for the memory of all ranks together",
        explanation=f"a rank holds 1/{factor} of every token",
        fix={"kv_bytes_per_token": round(Fraction(told.lo + told.hi) / 2 / factor)},
        severity=Severity.NOTE,
    )


def _wrong(
    context: Context,
    engine: EngineLedger,
    plan: ExpectedEngine | None,
    told: Interval,
    seen: tuple[Number, Number],
    source: str,
) -> Finding:
    explanation = _explained(context, plan, told, seen)
    ratio = float(Fraction(told.lo + told.hi) / (Fraction(seen[0]) + Fraction(seen[1])))
    middle = (Fraction(seen[0]) + Fraction(seen[1])) / 2
    return Finding(
        f"the stated KV bytes per token are {ratio:.4g} times the log's",
        line=capacity_line(engine),
        expected=f"{bytes_text(told.lo, told.hi)} per token as stated",
        observed=f"{bytes_text(*seen)} per token and rank ({source})",
        remedy=f"plan with {bytes_text(middle)} per token and rank",
        explanation=explanation,
        fix={"kv_bytes_per_token": round(middle)},
    )


def _explained(context: Context, plan: ExpectedEngine | None, told: Interval, seen: tuple[Number, Number]) -> str:
    from vlogcheck.diagnose import case_of, diagnose_ratio, diagnose_stated_bytes
    from vlogcheck.diagnose.quantities import alternating
    from vlogcheck.diagnose.ratios import Parallel

    case = case_of(plan) if plan is not None else None
    if case is not None:
        found = diagnose_stated_bytes(case, told)
        if found.readings:
            return found.text
    tp, pp = parallel_sizes(context.startup)
    rank = diagnose_ratio(told, seen, Parallel(tp, pp)).readings
    share = tp * pp
    whole = diagnose_ratio((Fraction(told.lo, share), Fraction(told.hi, share)), seen).readings if share > 1 else ()
    return alternating(rank, whole).text
