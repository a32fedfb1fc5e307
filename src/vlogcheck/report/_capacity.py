"""What an engine's KV cache holds: blocks, tokens, requests at once, and the curve by length."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._ceiling import is_uniform
from vlogcheck.registry import Missing
from vlogcheck.report._layout import at_line, rows
from vlogcheck.units import GIB, format_bytes, format_gib

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger

__all__ = ["capacity"]


def capacity(context: Context, engine: EngineLedger, width: int | None, *, whole: bool) -> list[str]:
    """Return what one engine holds; with `whole` also what all of them together do."""
    ledger = engine.ledger
    if not any(ledger[key].known for key in ("blocks", "tokens", "concurrency")):
        return []  # a block size alone is no capacity
    pairs = _pool_memory(context, engine)
    alike = is_uniform(context, engine)
    for key in ("blocks", "block_size", "tokens", "kv_bytes_per_token", "concurrency", "max_num_seqs"):
        term = ledger[key]
        if not term.known:
            continue
        value = term.text()
        if key == "concurrency" and (length := ledger["max_model_len"].interval):
            value += f" at {length.lo:,} tokens per request"
        if term.line is not None and term.status == "printed":
            value += f" ({at_line(term.line)})"
        elif term.status in ("assumed", "derived"):
            average = ", an average where layers differ" if key == "kv_bytes_per_token" and not alike else ""
            value += f" ({term.status}: {term.origin or term.formula}{average})"
        elif term.origin:
            value += f" ({term.origin})"
        pairs.append((term.label, value))
    pairs += _expected(context, engine)
    curve: list[str] = []
    if whole:
        pairs += _ceiling(context)
        points, unknown = _curve(context)
        pairs += [("at other lengths", unknown)] if unknown else []
        curve = points
    return ["", *rows(pairs, width), *curve]


def _pool_memory(context: Context, engine: EngineLedger) -> list[tuple[str, str]]:
    """Return the memory of the KV cache where no rank's ledger shows it."""
    from vlogcheck.deployment import platform_of

    if any("kv_cache" in rank.ledger for rank in engine.ranks):
        return []
    available = engine.available
    if available is not None:
        where = f"{at_line(available.line)}: " if available.line is not None else ""
        pool = available.tightest
        size = format_bytes(pool.lo) if pool.lo == pool.hi and 0 < pool.lo < GIB else format_gib(pool.mid)
        return [("KV cache memory per rank", f"{size} ({where}{available.origin})")]
    if platform_of(context.startup) == "cpu":
        return [("KV cache memory", "not printed: VLLM_CPU_KVCACHE_SPACE decides it")]
    return []


def _expected(context: Context, engine: EngineLedger) -> list[tuple[str, str]]:
    """Return the tokens the configuration gives, where there is one."""
    if context.model is None:
        return []
    try:
        expected = context.model.expected(context, engine)
    except Missing as missing:
        return [("by configuration", str(missing))]
    planned = expected.plan.tokens_interval
    if planned is None:
        each = expected.ledger["kv_bytes_per_token"]
        if not each.known:
            return []
        return [("by configuration", f"{each.text()} and rank ({context.model.origin})")]
    text = f"{planned.lo:,}" if planned.exact else f"{planned.lo:,} to {planned.hi:,}"
    return [("by configuration", f"{text} tokens ({context.model.origin})")]


def _ceiling(context: Context) -> list[tuple[str, str]]:
    from vlogcheck.context import ConcurrencyCeiling

    try:
        ceiling = context.get(ConcurrencyCeiling)
    except Missing:
        return []
    text = f"{ceiling.text} requests of {ceiling.context:,} tokens at once"
    if ceiling.engines > 1:
        text += f" on {ceiling.engines} engines"
    if ceiling.capped:
        text += f", capped by max_num_seqs={ceiling.max_num_seqs}"
    elif ceiling.max_num_seqs is None:
        text += " (max_num_seqs is not printed and may cap it)"
    return [("ceiling", text)]


def _curve(context: Context) -> tuple[list[str], str]:
    """Return the table of requests by length, or why it is not known."""
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.curve import capacity_curve

    curve = capacity_curve(context)
    if not curve.points:
        return [], curve.unknown
    if len(curve.points) == 1:
        return [], ""  # the printed length alone: said above
    try:
        ceiling = context.get(ConcurrencyCeiling)
        cap = ceiling.max_num_seqs * ceiling.engines if ceiling.max_num_seqs is not None else None
    except Missing:
        cap = None
    table = [["tokens per request", "requests", ""]]
    for point in curve.points:
        capped = cap is not None and point.low > cap
        note = f"   max_num_seqs caps at {cap:,}" if capped else ""
        table.append([f"{point.context:,}", _held(point.low, point.high), note])
    widths = [max(len(row[i]) for row in table) for i in range(2)]
    return ["", *(f"  {a:>{widths[0]}}  {b:>{widths[1]}}{note}" for a, b, note in table)], ""


def _held(low: Fraction, high: Fraction) -> str:
    """Return the certain figure; the printed one where the bounds are only its rounding."""
    return f"{float((low + high) / 2 if high - low <= Fraction(1, 50) else low):,.2f}"
