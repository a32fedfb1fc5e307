"""How much of a card to give to vLLM: the one table of utilizations and reserves that every check and the planner use.

The figures are field experience (cards of 8 to 96 GB, NVIDIA, AMD and Hygon), not vLLM's own: it only has a default per
release. Card sizes are the marketing ones, which are binary (a "12 GB" card reads 12,288 MiB).
"""

from __future__ import annotations

from fractions import Fraction

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import Release, default_utilization
from vlogcheck.units import GIB, Interval, format_gib

__all__ = [
    "SITUATIONS", "UNIFIED", "Situation", "advise", "largest_utilization", "reserve", "unified_memory", "utilization_advice",
]  # fmt: skip

SMALL_CARD = 12 * GIB
LARGE_CARD = 40 * GIB
RESERVE = 2 * 10**9
RESERVE_SHARE = Fraction(5, 100)
"""Of a large card; at least `RESERVE`."""


class Situation(NamedTuple):
    """One row: what the utilization should be, from `low` to `high`; None is the default of the release."""

    key: str
    text: str
    low: Fraction | None
    high: Fraction | None
    why: str


SITUATIONS = {
    row.key: row
    for row in (
        Situation("production", "the card to itself", None, None, "leaves room for graphs and operators"),
        Situation(
            "fixed_load", "a known short load, a throughput test", Fraction("0.95"), Fraction("0.95"),
            "accepts that one long prompt or large batch ends the process",
        ),
        Situation(
            "shared", "other programs on the card", Fraction("0.80"), Fraction("0.80"),
            "leaves room for the others and for a retreat",
        ),
        Situation(
            "several", "several models on one card", Fraction("0.4"), Fraction("0.7"), "every server needs its share"
        ),
        Situation(
            "small", "a card of at most 12 GB", Fraction("0.75"), Fraction("0.80"), "fixed overheads weigh more"
        ),
        Situation(
            "capture", "graph capture fails, std::bad_alloc", Fraction("0.80"), Fraction("0.80"),
            "capture needs a margin",
        ),
    )
}  # fmt: skip

UNIFIED = (
    ("GB10 (DGX Spark)", Interval(119 * GIB, 120 * GIB)),
    ("GB10 (DGX Spark)", Interval(121 * GIB, 122 * GIB)),
    ("GH200", Interval(142 * GIB, 143 * GIB)),
)
"""Totals by which a pool shared by CPU and GPU is known: readings of 119.7, 121.7 and 142.5 GiB."""


def reserve(total: int) -> int:
    """Return the bytes of a card of `total` bytes to keep out of the budget.

    More than 40 GB: 5 % of it, at least 2 GB. Smaller cards: 2 GB.
    """
    if total > LARGE_CARD:
        return max(int(total * RESERVE_SHARE), RESERVE)
    return RESERVE


def advise(total: int | None, release: Release, *, others: int = 0, shared: bool = False) -> Situation:
    """Return the row for a card of `total` bytes, of which `others` are held by other programs (0: none seen)."""
    if total is not None and others and others > total * (1 - (SITUATIONS["several"].high or 0)):
        row = SITUATIONS["several"]
    elif shared or others:
        row = SITUATIONS["shared"]
    elif total is not None and total <= SMALL_CARD:
        row = SITUATIONS["small"]
    else:
        row = SITUATIONS["production"]
    if row.high is None:
        default = Fraction(str(default_utilization(release)))
        return row._replace(low=default, high=default)
    return row


def utilization_advice(total: int, release: Release, share: Fraction, *, ranks: int = 1) -> list[str]:
    """Return what to make of a utilization of `share` on a card of `total` bytes before any server exists, in sentences.

    What is wrong with `share` comes first, then the rows of the table that may be the card's.
    """
    row = advise(total, release)
    margin, left = reserve(total), total - int(total * share)
    if total <= margin:
        return []  # a card that is no larger than what it needs in reserve: no share of it is right
    most = float(Fraction(total - margin, total) * 100 // 1 / 100)
    accepts = SITUATIONS["fixed_load"].why
    out = []
    if share >= 1:
        out.append(f"1.0 is never right: contexts, buffers and run-time peaks need the rest; at most {most:g}")
    elif left < margin:
        out.append(
            f"{float(share):g} leaves {format_gib(left)} of the card, less than its reserve of {format_gib(margin)}:"
            f" at most {most:g}"
        )
    elif row.high is not None and share > row.high:
        why = accepts if row.key == "production" else row.why
        out.append(f"{float(share):g} is more than the {_range(row)} for {row.text}: {why}")
    out.append(f"{_range(row)} for {row.text}: {row.why}")
    shared, several, capture, load = (_range(SITUATIONS[key]) for key in ("shared", "several", "capture", "fixed_load"))
    out.append(
        f"{shared} with other programs on the card, {several} for each of several models on it, {capture} where graph"
        f" capture fails; {load} for a known short load only: {accepts}"
    )
    if ranks > 1:
        out.append(f"the tightest of the {ranks} cards decides: every card gets a pool of the same size")
    return out


def _range(row: Situation) -> str:
    if row.low is None or row.high is None:
        return "the default"
    return f"{float(row.low):.2f}" + (f" to {float(row.high):.2f}" if row.low != row.high else "")


def largest_utilization(total: int, free: int) -> float:
    """Return the largest utilization in hundredths for which vLLM starts: floor(free ÷ total)."""
    return max(free * 100 // total, 0) / 100 if total > 0 else 0.0


def unified_memory(total: Interval) -> str | None:
    """Return the machine whose CPU and GPU share a pool of this size, or None."""
    return next((name for name, bounds in UNIFIED if bounds.lo <= total.lo and total.hi <= bounds.hi), None)
