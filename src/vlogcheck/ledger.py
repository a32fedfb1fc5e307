"""The memory ledger: named terms, each with its value, unit, formula in words and where it came from.

Observed (from a log) and expected (from a model's configuration and flags) ledgers are the same type, so they can be held
against each other term by term.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

from vlogcheck._tuples import NamedTuple
from vlogcheck.units import GIB, MIB, GiB, Interval, format_bytes, format_gib

__all__ = ["Ledger", "Number", "Status", "Term", "Unit"]

Number = int | Fraction
Unit = Literal[
    "bytes", "blocks", "tokens", "requests", "ratio", "tokens per block", "bytes per token", "bytes per block"
]
Status = Literal["printed", "derived", "given", "assumed", "unknown"]
"""How a value is known: printed in the log; computed from other terms; given by the user or a configuration file;
assumed (and labelled so); or not known."""


class Term(NamedTuple):
    """One term. `lo` and `hi` bound the value (equal when exact), both None when it is unknown."""

    key: str
    label: str
    unit: Unit
    lo: Number | None
    hi: Number | None
    status: Status
    formula: str = ""
    """How it is computed, in words."""
    origin: str = ""
    """Configuration key, flag or release rule it came from."""
    line: int | None = None
    """Log line that printed it."""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.lo is not None

    @property
    def exact(self) -> bool:
        """Whether only one value is possible."""
        return self.lo is not None and self.lo == self.hi

    @property
    def interval(self) -> Interval | None:
        """The bounds as whole numbers, or None."""
        if self.lo is None or self.hi is None:
            return None
        return Interval(-((-self.lo) // 1), self.hi // 1) if not self.exact else Interval(int(self.lo), int(self.hi))

    def agrees(self, other: Term) -> bool:
        """Whether the two can be the same value. Unknown agrees with nothing."""
        if self.lo is None or self.hi is None or other.lo is None or other.hi is None:
            return False
        return self.lo <= other.hi and other.lo <= self.hi

    def text(self) -> str:
        """Return the value with its unit, for people."""
        if self.lo is None or self.hi is None:
            return "unknown"
        middle = (self.lo + self.hi) / 2
        if self.unit == "bytes":
            wide = self.hi - self.lo > GIB // 16  # more than the rounding of a few printed figures
            return f"{'≈ ' if wide else ''}{format_gib(int(middle))}"
        if self.unit in ("bytes per token", "bytes per block"):
            what = self.unit.removeprefix("bytes per ")
            size = round(middle)
            unit = max((step for step in (1 << 10, MIB, GIB, 1 << 40) if step <= size), default=1)
            whole = f" ({size:,} B)" if self.exact and size * 100 % unit else ""  # two decimals would blur it
            return f"{'' if self.exact else '≈ '}{format_bytes(size)}{whole} per {what}"
        if self.unit == "ratio":
            return f"{float(middle):.4g}"
        if self.unit == "requests" and self.key.startswith("max_num_seqs"):
            return f"{int(middle):,} request{'s' if middle != 1 else ''}"
        if self.unit == "requests":
            return f"{float(middle):,.2f}x"
        if self.unit == "tokens per block":
            return f"{int(middle):,} tokens per block"
        return f"{'' if self.exact else '≈ '}{round(middle):,} {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the term for JSON: whole numbers where the unit has no fractions."""

        def number(value: Number | None) -> int | float | None:
            return None if value is None else int(value) if value == int(value) else float(value)

        return {
            "key": self.key,
            "label": self.label,
            "unit": self.unit,
            "low": number(self.lo),
            "high": number(self.hi),
            "status": self.status,
            "formula": self.formula,
            "origin": self.origin,
            "line": self.line,
        }


class Ledger:
    """Terms by key, in the order they are added up."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What it is the ledger of: a rank, an engine, a plan."""
        self._terms: dict[str, Term] = {}
        self.assumptions: list[str] = []
        """What was taken for granted, each in one sentence."""

    def __getitem__(self, key: str) -> Term:
        """Return a term; an unknown one where it was never stated."""
        return self._terms.get(key) or Term(key, key.replace("_", " "), "bytes", None, None, "unknown")

    def __contains__(self, key: object) -> bool:
        return key in self._terms and self._terms[key].known

    def __iter__(self) -> Iterator[Term]:
        return iter(self._terms.values())

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, term: Term) -> Term:
        """Add or replace a term."""
        self._terms[term.key] = term
        return term

    def exact(
        self, key: str, label: str, unit: Unit, value: Number, status: Status, *, formula: str = "", origin: str = "",
        line: int | None = None,
    ) -> Term:  # fmt: skip
        """Add a term with one possible value."""
        return self.add(Term(key, label, unit, value, value, status, formula, origin, line))

    def between(
        self, key: str, label: str, unit: Unit, bounds: Interval | tuple[Number, Number], status: Status, *,
        formula: str = "", origin: str = "", line: int | None = None,
    ) -> Term:  # fmt: skip
        """Add a term known between bounds."""
        return self.add(Term(key, label, unit, bounds[0], bounds[1], status, formula, origin, line))

    def printed(self, key: str, label: str, value: GiB | None, line: int, *, formula: str = "") -> Term | None:
        """Add a printed GiB figure as the interval of bytes it stands for; None adds nothing."""
        if value is None:
            return None
        return self.between(key, label, "bytes", value.bytes, "printed", formula=formula, line=line)

    def missing(self, key: str, label: str, unit: Unit, why: str) -> Term:
        """Add a term that is not known, with the reason."""
        return self.add(Term(key, label, unit, None, None, "unknown", origin=why))

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger for JSON."""
        return {
            "name": self.name,
            "terms": {term.key: term.to_dict() for term in self},
            "assumptions": list(self.assumptions),
        }
