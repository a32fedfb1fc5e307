"""Hold one template against one message of the source.

The two are the same wording when either of these holds:

1. The template, with its holes, matches the source's text with its holes left open. A numeric hole of the template may
   stand only where the source has a hole or digits; a text hole may stand anywhere. Every literal of the template is
   then literal in the source.
2. The source's text, with its holes as wildcards, matches the template's example, and at least half of the template's
   literal words are literal in the source. This is the case of a source that formats a word the template spells out,
   such as `{} KV cache size` for `GPU KV cache size`.

A message of several lines may also be read by templates of single lines; trailing blanks do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from _drift.pieces import Text, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HOLE = "\0"
_WORD = re.compile(r"[A-Za-z]{2,}")
_CLASS_PREFIX = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt): ")


class Piece(Protocol):
    """A part of a template: `literal`, `hole`, or `open`/`close` around an optional part."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass
class Wording:
    """A template as this module needs it: one shape for every presence of its optional parts."""

    shapes: tuple[tuple[tuple[str, str], ...], ...]
    """Per shape the parts in order: ("literal", text) or ("hole", expression)."""
    example: str
    embedded: bool = False
    _patterns: dict[int, re.Pattern[str]] = field(default_factory=dict)

    @classmethod
    def build(cls, pieces: Sequence[Piece], expressions: Iterable[str], example: str, *, embedded: bool) -> Wording:
        """Build from a template's pieces; `expressions` are its holes' in order."""
        holes = iter(expressions)
        shapes: list[tuple[tuple[str, str], ...]] = [()]
        stack: list[list[tuple[tuple[str, str], ...]]] = []
        for piece in pieces:
            if piece.kind == "open":
                stack.append(list(shapes))
            elif piece.kind == "close":
                shapes = [*shapes, *stack.pop()]
            else:
                part = ("hole", next(holes)) if piece.kind == "hole" else ("literal", piece.text)
                shapes = [(*shape, part) for shape in shapes]
        prefix = _CLASS_PREFIX.match(example)
        if prefix and all(shape and shape[0][1].startswith(prefix[0]) for shape in shapes):
            shapes = [(("literal", shape[0][1][prefix.end() :]), *shape[1:]) for shape in shapes]
            example = example[prefix.end() :]
        return cls(tuple(dict.fromkeys(shapes)), example, embedded)

    @cached_property
    def words(self) -> tuple[frozenset[str], ...]:
        """The distinct literal words of each shape."""
        return tuple(
            frozenset(_WORD.findall(" ".join(text for kind, text in shape if kind == "literal")))
            for shape in self.shapes
        )

    @cached_property
    def _example_literal(self) -> list[bool] | None:
        """For each character of the example whether the template spells it out."""
        for shape in self.shapes:
            pattern = "".join(f"({text})" if kind == "hole" else re.escape(text) for kind, text in shape)
            compiled = re.compile(pattern, flags=re.DOTALL)
            whole = compiled.search if self.embedded else compiled.fullmatch
            if found := whole(self.example):
                mask = [found.start() <= at < found.end() for at in range(len(self.example))]
                for number in range(1, compiled.groups + 1):
                    start, end = found.span(number)
                    mask[start:end] = [False] * (end - start)
                return mask
        return None

    def matches(self, text: Text) -> bool:
        """Whether `text` is this wording (see the module's docstring)."""
        return any(self._reads(index, text) for index in range(len(self.shapes))) or self._rendered(text)

    def _reads(self, index: int, text: Text) -> bool:
        shape = self.shapes[index]
        source = "".join(HOLE if part is None else part for part in text)
        # linear, and settles almost every pair; the expression below only adds what each hole may hold
        open_shape = tidy(None if kind == "hole" else part for kind, part in shape)
        if wildcard((None, *open_shape, None) if self.embedded else open_shape, source) is None:
            return False
        pattern = self._patterns.get(index)
        if pattern is None:
            body = "".join(re.escape(part) if kind == "literal" else _over_source(part) for kind, part in shape)
            pattern = self._patterns[index] = re.compile(body)
        return (pattern.search if self.embedded else pattern.fullmatch)(source) is not None

    def _rendered(self, text: Text) -> bool:
        holes = wildcard(text, self.example)
        mask = self._example_literal
        if holes is None or mask is None:
            return False
        in_source = list(mask)
        for start, end in holes:
            in_source[start:end] = [False] * (end - start)
        words = [found.span() for found in _WORD.finditer(self.example) if all(mask[found.start() : found.end()])]
        kept = sum(all(in_source[start:end]) for start, end in words)
        return kept > 0 and 2 * kept >= len(words)


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
        """Texts that hold at least half of the literal words of one of the wording's shapes."""
        seen: set[int] = set()
        for words in wording.words:
            needed = (len(words) + 1) // 2
            rare = sorted(words, key=lambda word: len(self._postings.get(word, ())))
            for word in rare[: len(words) - needed + 1]:
                for number in self._postings.get(word, ()):
                    if number not in seen and len(words & self._words[number]) >= needed:
                        seen.add(number)
        return (self.texts[number] for number in sorted(seen))

    def matching(self, wording: Wording) -> list[Text]:
        return [text for text in self.candidates(wording) if wording.matches(text)]
