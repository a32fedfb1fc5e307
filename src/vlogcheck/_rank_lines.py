"""Whose records are whose: what one rank printed, and the bounds of the figures in it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from vlogcheck.template import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.startup import Engine, Rank

__all__ = ["RankLines", "decimal", "printed_range"]

R = TypeVar("R", bound=Record)


def decimal(value: float) -> Fraction:
    """Return the decimal a float was printed as, exactly."""
    return Fraction(str(value))


def printed_range(value: float, decimals: int = 2) -> tuple[Fraction, Fraction]:
    """Return the bounds of the numbers printed as `value` with that many decimals."""
    middle = decimal(value)
    half = Fraction(1, 2 * 10**decimals)
    return middle - half, middle + half


class RankLines:
    """The records one rank printed, also those that start-ups do not sort by rank."""

    def __init__(self, engine: Engine, rank: Rank, ranks: Sequence[Rank]) -> None:
        self._engine = engine
        self._rank = rank
        key = (rank.process, rank.pid)
        self._twins = [other for other in ranks if (other.process, other.pid) == key]
        self._alone = len(ranks) == 1

    def last(self, kind: type[R], having: str | None = None) -> R | None:
        """Return the rank's last record of a kind (with a field set), None where the log does not say whose it is."""
        own = self._rank.last(kind)
        if own is not None and having is None:
            return own
        records = [
            r
            for r in self._engine.records
            if isinstance(r, kind) and (having is None or getattr(r, having) is not None)
        ]
        tagged = [r for r in records if (r.process, r.pid) == (self._rank.process, self._rank.pid)]
        if self._alone:
            return (tagged or records)[-1] if records else None
        if len(self._twins) > 1:  # several ranks without a tag: told apart by order, where each printed one
            return tagged[self._twins.index(self._rank)] if len(tagged) == len(self._twins) else None
        return tagged[-1] if tagged else None
