"""The blocks of the pool that served, as far as the log's own figures tell under the expected layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.expected import ExpectedEngine

__all__ = ["observed_blocks"]

_MOST_BLOCKS = 1 << 50


def observed_blocks(expected: ExpectedEngine) -> Interval | None:
    """Return the blocks the log's own figures mean under the expected layout of groups and pages.

    These are the numbers of blocks for which the release would print the tokens and the concurrency in the log; None where it
    would print them for no number at all, so the layout is not the one that served.
    """
    ledger = expected.engine.ledger
    bounds = Interval(0, _MOST_BLOCKS)
    printed = ledger["blocks"].interval
    if printed is not None and ledger["blocks"].status == "printed":
        bounds = printed
    pool, length = expected.plan.pool, ledger["max_model_len"].interval
    if pool is None or length is None or length.lo <= 0:
        return printed
    known = printed is not None
    if (tokens := ledger["tokens"]).status == "printed" and (figure := tokens.interval) is not None:
        known = True
        bounds = Interval(
            _least(bounds, lambda n: pool.printed(n, length.lo)[0] >= figure.lo),
            _least(bounds, lambda n: pool.printed(n, length.lo)[0] > figure.hi) - 1,
        )
    concurrency = ledger["concurrency"]
    if concurrency.lo is not None and concurrency.hi is not None and bounds.lo <= bounds.hi:
        known = True
        low, high = concurrency.lo, concurrency.hi
        bounds = Interval(
            _least(bounds, lambda n: pool.printed(n, length.lo)[1] >= low),
            _least(bounds, lambda n: pool.printed(n, length.lo)[1] > high) - 1,
        )
    return bounds if known and bounds.lo <= bounds.hi else None


def _least(bounds: Interval, reached: Any) -> int:
    """Return the smallest number in the bounds for which a growing condition holds, one past them if none does."""
    low, high = bounds.lo, bounds.hi + 1
    while low < high:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle + 1
    return low
