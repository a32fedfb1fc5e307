"""Messages whose end was cut off behind their last figure: the fixed words they always end with, and what is left of those."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vlogcheck._wording import Piece
    from vlogcheck.template import Record

__all__ = ["missing_ends"]

SHORTEST = 4
"""Characters behind the last figure that must be there: a figure may not have been cut."""


def missing_ends(text: str, kinds: tuple[type[Record], ...]) -> Iterator[str]:
    """Yield what may be missing behind a text for it to be a message of these records, wording by wording.

    Of each wording as much is taken to be there as can be.
    """
    ends = _ends(kinds)
    if text[-SHORTEST:] not in ends.tails:
        return
    left: dict[int, str] = {}
    for size in range(ends.longest, SHORTEST - 1, -1):
        for wording, missing in ends.missing.get(text[-size:], ()):
            left.setdefault(wording, missing)
    for _, missing in sorted(left.items()):
        yield missing


class _Ends(NamedTuple):
    """The fixed words behind the last figure that the messages always have, and what is left of them once they are cut."""

    missing: dict[str, list[tuple[int, str]]]
    """By what is there: the number of the wording and what is not there of it."""
    tails: frozenset[str]
    """The last characters of what may be there: most texts end otherwise."""
    longest: int


@lru_cache(maxsize=1)
def _ends(kinds: tuple[type[Record], ...]) -> _Ends:
    ends = dict.fromkeys(_last_words(template.parsed()) for kind in kinds for template in kind.templates)
    missing: dict[str, list[tuple[int, str]]] = {}
    for number, end in enumerate(ends):
        for size in range(SHORTEST, len(end)):
            missing.setdefault(end[:size], []).append((number, end[size:]))
    return _Ends(missing, frozenset(there[-SHORTEST:] for there in missing), max(map(len, missing)))


def _last_words(pieces: Sequence[Piece]) -> str:
    """Return the last literal of a template that is in no optional part."""
    depth = 0
    words = ""
    for piece in pieces:
        if piece.kind == "literal" and not depth:
            words = piece.text
        elif piece.kind == "hole" and piece.text != "_" and not depth:
            words = ""
        depth += (piece.kind == "open") - (piece.kind == "close")
    return words
