"""How much capacity was lost between two start-ups: tokens, else requests of one length, else memory."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck._ceiling import is_uniform
from vlogcheck._compared import Side
from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import parse_release
from vlogcheck.context import ConcurrencyCeiling, ceiling
from vlogcheck.registry import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Loss", "ceiling_of", "comparable_tokens", "loss_of"]


class Loss(NamedTuple):
    """How much capacity was lost, as a share: negative is a gain."""

    what: str
    """tokens, `requests of N tokens`, or available memory."""
    old: Fraction
    new: Fraction
    lo: Fraction
    hi: Fraction
    """Bounds of the loss, from the rounding of the printed figures."""
    bounds: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
    """Bounds of `old` and `new` themselves."""

    @property
    def wide(self) -> bool:
        """Whether the loss is only bounded, since a request's cost at the compared length is not known."""
        return self.hi - self.lo > Fraction(1, 50)


def ceiling_of(side: Side, context: int | None) -> ConcurrencyCeiling | None:
    """Return how many requests of `context` tokens a side serves at once, None where its log does not tell."""
    try:
        return ceiling(side.context, context)
    except Missing:
        return None


def comparable_tokens(old: Side, new: Side) -> bool:
    """Whether the printed tokens mean the same: both counted, both computed for one length, or a uniform model."""
    computed = [parse_release(side.version).since("0.20.2") for side in (old, new)]
    lengths = [side.term("max_model_len").lo for side in (old, new)]
    if old.engine is None or new.engine is None:
        return False
    if all(computed):
        return lengths[0] == lengths[1]
    if not any(computed):  # counted tokens are a capacity only where every layer costs the same
        return all(side.term("concurrency").lo is None or _alike(side) for side in (old, new))
    counted = old if computed[1] else new
    assert counted.engine is not None
    return is_uniform(counted.context, counted.engine)


def _alike(side: Side) -> bool:
    assert side.engine is not None
    return side.version is None or is_uniform(side.context, side.engine)


def loss_of(old: Side, new: Side, context: int | None) -> Loss | None:
    """Return the loss of what can be compared: tokens, else requests of one length, else memory."""
    tokens = old.term("tokens"), new.term("tokens")
    if context is None and comparable_tokens(old, new) and tokens[0].known and tokens[1].known:
        return _share("tokens", *((t.lo, t.hi) for t in tokens))
    lengths = [side.term("max_model_len").lo for side in (old, new)]
    length = context or (min(int(n) for n in lengths if n is not None) if None not in lengths else None)
    if length:
        ceilings = ceiling_of(old, length), ceiling_of(new, length)
        if ceilings[0] is not None and ceilings[1] is not None:
            return _share(f"requests of {length:,} tokens", *((c.kv_lo, c.kv_hi) for c in ceilings if c is not None))
    pools = old.term("kv_cache"), new.term("kv_cache")
    return _share("available memory", *((t.lo, t.hi) for t in pools)) if pools[0].known and pools[1].known else None


def _share(what: str, old: Sequence[Any], new: Sequence[Any]) -> Loss | None:
    if not old[0] or old[0] <= 0:
        return None
    low, high = 1 - Fraction(new[1]) / Fraction(old[0]), 1 - Fraction(new[0]) / Fraction(old[1])
    bounds = (Fraction(old[0]), Fraction(old[1])), (Fraction(new[0]), Fraction(new[1]))
    return Loss(what, Fraction(old[0] + old[1]) / 2, Fraction(new[0] + new[1]) / 2, low, high, bounds)
