"""Reworded: the wording a message nearly is. A release that changes a line changes a word or two of it, seldom all.

The words that a message shares with a wording tell: all but one, of a long wording all but a quarter. Of a short wording the
shape must be the same too, so one word of it that differs stands between the others. One word in common tells nothing, unless
it is a name or a label (`NCCL`, `Route:`), which are hardly there by chance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vlogcheck._lazy import pattern
from vlogcheck._word_index import HOLE, SHORT, WordIndex, Wording, without_options
from vlogcheck._wording import _Expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vlogcheck.template import Template

__all__ = ["Reworded"]

_MOST_SHAPES = 4096
"""Messages whose answer is kept: a reworded line of a running server comes again and again, with other figures."""
_SEEN = 1000
"""Characters of a message that are looked at."""
_HOLE_WORDS = 12
"""Words a hole may be taken to hold."""
_MOST_NAMED = 4
"""Words a name may have beside its first."""
_LONGER = 60
"""Words of the message a text may be embedded in."""

_WORDS = pattern(r"[\w\u2580-\u259f]+")
"""What tells: words, and the blocks the logo is drawn with."""
_NAME = pattern(
    r"[^\W_]*[a-z\d][A-Z]|[A-Z]{2}|\d[A-Za-z]|[A-Za-z]\d|\w_\w|\w[=/.]\w|[\u2580-\u259f]|[A-Z]\w*:|[^\w\s\0]\w+[^\w\s\0]"
)
"""A part of a wording that is no word of everyday language: a name, a label, a setting, something quoted."""
_FIGURES = pattern(r"[\d.,]+")
_FIGURE, _PLAIN, _LABEL, _TELLING = 1, 2, 3, 4
"""What a part of a wording tells: signs around a value, a word, a word with a colon, a name or title."""
_NUMBER = r"[\d.,e+\-]+"
_ANY = ".*?"
_OTHER = r"[^\s\u2580-\u259f]+"
"""What may stand where a word of a wording was."""


_LAST: list[Any] = []
"""The texts that were indexed last and their index: one log after the other is read with the same templates."""


class Reworded:
    """Finds the template a message was before some words of it changed. Its index of words is made at first use."""

    def __init__(self, templates: Sequence[Template], texts: Sequence[str]) -> None:
        self._templates = templates
        self._texts = texts
        self._index: WordIndex | None = None
        self._parts: dict[int, tuple[tuple[list[str], int], ...]] = {}
        self._shapes: dict[tuple[int, int, int], re.Pattern[str] | None] = {}
        self._known: dict[str, int | None] = {}

    def nearest(self, message: str) -> Template | None:
        """Return the template whose wording the message has but for a few words, or None. `texts` are `fixed_texts`."""
        message = message[:_SEEN]
        shape = _FIGURES.sub("0", message)
        try:
            found = self._known[shape]
        except KeyError:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            found = self._known[shape] = self._search(message)
        return None if found is None else self._templates[found]

    def _search(self, message: str) -> int | None:
        if self._index is None:
            if not _LAST or _LAST[0] != self._texts:
                _LAST[:] = [self._texts, WordIndex(self._templates, self._texts)]
            self._index = _LAST[1]
        words = _WORDS.findall(message)
        present = frozenset(words)
        best: tuple[float, int] | None = None
        for wording in self._index.near(present):
            count = len(wording.words)
            missing = count - sum(map(present.__contains__, wording.words))
            if missing and wording.joined:
                missing = sum(word not in present and not present.issuperset(word.split()) for word in wording.words)
            if missing > wording.spare:
                continue
            rank = (missing / count, wording.template)
            if (best is None or rank < best) and self._fits(wording, message, words, present):
                best = rank
        return None if best is None else best[1]

    def _fits(self, wording: Wording, message: str, words: list[str], present: frozenset[str]) -> bool:
        count = len(wording.words)
        template = self._templates[wording.template]
        gone = [word for word in wording.words if word not in present and not present.issuperset(word.split())]
        if count > SHORT:
            return len(words) <= 2 * count + _HOLE_WORDS * (1 + wording.holes) + _LONGER * template.embedded
        spellings = self._parts.get(wording.template)
        if spellings is None:
            texts = dict.fromkeys(without_options(template.text, part) for part in ("", r"\1"))
            spellings = self._parts[wording.template] = tuple(
                (chunks, _longest(template, chunks)) for chunks in map(str.split, texts)
            )
        spaced = message.split()
        message = " ".join(spaced)
        for number, (chunks, longest) in enumerate(spellings):
            missing = [at for at, chunk in enumerate(chunks) if chunk not in message and "{" not in chunk]
            if len(missing) > 1 or len(spaced) > longest:
                continue  # before an expression is ever made
            for at in missing or range(len(chunks)):
                if at and not template.embedded and "{" not in chunks[0] and not message.startswith(chunks[0]):
                    continue
                if not template.embedded and gone:
                    opened = _WORDS.findall(chunks[at])
                    if any(word.partition(" ")[0] not in opened for word in gone):
                        continue  # a word that is gone can only be the open one
                shape = self._shape(wording.template, number, at)
                if shape is not None and (shape.search if template.embedded else shape.fullmatch)(message):
                    return True
        return False

    def _shape(self, template: int, spelling: int, at: int) -> re.Pattern[str] | None:
        key = template, spelling, at
        if key not in self._shapes:
            text = _shape(self._templates[template], self._parts[template][spelling][0], at)
            self._shapes[key] = None if text is None else re.compile(text, re.DOTALL)
        return self._shapes[key]


def _shape(template: Template, chunks: Sequence[str], at: int) -> str | None:
    """Return the expression of a short wording with single blanks, one of its parts open; None where too little is left.

    Enough of the others must be left: two words, or a name; one word where all else is figures.
    """
    parts = [list(_pieces(chunk, template)) for chunk in chunks]
    tells = [_weight(chunk, number) for number, chunk in enumerate(chunks)]
    free = template.embedded or any(piece == _ANY for part in parts for piece in part)
    chunk = chunks[at]
    left = sum(tells) - tells[at]
    if left <= (_PLAIN if free else 0):
        return None
    several = ""
    if HOLE.search(chunk):
        other = [r"\S", _ANY] if left + tells[at] > _PLAIN else [r"\S+"]
    elif left == _LABEL:
        other = [r"[\w-]+"]
    elif template.embedded and any(map(str.isdigit, chunk)):  # another exit code is another message
        other = [r"\S*[^\W\d_]\S*"]
    else:
        other = [_OTHER]
        if sum(told >= _PLAIN for told in tells) > 2:
            several = "{0,2}"  # the word may be gone, or another one stand beside it
    if not at:
        other.insert(0, r"(?<!\S)")  # not tried again in the middle of a word it took
    whole = _Expression()
    for number, part in enumerate([*parts[:at], other, *parts[at + 1 :]]):
        if number == at and several:
            part = [rf"(?: {_OTHER}){several}"] if at else [rf"(?<!\S)(?:{_OTHER} ){several}"]
        elif number and not (several and number == 1 and not at):
            part = [" ", *part]
        for piece in part:
            whole.add(piece, free=piece == _ANY)
    return whole.text


def _longest(template: Template, chunks: Sequence[str]) -> int:
    """Return how many words a message of a short wording has at most, one of them changed."""
    count = len(chunks) + 1
    for hole in HOLE.finditer(" ".join(chunks)):
        expression = _ANY if hole[1] == "_" else template.record.hole(hole[1]).expression
        if template.embedded or expression in (".*", _ANY):
            return _SEEN
        count += _MOST_NAMED * (" " in expression)
    return _SEEN if template.embedded else count


def _weight(chunk: str, number: int) -> int:
    """Return how much a part of a wording without blanks tells, which is the n-th of it."""
    fixed = HOLE.sub("\0", chunk)
    if _WORDS.search(fixed) is None:
        return _FIGURE if fixed.count("\0") and len(fixed) > 1 else 0
    if _NAME.search(fixed) or (number and fixed[:1].isupper()):
        return _TELLING
    return _LABEL if fixed.endswith(":") else _PLAIN


def _pieces(chunk: str, template: Template) -> Iterator[str]:
    """Yield the expressions of what a part of a wording without blanks consists of."""
    at = 0
    for hole in HOLE.finditer(chunk):
        yield re.escape(chunk[at : hole.start()])
        expression = _ANY if hole[1] == "_" else _NUMBER if hole[2] else template.record.hole(hole[1]).expression
        yield _ANY if expression in (".*", _ANY) else f"(?:{expression})"
        at = hole.end()
    yield re.escape(chunk[at:])
