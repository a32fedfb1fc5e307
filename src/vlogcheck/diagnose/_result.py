"""What a diagnosis says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vlogcheck.ledger import Number

SHOWN = 3
"""Explanations that are listed at most: more say nothing."""


class Candidate(NamedTuple):
    """One mistake with which the ledger gives the figure that was seen."""

    key: str
    """Registry key, such as `attention_heads`."""
    text: str
    """The mistake in words, with its numbers."""
    lo: Number
    hi: Number
    """Bounds of what the ledger gives with it."""


class Diagnosis(NamedTuple):
    """All mistakes that explain a figure, the commonest first."""

    candidates: tuple[Candidate, ...]

    @property
    def unique(self) -> Candidate | None:
        """The explanation, where there is exactly one."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def listed(self) -> tuple[Candidate, ...]:
        """The explanations worth listing."""
        return self.candidates[:SHOWN]

    @property
    def keys(self) -> tuple[str, ...]:
        """The listed explanations' keys."""
        return tuple(candidate.key for candidate in self.listed)

    @property
    def text(self) -> str:
        """The diagnosis for people."""
        if not self.candidates:
            return "unexplained: no single changed term gives this figure"
        if (only := self.unique) is not None:
            return f"explained by one changed term: {only.text}"
        more = len(self.candidates) - SHOWN
        said = "; or ".join(candidate.text for candidate in self.listed)
        return f"ambiguous, any of these gives this figure: {said}" + (f" (and {more} more)" if more > 0 else "")
