"""One term of a ledger as a table's cell, and where its figure comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.report._layout import at_line
from vlogcheck.units import GIB, format_bytes, format_gib

if TYPE_CHECKING:
    from vlogcheck.ledger import Ledger, Term

__all__ = ["cell", "middle", "note"]


def note(terms: list[Term]) -> str:
    """Return where a row's figures come from."""
    lines = [term.line for term in terms if term.line is not None]
    term = terms[0]
    said = term.origin or term.formula
    if term.status in ("assumed", "derived"):
        return f"{term.status}: {said}" + (f" ({at_line(min(lines))})" if lines else "")
    if term.key == "kv_cache" and term.origin and lines:
        return f"{at_line(min(lines))}: {term.origin}"
    return at_line(min(lines)) if lines else said


def cell(term: Term) -> str:
    """Return the figure with its unit."""
    if term.lo is None or term.hi is None:
        return "–"
    if term.key in ("unexplained", "graph_estimate") and term.status == "derived" and term.lo <= 0 <= term.hi:
        # Within the rounding of the printed terms it is nothing; an estimate that is not printed may be a little.
        return "none" if term.key == "unexplained" or term.hi == 0 else f"≤ {format_gib(int(term.hi))}"
    if term.unit == "bytes" and term.exact and 0 < term.lo < GIB:
        return format_bytes(int(term.lo))  # a size that was given: two decimals of GiB would blur it
    return term.text()


def middle(ledger: Ledger, key: str) -> int:
    """Return the middle of a term in bytes, 0 where it is unknown or below 0."""
    interval = ledger[key].interval
    return max(interval.mid, 0) if interval is not None else 0
