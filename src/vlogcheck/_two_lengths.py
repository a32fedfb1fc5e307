"""One pool at two request lengths: what a request costs, the part that does not depend on its length apart.

Tokens ÷ length is no capacity where layers differ (sliding windows, states, several groups): a request holds a fixed part and a
part per token. Two start-ups of one server at two lengths show both, as far as the cost is a straight line between them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.units import format_bytes

if TYPE_CHECKING:
    from vlogcheck._compared import Side

__all__ = ["TwoLengths", "two_lengths"]

_LAYOUT = ("block_size",)


class TwoLengths(NamedTuple):
    """The concurrency of one pool at two lengths, the shorter first. Concurrencies are bounds from the printed rounding."""

    lengths: tuple[int, int]
    short: tuple[Fraction, Fraction]
    """Requests of the shorter length."""
    long: tuple[Fraction, Fraction]
    """Requests of the longer length."""
    pool: tuple[int, int] | None
    """Bytes of KV cache per rank, where both logs print the same."""

    @property
    def proportional(self) -> bool:
        """Whether the cost of a request may be in proportion to its length: then nothing is fixed."""
        scale = Fraction(self.lengths[1], self.lengths[0])
        return self.long[0] * scale <= self.short[1] and self.short[0] <= self.long[1] * scale

    @property
    def divided(self) -> Fraction:
        """The concurrency at the longer length that division of the shorter one's promises."""
        return (self.short[0] + self.short[1]) / 2 * self.lengths[0] / self.lengths[1]

    @property
    def fixed_share(self) -> Fraction:
        """Share of the pool that a request takes whatever its length; negative where the cost grows faster than the length."""
        at_short, at_long = 2 / (self.short[0] + self.short[1]), 2 / (self.long[0] + self.long[1])
        slope = (at_long - at_short) / (self.lengths[1] - self.lengths[0])
        return at_short - slope * self.lengths[0]

    def lines(self) -> list[str]:
        """Return what follows, for people."""
        shown = [float(low + high) / 2 for low, high in (self.short, self.long)]
        out = [
            f"one pool at two lengths: {shown[0]:,.2f} requests of {self.lengths[0]:,} tokens, {shown[1]:,.2f} of"
            f" {self.lengths[1]:,}"
        ]
        if self.proportional:
            return [*out, "  the cost of a request follows its length: tokens ÷ length is the capacity here"]
        out.append(
            f"  division would have promised {float(self.divided):,.2f} at {self.lengths[1]:,}: the layers differ"
        )
        fixed = self.fixed_share
        if fixed <= 0:
            out.append(
                "  a request's cost grows faster than its length: part of it is set by max_model_len (states, windows of the"
                " steps in flight), so neither figure says anything about other lengths or another max_model_len"
            )
            return out
        slope = (2 / (self.long[0] + self.long[1]) - fixed) / self.lengths[1]
        each = f"{100 * float(fixed):.1f} % of the pool"
        rate = f"{int(fixed / slope):,} tokens" if slope > 0 else ""
        if self.pool is not None:
            middle = Fraction(self.pool[0] + self.pool[1]) / 2
            each += f" ({format_bytes(round(middle * fixed))} per rank)"
            per_token = f"{format_bytes(round(middle * slope))} per token and rank"
            rate = f"{per_token}; the fixed part is worth {rate}" if rate else per_token
        out.append(
            f"  a request takes about {each} whatever its length, and {rate}: no more than {int(1 / fixed):,} run at once,"
            " however short"
        )
        return out


def two_lengths(old: Side, new: Side) -> TwoLengths | None:
    """Return the comparison where both sides are one server at two lengths, else None."""
    sides = sorted((old, new), key=lambda side: side.term("max_model_len").lo or 0)
    lengths = [side.term("max_model_len").lo for side in sides]
    shown = [side.term("concurrency") for side in sides]
    if None in lengths or lengths[0] == lengths[1] or old.version is None or old.version != new.version:
        return None
    if old.context.startup.model != new.context.startup.model or not all(term.lo for term in shown):
        return None
    if any(old.term(key).known and not old.term(key).agrees(new.term(key)) for key in _LAYOUT):
        return None
    pools = [side.term("kv_cache") for side in sides]
    if not pools[0].known or not pools[0].agrees(pools[1]) or _types(old) != _types(new):
        return None
    first = pools[0].interval
    bounds = [(Fraction(term.lo or 0), Fraction(term.hi or 0)) for term in shown]
    pool = (first.lo, first.hi) if first is not None else None
    return TwoLengths((int(lengths[0] or 0), int(lengths[1] or 0)), bounds[0], bounds[1], pool)


def _types(side: Side) -> tuple[object, ...]:
    config, args = side.context.startup.config, side.context.startup.args
    return (
        config.kv_cache_dtype if config is not None else args.get("kv_cache_dtype"),
        config.tensor_parallel_size if config is not None else args.get("tensor_parallel_size"),
        config.pipeline_parallel_size if config is not None else args.get("pipeline_parallel_size"),
        args.get("disable_hybrid_kv_cache_manager"),
    )
