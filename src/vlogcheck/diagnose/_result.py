"""What a diagnosis says: the single mistakes that give a figure, as three candidates at most.

Several mistakes can give the very same figure: with two ranks, half of it is the share taken twice as well as K or V counted
once. No figure tells them apart, so all of them are said. Where they are more than three, those about the same term of the hand
ledger are said as one candidate; the terms form three families, so three candidates always hold every mistake.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vlogcheck.diagnose._case import Bounds
    from vlogcheck.ledger import Number

__all__ = ["MOST", "Candidate", "Diagnosis", "Reading", "reading"]

MOST = 3
"""Candidates of a diagnosis at most: more say nothing."""

_CELL, _SHARE, _COUNT = (
    "what one token takes in one layer",
    "which part of the model is one rank's",
    "which layers, units and blocks are counted",
)
_ELEMENT, _HEADS, _LESS, _MORE, _LAYERS, _UNITS = (
    "bytes per element, K and V",
    "heads and their width",
    "a share taken too often",
    "a share not taken",
    "the layers counted",
    "units and rounding",
)

_TERMS: dict[str, tuple[str, ...]] = {
    "bytes_per_element": (_CELL, _ELEMENT),
    "bytes_per_element_4": (_CELL, _ELEMENT),
    "bytes_per_element_quarter": (_CELL, _ELEMENT),
    "quantisation_not_applied": (_CELL, _ELEMENT),
    "kv_counted_once": (_CELL, _ELEMENT),
    "latent_as_k_and_v": (_CELL, _ELEMENT),
    "attention_heads": (_CELL, _HEADS),
    "head_dim_from_hidden": (_CELL, _HEADS),
    "latent_as_full_attention": (_CELL, _HEADS),
    "tp_share_not_taken": (_SHARE, _MORE),
    "all_pipeline_stages": (_SHARE, _MORE),
    "whole_model": (_SHARE, _MORE),
    "all_engines": (_SHARE, _MORE),
    "total_in_other_unit": (_SHARE, _MORE),
    "share_in_other_unit": (_SHARE, _LESS),
    "tp_share_taken_twice": (_SHARE, _LESS, "what is copied divided again"),
    "replication_forgotten": (_SHARE, _LESS, "what is copied divided again"),
    "latent_divided": (_SHARE, _LESS),
    "pp_share_taken_twice": (_SHARE, _LESS),
    "local_layers_as_full": (_COUNT, _LAYERS),
    "local_layers_left_out": (_COUNT, _LAYERS),
    "states_as_full_attention": (_COUNT, _LAYERS),
    "drafter_forgotten": (_COUNT, _LAYERS),
    "checkpoint_size": (_COUNT, _UNITS),
    "gb_for_gib": (_COUNT, _UNITS),
    "gb_for_gib_inverse": (_COUNT, _UNITS),
    "block_rounding": (_COUNT, _UNITS),
}
"""The term of the hand ledger a mistake is about, from the family down; a third word marks one act said in two ways."""


class Reading(NamedTuple):
    """One mistake with which the ledger gives the figure that was seen."""

    key: str
    """Registry key, such as `attention_heads`."""
    text: str
    """The mistake in words, with its numbers."""
    lo: Number
    hi: Number
    """Bounds of what the ledger gives with it."""
    central: bool = True
    """Whether the middle of the figure or of the ledger's lies in the other, rather than only their ends meeting."""

    @property
    def term(self) -> tuple[str, ...]:
        """The term it is about, from the family down."""
        return _TERMS[self.key]


def reading(key: str, text: str, found: Bounds, seen: Bounds) -> Reading | None:
    """Return the reading of a figure `seen` by a mistake with which the ledger gives `found`; None where they do not meet."""
    if found[0] > seen[1] or seen[0] > found[1]:
        return None
    middle, wanted = Fraction(found[0] + found[1]) / 2, Fraction(seen[0] + seen[1]) / 2
    return Reading(key, text, *found, seen[0] <= middle <= seen[1] or found[0] <= wanted <= found[1])


class Candidate(NamedTuple):
    """One explanation of a figure: a mistake, or the mistakes in one term that cannot be told apart by it."""

    readings: tuple[Reading, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The mistakes' keys, the commonest first, each once."""
        return tuple(dict.fromkeys(reading.key for reading in self.readings))

    @property
    def term(self) -> tuple[str, ...]:
        """The narrowest term that all its mistakes are about."""
        common = self.readings[0].term
        for other in self.readings[1:]:
            common = common[: _shared(common, other.term)]
        return common

    @property
    def text(self) -> str:
        """The explanation in words."""
        texts = list(dict.fromkeys(reading.text for reading in self.readings))
        return texts[0] if len(texts) == 1 else f"{self.term[-1]}: {' / '.join(texts)}"


class Diagnosis(NamedTuple):
    """All mistakes that explain a figure, the commonest first."""

    readings: tuple[Reading, ...]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every reading in three candidates at most, those whose figure agrees best first."""
        found = _same_act([Candidate((r,)) for r in sorted(self.readings, key=lambda r: not r.central)])
        while len(found) > MOST:
            found = _joined(found)
        return tuple(found)

    @property
    def unique(self) -> Candidate | None:
        """The explanation, where there is exactly one."""
        found = self.candidates
        return found[0] if len(found) == 1 else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all mistakes that explain the figure, the best explanation first."""
        return tuple(dict.fromkeys(key for candidate in self.candidates for key in candidate.keys))

    @property
    def text(self) -> str:
        """The diagnosis for people."""
        found = self.candidates
        if not found:
            return "unexplained: no single changed term gives this figure"
        if len(found) == 1:
            return f"explained by one changed term: {found[0].text}"
        said = "; or ".join(candidate.text for candidate in found)
        return f"ambiguous, any of these gives this figure: {said}"


def of(readings: Iterable[Reading | None]) -> Diagnosis:
    """Return the diagnosis of those readings that there are."""
    return Diagnosis(tuple(r for r in readings if r is not None))


def _same_act(candidates: list[Candidate]) -> list[Candidate]:
    """Join what is one act said in two ways: the same term down to its last word, and the same figure."""
    found: list[Candidate] = []
    for candidate in candidates:
        one = candidate.readings[0]
        twin = next(
            (
                place
                for place, known in enumerate(found)
                if len(one.term) > 2 and known.readings[0].term == one.term and known.readings[0][2:4] == one[2:4]
            ),
            None,
        )
        if twin is None:
            found.append(candidate)
        else:
            found[twin] = Candidate(found[twin].readings + candidate.readings)
    return found


def _joined(candidates: list[Candidate]) -> list[Candidate]:
    """Join the two candidates whose terms are nearest; of several such pairs the least likely one."""
    pairs = [(a, b) for b in range(len(candidates)) for a in range(b)]
    first, second = max(pairs, key=lambda pair: (_shared(*(candidates[n].term for n in pair)), pair[1], pair[0]))
    joined = Candidate(candidates[first].readings + candidates[second].readings)
    return [joined if n == first else c for n, c in enumerate(candidates) if n != second]


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
