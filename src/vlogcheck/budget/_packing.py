"""Arithmetic of packing layers of several page sizes into one block."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def page_counts(pages: Sequence[int]) -> dict[int, int]:
    """Return how many layers have each page size, in order of appearance."""
    return dict(Counter(pages))


def best_repeats(counts: Sequence[int], floor: int) -> int:
    """Return the chunk of at least ``floor`` layers that wastes least when counts are rounded up to its multiples.

    Ties go to the larger chunk (``_approximate_gcd``).
    """
    best, least = max(1, floor), None
    for chunk in range(max(1, floor), max(*counts, floor) + 1):
        waste = sum(-count % chunk for count in counts)
        if least is None or waste <= least:
            best, least = chunk, waste
    return best
