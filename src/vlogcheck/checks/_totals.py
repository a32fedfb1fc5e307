"""The card's measured total, and how it relates to the size on the box."""

from __future__ import annotations

from vlogcheck._tuples import NamedTuple
from vlogcheck.checks._memory import Workers
from vlogcheck.context import Context, provide
from vlogcheck.registry import Missing
from vlogcheck.smi import Occupancy
from vlogcheck.units import GIB, Interval

DRIVER = GIB
"""The most a driver keeps of a card before it reports the total (readings of 64 to 96 GB cards: 0.02 to 1 GiB)."""


class TotalReading(NamedTuple):
    """What the driver reports as the card's memory."""

    total: Interval
    line: int | None
    origin: str


def _reading(context: Context) -> TotalReading:
    try:
        workers = context.get(Workers)
    except Missing:
        workers = Workers()
    for worker in workers:
        term = worker.ledger["total"]
        if term.status == "printed" and (total := term.interval) is not None:
            return TotalReading(total, term.line, "in the log")
    try:
        occupancy = context.get(Occupancy)
    except Missing:
        raise Missing("the log does not print the card's memory") from None
    card = min(occupancy.cards, key=lambda card: card.total.lo)
    return TotalReading(card.total, None, f"by {occupancy.tool}, card {card.number}")


provide(TotalReading, _reading)


def nominal_size(stated: Interval, total: Interval) -> tuple[int, str] | None:
    """Return the nominal size in bytes that a stated size names, and why the reading differs; None if it names none.

    A card sold as 64 GB is 64 GiB less what the driver keeps (up to 1 GiB) and, with error correction in the main
    memory (GDDR cards), less 1/16 of it.
    """
    for size in {stated.mid, round(stated.mid / 10**9) * GIB, round(stated.mid / GIB) * GIB}:
        unit = "" if abs(size - stated.mid) < GIB // 2 else "GB were stated, the card counts in GiB; "
        if size - DRIVER <= total.mid <= size:
            return size, f"{unit}the driver keeps {max(size - total.mid, 0) / 2**20:,.0f} MiB of it"
        if size * 15 // 16 - DRIVER <= total.mid < size:
            return size, f"{unit}error correction takes 1/16 of it and the driver some more"
    return None
