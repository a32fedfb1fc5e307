"""How many requests of a length run at once: what the KV cache holds, capped by max_num_seqs, all engines together."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.registry import Missing

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger

__all__ = ["ConcurrencyCeiling", "ceiling", "is_uniform"]


class ConcurrencyCeiling(NamedTuple):
    """Requests of `context` tokens that can run at once: KV capacity × engines, capped by max_num_seqs × engines."""

    context: int
    lo: Fraction
    hi: Fraction
    """Bounds of the effective ceiling: equal only up to the printed rounding, wider where the curve is not known."""
    kv_lo: Fraction
    kv_hi: Fraction
    """Bounds of what the KV cache alone allows, all engines together."""
    engines: int
    max_num_seqs: int | None
    """Per engine; None where the log does not state it."""
    line: int | None
    basis: str
    """How it was computed, in words."""

    @property
    def text(self) -> str:
        """The bounds for people: the printed figure where they are only its rounding."""
        if self.hi - self.lo <= Fraction(1, 50):
            return f"{float((self.lo + self.hi) / 2):,.2f}"
        return f"between {float(self.lo):,.2f} and {float(self.hi):,.2f}"

    @property
    def capped(self) -> bool:
        """Whether max_num_seqs, not the KV cache, sets the ceiling."""
        return self.max_num_seqs is not None and self.max_num_seqs * self.engines < self.kv_lo


def ceiling(context: Context, length: int | None = None) -> ConcurrencyCeiling:
    """Return the ceiling at a request length (default: the length of the log's own concurrency line).

    Without the model's configuration the ceiling at another length is bounded, not computed: a shorter request never needs
    more of the pool than a longer one, and never less in proportion (a request of a hybrid model has a fixed part), so it
    lies between the printed concurrency and the printed tokens ÷ length. Where every layer costs the same per token
    (tokens ÷ length agrees with the printed concurrency in releases that compute the two apart, before 0.20.2) it is exact.
    Raises `Missing` where the log has no capacity.
    """
    engines = context.observation.engines
    with_capacity = [e for e in engines if e.capacity.concurrency is not None or "tokens" in e.ledger]
    if not with_capacity:
        raise Missing("the log prints no KV cache capacity")
    count = max(len(with_capacity), _data_parallel_size(context))
    first = min(with_capacity, key=lambda e: e.ledger["concurrency"].lo or e.ledger["tokens"].lo or 0)
    printed_length = first.ledger["max_model_len"].interval
    if length is None:
        if printed_length is None:
            raise Missing("the log prints no length to compute the concurrency at: give --context")
        length = printed_length.lo
    lows, highs, basis = [], [], ""
    for engine in with_capacity:
        lo, hi, basis = _engine_ceiling(context, engine, length)
        lows.append(lo)
        highs.append(hi)
    # Engines whose lines are missing (printed by the first local rank only) are taken to be like the smallest seen.
    missing = count - len(with_capacity)
    kv_lo = sum(lows, Fraction(0)) + missing * min(lows)
    kv_hi = sum(highs, Fraction(0)) + missing * min(highs)
    cap_term = first.ledger["max_num_seqs"].interval
    cap = cap_term.lo if cap_term else None
    lo, hi = kv_lo, kv_hi
    if cap is not None:
        lo, hi = min(lo, Fraction(cap * count)), min(hi, Fraction(cap * count))
    line = first.capacity.concurrency_line or first.capacity.tokens_line or first.capacity.blocks_line
    return ConcurrencyCeiling(length, lo, hi, kv_lo, kv_hi, count, cap, line, basis)


def _data_parallel_size(context: Context) -> int:
    """Engines the configuration states; 1 where a log shows only part of them on another node."""
    stated = context.startup.args.get("data_parallel_size")
    config = context.startup.config
    size = stated if isinstance(stated, int) else (config.data_parallel_size if config else None)
    return size if isinstance(size, int) and 0 < size < 100_000 else 1


def _engine_ceiling(context: Context, engine: EngineLedger, length: int) -> tuple[Fraction, Fraction, str]:
    ledger = engine.ledger
    printed = ledger["concurrency"]
    printed_length = ledger["max_model_len"].interval
    if printed.lo is not None and printed.hi is not None and printed_length and printed_length.lo == length:
        return (*_sharpened(context, engine, length), "the log's own concurrency line")
    if context.model is not None and (curve := context.model.concurrency(context, engine, length)) is not None:
        return (*curve, "blocks in the log ÷ blocks one request needs by the model's configuration")
    tokens = ledger["tokens"].interval
    if tokens is None:
        raise Missing("the log prints no KV cache size")
    proportional = Fraction(tokens.hi, length)
    if printed.lo is None or printed.hi is None or printed_length is None:
        size = ledger["block_size"].interval
        if size is None or context.model is not None:
            return Fraction(tokens.lo, length), proportional, "tokens ÷ length"
        return Fraction(tokens.lo // size.hi, math.ceil(length / size.hi)), proportional, "blocks ÷ blocks per request"
    if is_uniform(context, engine):
        size = ledger["block_size"].interval
        step = size.hi if size else 1
        per_request = -(-length // step) * step
        return Fraction(tokens.lo, per_request), proportional, "tokens ÷ length (every layer costs the same per token)"
    if length < printed_length.lo:
        return Fraction(printed.lo), max(proportional, Fraction(printed.lo)), "bounds: the curve needs --model-config"
    scaled = Fraction(printed.lo) * printed_length.lo / length
    return scaled, Fraction(printed.hi), "bounds: the curve needs --model-config"


def _sharpened(context: Context, engine: EngineLedger, length: int) -> tuple[Fraction, Fraction]:
    """Return the bounds of the printed concurrency at its own length: those of its two decimals, or of the tokens.

    From 0.20.2 the printed tokens are the concurrency × length, cut to a whole number (get_kv_cache_capacity in
    v1/core/kv_cache_utils.py), whatever the layers are. Before, both come from the blocks where every layer costs the same.
    """
    from vlogcheck.budget.releases import parse_release

    ledger = engine.ledger
    printed, tokens, version = ledger["concurrency"], ledger["tokens"].interval, context.startup.version
    assert printed.lo is not None
    assert printed.hi is not None
    low, high = Fraction(printed.lo), Fraction(printed.hi)
    if tokens is None or version is None:
        return low, high
    if parse_release(version).since("0.20.2"):
        bounds = Fraction(tokens.lo, length), Fraction(tokens.hi + 1, length)
    elif is_uniform(context, engine):
        size = ledger["block_size"].interval
        step = size.hi if size else 1
        bounds = Fraction(tokens.lo, -(-length // step) * step), Fraction(tokens.hi, length)
    else:
        return low, high
    sharp = max(low, bounds[0]), min(high, bounds[1])
    return sharp if sharp[0] <= sharp[1] else (low, high)  # lines that contradict each other are VL3's matter


def is_uniform(context: Context, engine: EngineLedger) -> bool:
    """Whether the log itself proves that tokens can be divided by length: see `ceiling`."""
    from vlogcheck.budget.releases import parse_release

    version = context.startup.version
    if version is None or parse_release(version).since("0.20.2"):
        return False
    tokens, printed = engine.ledger["tokens"].interval, engine.ledger["concurrency"]
    length = engine.ledger["max_model_len"].interval
    if tokens is None or printed.lo is None or printed.hi is None or length is None:
        return False
    size = engine.ledger["block_size"].interval
    step = size.hi if size else 1
    per_request = -(-length.lo // step) * step
    ratio, rounded = Fraction(tokens.lo, length.lo), Fraction(tokens.lo, per_request)
    return printed.lo <= ratio <= printed.hi or printed.lo <= rounded <= printed.hi
