"""Hold one template against one message of the source.

The two are the same wording when either of these holds:

1. The template, with its holes, matches the source's text with its holes left open. A numeric hole of the template may
   stand only where the source has a hole or digits; a text hole may stand anywhere; an optional part may be there, be
   absent or be one hole of the source. Every other literal of the template is then literal in the source.
2. The source's text, with its holes as wildcards, matches the template's example, and at least half of the template's
   literal words are literal in the source. This is the case of a source that formats a word the template spells out,
   such as `{} KV cache size` for `GPU KV cache size`.

A message of several lines may also be read by templates of single lines; trailing blanks do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from _drift.pieces import Text, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

HOLE = "\0"
_Spelling = dict[str, "Callable[[str], str]"]
_WORD = re.compile(r"[A-Za-z]{2,}")
_CLASS_PREFIX = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt): ")


class Piece(Protocol):
    """A part of a template: `literal`, `hole`, or `open`/`close` around an optional part."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Wording:
    """A template as this module needs it."""

    parts: tuple[tuple[str, str], ...]
    """In order: ("literal", text), ("hole", expression), and ("open", ""), ("close", "") around an optional part."""
    example: str
    embedded: bool = False

    @classmethod
    def build(cls, pieces: Sequence[Piece], expressions: Iterable[str], example: str, *, embedded: bool) -> Wording:
        """Build from a template's pieces; `expressions` are its holes' in order."""
        holes = iter(expressions)
        parts = [(piece.kind, next(holes) if piece.kind == "hole" else piece.text) for piece in pieces]
        if parts and parts[0][0] == "literal" and (prefix := _CLASS_PREFIX.match(parts[0][1])):
            parts[0] = ("literal", parts[0][1][prefix.end() :])
            example = example[prefix.end() :]
        if parts and parts[-1][0] == "literal":
            parts[-1] = ("literal", parts[-1][1].rstrip(" "))
        return cls(tuple(parts), example, embedded)

    @cached_property
    def always(self) -> Text:
        """The text with every hole and every optional part as a hole."""
        depth = 0
        text: list[str | None] = []
        for kind, part in self.parts:
            depth += (kind == "open") - (kind == "close")
            text.append(part if kind == "literal" and not depth else None)
        return (None, *tidy(text), None) if self.embedded else tidy(text)

    @cached_property
    def words(self) -> frozenset[str]:
        """The distinct words of the literals that are always there."""
        return frozenset(_WORD.findall(" ".join(part or " " for part in self.always)))

    @cached_property
    def _over_source(self) -> re.Pattern[str]:
        spell: _Spelling = {"literal": re.escape, "hole": _over_source, "open": _opening, "close": _closing_over_source}
        return re.compile("".join(spell[kind](part) for kind, part in self.parts))

    @cached_property
    def _spelt(self) -> list[bool] | None:
        """For each character of the example whether the template spells it out."""
        spell: _Spelling = {"literal": re.escape, "hole": "({})".format, "open": _opening, "close": _closing}
        pattern = re.compile("".join(spell[kind](part) for kind, part in self.parts), re.DOTALL)
        found = pattern.search(self.example) if self.embedded else pattern.fullmatch(self.example.rstrip(" "))
        if found is None:
            return None
        mask = [found.start() <= at < found.end() for at in range(len(self.example))]
        for number in range(1, pattern.groups + 1):
            start, end = found.span(number)
            mask[start:end] = [False] * (end - start)
        return mask

    def matches(self, text: Text) -> bool:
        """Whether `text` is this wording (see the module's docstring)."""
        return self._reads(text) or self._rendered(text)

    def _reads(self, text: Text) -> bool:
        source = "".join(HOLE if part is None else part for part in text)
        # linear, and settles almost every pair; the expression below only adds what each hole may hold
        if wildcard(self.always, source) is None:
            return False
        pattern = self._over_source
        return (pattern.search if self.embedded else pattern.fullmatch)(source) is not None

    def _rendered(self, text: Text) -> bool:
        holes = wildcard(text, self.example)
        mask = self._spelt
        if holes is None or mask is None:
            return False
        in_source = list(mask)
        for start, end in holes:
            in_source[start:end] = [False] * (end - start)
        words = [found.span() for found in _WORD.finditer(self.example) if all(mask[found.start() : found.end()])]
        kept = sum(all(in_source[start:end]) for start, end in words)
        return kept > 0 and 2 * kept >= len(words)


def _opening(_: str) -> str:
    return "(?:"


def _closing(_: str) -> str:
    return ")?"


def _closing_over_source(_: str) -> str:
    return f"|{HOLE})?"


def _over_source(expression: str) -> str:
    """Return a hole's expression as it applies to a source text whose own holes are NUL characters."""
    if expression in (".*?", ".*"):
        return r"[^\n]*?"
    return rf"(?:[\0\d.,+\-]+|{expression.replace(chr(92) + 'd', '[0-9' + HOLE + ']')})"


def wildcard(text: Text, example: str) -> list[tuple[int, int]] | None:
    """Return the spans of the holes of `text` in `example`, leftmost and shortest; None: it does not fit."""
    if not text:
        return None if example else []
    spans: list[tuple[int, int]] = []
    at = 0
    hole_from: int | None = None
    for index, part in enumerate(text):
        if part is None:
            if hole_from is None:
                hole_from = at
            continue
        if hole_from is None:
            if not example.startswith(part, at):
                return None
            start = at
        elif index == len(text) - 1:
            start = len(example) - len(part)
            if start < at or not example.endswith(part):
                return None
        else:
            start = example.find(part, at)
            if start < 0:
                return None
        if hole_from is not None:
            spans.append((hole_from, start))
            hole_from = None
        at = start + len(part)
    if hole_from is not None:
        spans.append((hole_from, len(example)))
        at = len(example)
    return spans if at == len(example) else None


def normalise(text: Text) -> Text:
    """Without blanks at line ends and without empty lines around: they do not survive in a log."""
    joined = "".join(HOLE if part is None else part for part in text)
    joined = re.sub(r"[ \t]+(?=\n|$)", "", joined).strip("\n")
    return _split(joined)


def lines_of(text: Text) -> list[Text]:
    """Return the lines of a message, each as a text of its own; empty for a message of one line."""
    joined = "".join(HOLE if part is None else part for part in text)
    return [_split(line) for line in joined.split("\n") if line.strip()] if "\n" in joined else []


def _split(joined: str) -> Text:
    parts: list[str | None] = []
    for index, part in enumerate(joined.split(HOLE)):
        parts += [None, part] if index else [part]
    return tidy(parts)


class Index:
    """Finds the texts a wording may match by the words they share."""

    def __init__(self, texts: Iterable[Text]) -> None:
        self.texts = list(dict.fromkeys(texts))
        self._words = [frozenset(_WORD.findall(" ".join(part or " " for part in text))) for text in self.texts]
        self._postings: dict[str, list[int]] = {}
        for number, words in enumerate(self._words):
            for word in words:
                self._postings.setdefault(word, []).append(number)

    def candidates(self, wording: Wording) -> Iterator[Text]:
        """Texts that hold at least half of the wording's literal words."""
        words = wording.words
        needed = (len(words) + 1) // 2
        rare = sorted(words, key=lambda word: len(self._postings.get(word, ())))
        seen = {number for word in rare[: len(words) - needed + 1] for number in self._postings.get(word, ())}
        return (self.texts[number] for number in sorted(seen) if len(words & self._words[number]) >= needed)

    def matching(self, wording: Wording) -> list[Text]:
        return [text for text in self.candidates(wording) if wording.matches(text)]
