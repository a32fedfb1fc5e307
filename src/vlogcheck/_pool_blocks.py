"""The blocks of a pool: what one takes, and how many there were as far as the log's own figures tell."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget.plan import KVPlan
    from vlogcheck.expected import ExpectedEngine
    from vlogcheck.ledger import Ledger

__all__ = ["add_block_terms", "observed_blocks"]

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


def add_block_terms(ledger: Ledger, plan: KVPlan) -> None:
    """Add the bytes of a block and, where all layers are alike, its tokens and the bytes of each."""
    per_block = plan.bytes_per_block()
    if not per_block:
        return
    ledger.exact(
        "bytes_per_block", "bytes per block and rank", "bytes per block", per_block, "derived",
        formula="largest group's layers × page bytes" if len(plan.groups) > 1 else "layers × page bytes",
    )  # fmt: skip
    if len(plan.specs) == 1:
        size = plan.specs[0].spec.block_size
        ledger.exact("block_size", "block size", "tokens per block", size, "derived")
        ledger.exact(
            "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token", Fraction(per_block, size), "derived",
            formula="bytes per block ÷ block size",
        )  # fmt: skip
