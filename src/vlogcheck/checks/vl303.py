"""VL303: layers differ, so the printed tokens are no capacity."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._kv import Capacities, capacity_line, override_of, same_for_all
from vlogcheck.checks._uneven_layers import uneven_layers
from vlogcheck.context import Context
from vlogcheck.observed import EngineLedger
from vlogcheck.records import HybridBlockSize, KVGroupBlockSizes, LayerPadding, MambaCacheMode, MambaPagePadding
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("layers differ: the printed tokens are no capacity", Severity.NOTE)
def tokens_are_no_capacity(capacities: Capacities, context: Context) -> Iterator[Finding]:
    """Explain figures of a model whose layers hold different amounts per request; they are not wrong."""
    engine = capacities[0]
    ledger = engine.ledger
    tokens, length = ledger["tokens"], ledger["max_model_len"].interval
    if tokens.interval is None or length is None or length.lo <= 0:
        raise Missing("the log prints no tokens, or no length")
    curve = _curve(context, engine)
    why = _layers(context, engine, curve is not None)
    if why is None:
        return
    expect = context.expectation
    counted = expect.concurrency is not None and expect.context is not None and expect.tokens is None
    if counted and (curve is not None or expect.context == length.lo):
        return  # requests of a stated length are counted on, not tokens
    quotient = Fraction(tokens.interval.lo, length.lo)
    printed = ledger["concurrency"]
    observed = f"{tokens.interval.lo:,} tokens ÷ {length.lo:,} = {float(quotient):.2f}"
    if printed.lo is not None and printed.hi is not None:
        observed += f", {float(printed.lo + printed.hi) / 2:.2f}x printed"
    if curve:
        points = ", ".join(f"{at:,}: {float(low):,.2f}" for at, low in curve)
        remedy = f"count on requests, not tokens. Requests that fit by their length: {points}"
        short = curve[0]
        divided = tokens.interval.lo / short[0]
        observed += f"; at {short[0]:,} tokens {float(short[1]):,.2f} requests fit, not {divided:,.2f} by division"
        observed += _attention_share(context, engine, tokens.interval.lo)
    else:
        lacks = "without --model-config" if context.model is None else "as its layers are not modelled"
        remedy = (
            f"trust the concurrency at {length.lo:,} tokens and nothing at other lengths: the curve is unknown {lacks},"
            " tokens ÷ length is not it"
        )
    if printed.lo is not None:
        remedy += f"; --expect-concurrency {max(int(printed.lo), 1)} --context {length.lo} says that the plan does"
    yield Finding(
        f"{why}: {tokens.interval.lo:,} tokens cannot be divided by a request's length",
        line=capacity_line(engine),
        expected="a request holds a fixed part (state pages, windows) and a part per token",
        observed=observed,
        remedy=remedy,
        explanation=_rule(context.startup),
    )


def _curve(context: Context, engine: EngineLedger) -> list[tuple[int, Fraction]] | None:
    from vlogcheck.curve import lengths

    if context.model is None:
        return None
    length = engine.ledger["max_model_len"].interval
    found = []
    for at in lengths(length.lo if length else 1):
        bounds = context.model.concurrency(context, engine, at)
        if bounds is None:
            return None
        found.append((at, bounds[0]))
    return found


def _layers(context: Context, engine: EngineLedger, planned: bool) -> str | None:
    """Return what shows that layers differ, or None where nothing does."""
    if planned and context.model is not None:
        plan = context.model.expected(context, engine)
        if same_for_all(plan):
            return None
        kinds = [f"{item.count} × {_KINDS.get(item.spec.kind, item.spec.kind)}" for item in plan.plan.specs]
        several = f"the model has layers of {len(kinds)} kinds ({', '.join(kinds)})"
        return several if len(kinds) > 1 else f"all layers are {kinds[0]}"
    startup = context.startup
    if startup.last(HybridBlockSize) or startup.last(MambaPagePadding) or startup.last(MambaCacheMode):
        return "some layers keep a state instead of tokens"
    if startup.last(LayerPadding) or _several_groups(startup):
        return "the layers are kept in several groups"
    if (uneven := uneven_layers(context)) is not None:
        return uneven
    tokens, printed = engine.ledger["tokens"].interval, engine.ledger["concurrency"]
    length = engine.ledger["max_model_len"].interval
    release = parse_release(startup.version)
    if (
        startup.version is None
        or release.before("0.9.1")
        or release.since("0.20.2")
        or tokens is None
        or length is None
    ):
        return None
    if printed.lo is not None and printed.lo > Fraction(tokens.lo, length.lo):
        return "more requests fit than tokens ÷ length, so some layers hold less than the whole request"
    return None


def _attention_share(context: Context, engine: EngineLedger, tokens: int) -> str:
    """Return what full attention's part of counted tokens takes: far less than the pool where states fill the rest.

    Only before 0.20.2: later tokens are concurrency × length and count nothing.
    """
    if context.model is None or parse_release(context.startup.version).since("0.20.2") or override_of(context.startup):
        return ""
    plan = context.model.expected(context, engine)
    full = [item for item in plan.plan.specs if item.spec.kind in ("FullAttentionSpec", "MLAAttentionSpec")]
    layers = sum(item.count for item in plan.plan.specs)
    if not full or plan.available is None or plan.available.lo <= 0 or plan.setup.options.pipeline_parallel_size > 1:
        return ""
    kept = sum(item.count * Fraction(item.spec.page_size_bytes, item.spec.block_size) for item in full) * tokens
    share = kept / plan.available.mid
    count = sum(item.count for item in full)
    return (
        f"; {count} of {layers} layers keep every token: for the printed tokens {format_gib(int(kept))} per rank,"
        f" {100 * float(share):.0f} % of the KV cache memory"
    )


_KINDS = {
    "FullAttentionSpec": "full attention",
    "TQFullAttentionSpec": "full attention, packed",
    "SlidingWindowSpec": "sliding window",
    "ChunkedLocalAttentionSpec": "chunked attention",
    "MLAAttentionSpec": "latent attention",
    "SlidingWindowMLASpec": "latent attention with a window",
    "MambaSpec": "state (Mamba, linear attention)",
    "CrossAttentionSpec": "cross attention",
}


def _several_groups(startup: Startup) -> bool:
    groups = next((r.group_block_sizes for r in startup.all(KVGroupBlockSizes) if r.group_block_sizes), "")
    return groups.strip("()[] ,").count(",") > 0


def _rule(startup: Startup) -> str:
    if startup.version is not None and parse_release(startup.version).since("0.20.2"):
        return "from 0.20.2 the tokens are concurrency × length: that they divide evenly proves nothing"
    return "before 0.20.2 tokens and concurrency are computed apart; the concurrency is the one that follows the layers"
