"""The capacity curve: how many requests fit by their length, where the model's layers say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    from vlogcheck.context import Context

__all__ = ["Curve", "Point", "capacity_curve", "lengths"]

SHORTEST = 512
STEP = 4


class Point(NamedTuple):
    """Requests of one length that the KV cache holds at once, all engines together, not capped by `max_num_seqs`."""

    context: int
    low: Fraction
    high: Fraction


class Curve(NamedTuple):
    """The curve, or why it is not known."""

    points: list[Point]
    unknown: str = ""


def lengths(longest: int) -> list[int]:
    """Return the request lengths of a curve: 512, 1,024, then four times as long up to `longest`."""
    found = [length for length in (SHORTEST, 2 * SHORTEST) if length < longest]
    length = 2 * SHORTEST * STEP
    while length < longest:
        found.append(length)
        length *= STEP
    return [*found, longest]


def capacity_curve(context: Context) -> Curve:
    """Return the curve of a start-up: from the model's layers and the blocks in the log, or from layers proven alike.

    Never by dividing the printed tokens where layers may differ: then the curve is unknown.
    """
    from vlogcheck._ceiling import is_uniform
    from vlogcheck.context import ceiling
    from vlogcheck.registry import Missing

    engines = [e for e in context.observation.engines if e.ledger["tokens"].known or e.capacity.concurrency]
    length = engines[0].ledger["max_model_len"].interval if engines else None
    if length is None or length.lo <= 0:
        return Curve([], "the log prints no capacity, or no length")
    if context.model is not None:
        if any(context.model.concurrency(context, engine, length.lo) is None for engine in engines):
            try:
                for engine in engines:
                    context.model.expected(context, engine)
            except Missing as missing:
                return Curve([], str(missing))
            return Curve([], "the log's figures do not fit the configuration's layers")
    elif not all(is_uniform(context, engine) for engine in engines):
        return Curve([], "unknown without --model-config: layers may differ, and tokens ÷ length is no capacity then")
    points = []
    for at in lengths(length.lo):
        try:
            found = ceiling(context, at)
        except Missing as missing:
            return Curve([], str(missing))
        points.append(Point(at, found.kv_lo, found.kv_hi))
    return Curve(points)
