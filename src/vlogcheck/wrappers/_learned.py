"""Text in front of a line that no family knows: VLLM_LOGGING_PREFIX and wrappers nobody has described.

What stood in front of vLLM's own prefix, of a record or of another wrapper with a line of vLLM inside the same way, digits
aside, in two lines is a wrapper, and is then taken off every line that begins with it. A single word in brackets is taken at
once, and so is what ends in a mark (`gpu0> `) in front of another wrapper, and whatever stands in front of JSON.
"""

from __future__ import annotations

import re
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern

from ._base import VLLM_PREFIX, VLLM_TAG, Layer, State

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = pattern(r"\s*(?:\[[^\[\]\r\n]{1,48}\]|<[^<>\r\n]{1,48}>|\{[^{}\r\n]{1,48}\})[ \t]*[:|]?[ \t]+$")
_BEFORE = pattern(r"(?:\[[^\[\]\r\n]{1,48}\]|<[^<>\r\n]{1,48}>|[\w.=\-]{1,48} ?[:|>;])[ \t]+$")
_DIGITS = pattern(r"\d+")
_INSIDE = pattern(
    r'(?P<object>\{")|(?P<string>(?<=[ \t])")|\b(?:time|ts|level)=|<\d{1,3}>'
    r"|\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:"
)
"""How what is unmistakably a wrapper or a record may begin behind a head."""
_MARK = pattern(r".*?(?:[^\w\s.,][ \t]+|$)")
"""One of the marks a head consists of."""
_ENDED = pattern(r"[^\w\s.,][ \t]+$")
_MAX_HEAD = 200
_MAX_HEADS = 16
_MAX_TRIES = 4
_MOST_SEEN = 1000
_MAX_CSV = 100_000
_MAX_COLUMNS = 64
# A progress bar, or a message another process was writing, is no wrapper.
_NOT_A_HEAD = pattern(r"[\r\n]|\d%|it/s|s/it")


def has_level(text: str) -> bool:
    """Whether a text has what is in every line of vLLM's logger, whoever formatted it: a level, or JSON that may name one."""
    return (
        "INFO" in text or '{"' in text or "WARNING" in text or "ERROR" in text or "DEBUG" in text or "CRITICAL" in text
        or "level=" in text
    )  # fmt: skip


class Heads:
    """The heads seen in one input. `holds_line` tells whether a text is a wrapped line of vLLM or a logger's record."""

    def __init__(self, holds_line: Callable[[str], bool]) -> None:
        self._holds_line = holds_line
        self._seen: dict[str, int] = {}
        self.shapes: dict[str, re.Pattern[str]] = {}
        self._words: dict[int, set[str]] = {}  # in brackets, by how many wrappers are around them

    def known(self, text: str, depth: int) -> Layer | None:
        """Take off a head that was learned. `depth` is how many wrappers are around the text."""
        for known in self.shapes.values():
            if found := known.match(text):
                return Layer(text[found.end() :], source=self._source(found[0], depth))
        return None

    def learn(self, text: str, depth: int) -> Layer | None:
        """Learn a head, and take it off once it is one. Only for lines that nothing else took."""
        if len(self._seen) > _MOST_SEEN or not has_level(text):
            return None
        head, at_once = self._head(text)
        if not head.strip() or _NOT_A_HEAD.search(head):
            return None
        shape = _DIGITS.sub("0", head)
        count = self._seen[shape] = self._seen.get(shape, 0) + 1
        word = _WORD.match(head) is not None
        if not (at_once or word) and (count < 2 or not _looks_like_mark(head)):
            return None
        if len(self.shapes) < _MAX_HEADS:
            self.shapes[shape] = re.compile(_expression(head))
            if word:
                self._words.setdefault(depth, set()).add(shape)
        return Layer(text[len(head) :], source=self._source(head, depth))

    def _head(self, text: str) -> tuple[str, bool]:
        """Return what stands in front of the line or record in a text, and whether what follows proves it to be a head."""
        prefix = VLLM_PREFIX.search(text[: _MAX_HEAD + 300])
        end = min(prefix.start() if prefix else _MAX_HEAD, _MAX_HEAD)
        inside = [(found.start(), found.lastgroup) for found in islice(_INSIDE.finditer(text, 1, end + 1), _MAX_TRIES)]
        marks = [(mark.end(), "mark") for mark in islice(_MARK.finditer(text, 0, end), _MAX_TRIES)]
        for start, kind in sorted((*inside, *marks), key=itemgetter(0)):
            if kind == "string":  # its indentation shows that the string is a line of JSON
                bare = len(text[:start].rstrip())
                start = min(bare + 1, start - 1) if start - bare > 1 else start
            if 0 < start < end + (kind != "mark") and self._holds_line(text[start:]):
                line_of_json = kind == "string" and text.rstrip(" \t\r,").endswith('\\n"')
                marked = kind != "string" and _ENDED.search(text, max(start - 4, 0), start) is not None
                return text[:start], kind == "object" or line_of_json or marked
        if prefix is None or prefix.start() > _MAX_HEAD:
            return "", False
        tag = VLLM_TAG.search(text, 0, end)  # VLLM_LOGGING_PREFIX stands between it and the level
        return text[: tag.start() if tag else end], False

    def _source(self, head: str, depth: int) -> str | None:
        # A logging prefix is missing on everything vLLM's logger did not write (server ready, tracebacks): with a
        # single prefix in the file, those lines are of the same server, so naming a source would tear it apart.
        several = len(self._words.get(depth, ())) > 1
        return head.strip(" \t[]<>{}:|") or None if several and _WORD.match(head) else None


def _expression(head: str) -> str:
    """Return the expression of a head. Its last marks are optional: only lines of vLLM's logger have VLLM_LOGGING_PREFIX."""
    first, *others = (r"\d+".join(map(re.escape, _DIGITS.split(mark))) for mark in _MARK.findall(head) if mark)
    return first + "".join(f"(?:{mark}" for mark in others) + ")?" * len(others)


def _looks_like_mark(head: str) -> bool:
    """Not merely words: something that a sentence cut short would not end with."""
    return not head.replace(" ", "").isalpha()


def column(text: str, depth: int, state: State, holds_line: Callable[[str], bool]) -> Layer | None:
    """Take the message column of a CSV export (log explorers of cloud providers)."""
    if len(text) > _MAX_CSV:
        return None
    if state.column is None and '{""' not in text and not has_level(text):
        return None
    import csv

    try:
        row = next(csv.reader([text]), [])
    except csv.Error:
        return None
    if state.column is None:
        if not 2 <= len(row) <= _MAX_COLUMNS:
            return None
        cells = ((number, cell) for number, cell in enumerate(row) if cell.lstrip()[:1] != '"')  # a piece of JSON
        place = next((number for number, cell in cells if (number and _is_message(cell)) or holds_line(cell)), None)
        if place is None:
            return None
        state.column = (len(row), place, depth)
    width, place, _ = state.column
    return Layer(row[place]) if len(row) == width else None


def _is_message(cell: str) -> bool:
    """Whether vLLM's prefix begins a cell or stands behind VLLM_LOGGING_PREFIX there."""
    found = VLLM_PREFIX.search(cell[:_MAX_HEAD])
    return found is not None and (not found.start() or _BEFORE.match(cell[: found.start()]) is not None)
