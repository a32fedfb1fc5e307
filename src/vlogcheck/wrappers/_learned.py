"""Text in front of vLLM's prefix that no family knows: VLLM_LOGGING_PREFIX and wrappers nobody has described.

What stood in front of vLLM's own prefix the same way, digits aside, in two lines is a wrapper, and is then taken off
every line that begins with it. A single word in brackets is taken at once.
"""

from __future__ import annotations

import re

from vlogcheck._lazy import pattern

from ._base import VLLM_PREFIX, VLLM_START, Layer, State

_WORD = pattern(r"\s*(?:\[[^\[\]\r\n]{1,48}\]|<[^<>\r\n]{1,48}>|\{[^{}\r\n]{1,48}\})[ \t]*[:|]?[ \t]+$")
_DIGITS = pattern(r"\d+")
_LEVEL_WORDS = ("INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL")
_MAX_HEAD = 200
_MAX_HEADS = 16
_MAX_CSV = 100_000
# A progress bar, or a message another process was writing, is no wrapper.
_NOT_A_HEAD = pattern(r"[\r\n]|\d%|it/s|s/it")


class Heads:
    """The heads seen in one input."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._known: dict[str, re.Pattern[str]] = {}

    def take(self, text: str) -> Layer | None:
        """Take off a known head, or learn one. Only for lines that no family took."""
        for shape, known in self._known.items():
            if found := known.match(text):
                return Layer(text[found.end() :], source=self._source(shape, found[0]))
        if not any(word in text for word in _LEVEL_WORDS):
            return None
        found = VLLM_PREFIX.search(text[: _MAX_HEAD + 300])
        if not found or not 0 < found.start() <= _MAX_HEAD:
            return None
        head = text[: found.start()]
        if (start := head.find('{"')) > 0:  # a JSON record stands behind the head, the prefix is in its message
            head = head[:start]
        if _NOT_A_HEAD.search(head) or not head.strip() or len(self._seen) > 1000:
            return None
        shape = _DIGITS.sub("0", head)
        count = self._seen[shape] = self._seen.get(shape, 0) + 1
        if not _WORD.match(head) and (count < 2 or not _looks_like_mark(head)):
            return None
        if len(self._known) < _MAX_HEADS:
            self._known[shape] = re.compile(r"\d+".join(re.escape(part) for part in _DIGITS.split(head)))
        return Layer(text[len(head) :], source=self._source(shape, head))

    def _source(self, shape: str, head: str) -> str | None:
        # A logging prefix is missing on everything vLLM's logger did not write (server ready, tracebacks): with a
        # single prefix in the file, those lines are of the same server, so naming a source would tear it apart.
        return head.strip(" \t[]<>{}:|") or None if len(self._known) > 1 and _WORD.match(head) else None


def _looks_like_mark(head: str) -> bool:
    """Not merely words: something that a sentence cut short would not end with."""
    return not head.replace(" ", "").isalpha()


def column(text: str, state: State) -> Layer | None:
    """Take the message column of a CSV export (log explorers of cloud providers)."""
    if len(text) > _MAX_CSV or "," not in text:
        return None
    if state.column is None:
        found = VLLM_PREFIX.search(text)
        if not found or text[max(found.start() - 1, 0)] not in ',"':
            return None
    import csv

    try:
        row = next(csv.reader([text]), [])
    except csv.Error:
        return None
    if state.column is None:
        place = next((place for place, cell in enumerate(row) if VLLM_START.match(cell)), None)
        if place is None or len(row) < 2:
            return None
        state.column = (len(row), place)
    width, place = state.column
    return Layer(row[place]) if len(row) == width else None
