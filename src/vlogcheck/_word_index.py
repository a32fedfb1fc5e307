"""The wordings by their words: which of them a message may be, but for a few words."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.template import Template

__all__ = ["HOLE", "SHORT", "WordIndex", "Wording", "without_options"]

SHORT = 4
"""Words up to which a wording is short: those it shares with a message may be chance."""
_SOME = 12
"""Words at a wording's beginning among which those it is known by are looked for, beside two for each that may be missing."""
_SHORT_WORD = 2
"""Characters of the words that are in too many wordings to tell much."""
_WORD = pattern(r"(?<![\w\0])(?:\w+|[\u2580-\u259f]+)(?![\w\0])")
_OPTIONAL = pattern(r"\[\[((?:[^\[\]]|\[(?!\[)|\](?!\]))*)\]\]")
HOLE = pattern(r"(?<!\{)\{(\w+)(?::([^{}]*))?\}")
_ESCAPED = pattern(r'["&/<>\\]|[^ -~]|\{\{|\}\}|\[\[|(?:INFO|WARNING|ERROR):  ')
"""What a fixed text lacks beside holes and optional parts."""
_EDGES = str.maketrans(dict.fromkeys(",:;()`#=|", " "))
"""What stands at the edges of words, beside stops and apostrophes, which stand in them too."""


class Wording(NamedTuple):
    """One line of a template."""

    template: int
    words: tuple[str, ...]
    """What always stands between its spaces, as the letters and digits in it."""
    holes: int
    spare: int
    """How many of the words may be missing."""
    joined: bool
    """Whether a word is several, such as those of `gpu-memory`."""


def _spare(count: int) -> int:
    """How many words of a wording may be missing."""
    return max(1, count // 4)


class WordIndex:
    """The wordings by their words. Taking all of them apart would cost more than the search for all messages of a log.

    So most are known by the first of those words alone that stand between blanks and are not short: four more of them than may
    be missing, of which a message must have four before the wording is worth a closer look. Wordings of few such words are taken
    apart at once, and found by as many of their longest words that one is there whatever words are missing.
    """

    def __init__(self, templates: Sequence[Template], texts: Sequence[str]) -> None:
        self._lines: list[str] = []
        self._template: list[int] = []
        self._least: list[int] = []
        self._by_word: dict[str, list[int]] = {}
        self._made: dict[int, Wording | None] = {}
        self._few: dict[str, list[Wording]] = {}
        by_word = self._by_word
        for number, text in enumerate("\x1e".join(texts).translate(_EDGES).split("\x1e")):
            for line in text.split("\n") if "\n" in text else (text,):
                spare = _spare(line.count(" ") + 1)
                most = 2 * spare + _SOME
                chunks = line.split(None, most)
                if len(chunks) > most:
                    chunks.pop()  # the rest of the line
                # A word that is there twice counts twice, here and in `near`.
                plain = [chunk for chunk in chunks if len(chunk) > _SHORT_WORD and chunk.isalnum()][: spare + SHORT]
                least = len(plain) - spare
                if len(plain) < SHORT or least < 2:
                    self._take_apart(number, line, templates[number] if line is text else None)
                    continue
                at = len(self._lines)
                self._lines.append(line)
                self._template.append(number)
                self._least.append(least)
                for word in plain:
                    if word in by_word:
                        by_word[word].append(at)
                    else:
                        by_word[word] = [at]

    def _take_apart(self, number: int, line: str, template: Template | None) -> None:
        words = _words(line)
        if len(words) < SHORT and template is not None and _ESCAPED.search(template.text):
            # What JSON writers escape is in no fixed text, and may be half of it; nor is a word an optional stop ends.
            words = _words(HOLE.sub("\0", without_options(template.text, "")).translate(_EDGES))
        wording = _wording(number, line, words)
        if wording is not None:
            if len(words) <= SHORT and template is not None and ("=" in template.text or "(" in template.text):
                # One that changes may be several: `code=killed`.
                chunks = HOLE.sub("\0", template.text).split()
                most = max(sum(word != "\0" for word in chunk.translate(_EDGES).split()) for chunk in chunks)
                wording = wording._replace(spare=max(wording.spare, most))
            for word in sorted(words, key=len)[-1 - wording.spare :]:
                self._few.setdefault(word.partition(" ")[0], []).append(wording)

    def near(self, present: frozenset[str]) -> set[Wording]:
        """Return the wordings that may share all but the spare ones of their words with a message."""
        found = {wording for word in present & self._few.keys() for wording in self._few[word]}
        by_word, least, made = self._by_word, self._least, self._made
        for at, count in Counter(chain.from_iterable(by_word[word] for word in present & by_word.keys())).items():
            if count >= least[at]:
                if at not in made:
                    made[at] = _wording(self._template[at], self._lines[at], _words(self._lines[at]))
                if (wording := made[at]) is not None:
                    found.add(wording)
        return found


def _wording(number: int, line: str, words: tuple[str, ...]) -> Wording | None:
    """Return a line of a template by its words, None for what a single word would tell."""
    if len(words) < 2:
        return None
    return Wording(number, words, line.count("\0"), _spare(len(words)), " " in "".join(words))


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, NUL standing for what may be anything. Of one such as `gpu-memory` the parts are one word."""
    words: dict[str, None] = {}
    for word in text.split():
        if word.isalnum() or word.isidentifier():
            words[word] = None
        elif word != "\0" and (parts := _WORD.findall(word)):
            words[" ".join(parts)] = None
    return tuple(words)


def without_options(text: str, by: str) -> str:
    """Return a template's text with something else for each optional part."""
    count = 1
    while count:  # innermost first
        text, count = _OPTIONAL.subn(by, text)
    return text
