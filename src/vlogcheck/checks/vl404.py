"""VL404: a request of the longest length may start but cannot finish."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck._ceiling import is_uniform
from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.checks._growth import longest_for
from vlogcheck.checks._kv import Capacities, missing_memory, overridden
from vlogcheck.checks._load import plan_of
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.observed import EngineLedger
from vlogcheck.records import HybridBlockSize, MambaCacheMode, MambaPagePadding
from vlogcheck.registry import Finding, Missing, Severity, check

MARGIN = Fraction(105, 100)
"""Below this a request of a model with aligned states has no room for the state pages of its next step"
  " (reports: 1.00, 1.01)."""


@check("a request of the longest length cannot finish", Severity.WARNING)
def longest_request_cannot_finish(capacities: Capacities, context: Context) -> Iterator[Finding]:
    """Flag less than one request of `max_model_len`, and barely one where states need room of their own."""
    judged = False
    for engine in capacities:
        length = engine.ledger["max_model_len"].interval
        bounds = _fit(engine)
        if bounds is None or length is None:
            continue
        judged = True
        why = _why(context, engine, *bounds)
        if why is None:
            continue
        yield _finding(context, engine, bounds, length.lo, why)
    if not judged:
        raise Missing("the log prints neither a concurrency nor blocks")


def _fit(engine: EngineLedger) -> tuple[Fraction, Fraction] | None:
    """Return how many requests fit: as printed, else tokens ÷ length, which is all the oldest releases tell."""
    printed, tokens = engine.ledger["concurrency"], engine.ledger["tokens"].interval
    if printed.lo is not None and printed.hi is not None:
        return Fraction(printed.lo), Fraction(printed.hi)
    length = engine.ledger["max_model_len"].interval
    if (
        tokens is None
        or not tokens.hi
        or length is None
        or not length.lo
        or engine.ledger["blocks"].status != "printed"
    ):
        return None
    return Fraction(tokens.lo, length.lo), Fraction(tokens.hi, length.lo)


def _why(context: Context, engine: EngineLedger, low: Fraction | int, high: Fraction | int) -> str | None:
    if high < 1:
        return "one request of that length takes more blocks than there are"
    plan = plan_of(context, engine)
    stateful = plan is not None and any(item.spec.kind == "MambaSpec" for item in plan.plan.specs)
    startup = context.startup
    if plan is None:
        stateful = bool(startup.last(HybridBlockSize) or startup.last(MambaPagePadding) or startup.last(MambaCacheMode))
    if stateful and low < MARGIN:
        return (
            "states keep pages of their own while a request grows: with less than 1.05 it stops short of"
            " its end or starts over"
        )
    if plan is not None and plan.plan.settings is not None and not plan.plan.settings.is_v0:
        blocks, needed = observed_blocks(plan), plan.plan.blocks_per_request()
        if blocks is not None and needed is not None and blocks.hi - 1 < needed:
            return f"one of the {blocks.hi:,} blocks never holds tokens, and the request takes {needed:,}"
    return None


def _finding(
    context: Context, engine: EngineLedger, bounds: tuple[Fraction, Fraction], length: int, why: str
) -> Finding:
    shown = (bounds[0] + bounds[1]) / 2
    wanted = MARGIN if shown >= 1 else Fraction(1)
    remedies, fix = [], {}
    shorter = _shorter(context, engine, shown, length, wanted)
    if shorter:
        remedies.append(f"--max-model-len {shorter}")
        fix = {"max_model_len": shorter}
    else:
        remedies.append("a shorter --max-model-len (--model-config computes which)")
    if overridden(context.startup):
        remedies.append("or leave out --num-gpu-blocks-override: the blocks were set by hand, not by the memory")
    elif more := missing_memory(plan_of(context, engine), engine, wanted / bounds[0] if bounds[0] else 0):
        remedies.append(f"or {more}")
    return Finding(
        f"{float(shown):.2f} requests of {length:,} tokens fit: one of that length "
        + ("does not" if shown < 1 else "may start and not finish"),
        line=engine.capacity.concurrency_line or engine.capacity.blocks_line,
        expected=f"at least {float(wanted):.2f} requests of {length:,} tokens",
        observed=f"{float(shown):.2f}x" + _counted(engine, length),
        remedy="; ".join(remedies) or "give the KV cache more memory",
        explanation=why,
        fix=fix,
    )


def _counted(engine: EngineLedger, length: int) -> str:
    tokens = engine.ledger["tokens"].interval
    if engine.capacity.concurrency_line is not None or tokens is None:
        return ""
    blocks = engine.capacity.blocks
    return f": {f'{blocks:,} blocks, ' if blocks is not None else ''}{tokens.lo:,} tokens for {length:,}"


def _shorter(context: Context, engine: EngineLedger, shown: Fraction, length: int, wanted: Fraction) -> int | None:
    """Return the longest request of which `wanted` fit; None where the layers are not known and may differ."""
    plan = plan_of(context, engine)
    if plan is not None and shown < 1:
        return longest_for(context, ConcurrencyCeiling(length, shown, shown, shown, shown, 1, None, None, ""), 1.0)
    if plan is not None:
        from vlogcheck.budget.pool import largest_length

        blocks, layout = observed_blocks(plan), plan.plan.pool
        if blocks is None or layout is None:
            return None
        return largest_length(length, lambda n: layout.blocks_per_request(n) * wanted <= blocks.lo - 1) or None
    tokens, size = engine.ledger["tokens"].interval, engine.ledger["block_size"].interval
    counted = engine.capacity.concurrency is None  # blocks of V0, where every layer is kept alike
    if tokens is None or not (counted or is_uniform(context, engine)):
        return None
    step = size.hi if size else 1
    return int(tokens.lo / wanted) // step * step or None
