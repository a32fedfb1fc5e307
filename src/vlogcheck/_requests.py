"""The request log: lines that quote prompts, which may speak of anything, memory included.

vLLM prints them as `Received request …`, `Added request …` and so on (entrypoints/logger.py; engine/async_llm_engine.py in V0;
from 0.11 on also `Request … details: prompt: …`, from 0.32 on `Request … JSON body: …`).
A log of gigabytes holds millions of them with a word that is looked for: they are told by their head and never decoded.
"""

from __future__ import annotations

import re

from vlogcheck._lazy import pattern
from vlogcheck._prefix import PREFIX

__all__ = ["REQUEST_LINE", "REQUEST_MESSAGE", "RequestLines", "prefix_outside_quotes"]

_HEAD = (
    r"(?:(?:Received|Added|Finished|Aborted) request |Generated response "
    r"|Request \S{1,200} (?:details: prompt|JSON body): )"
)
REQUEST_MESSAGE = pattern(_HEAD)
REQUEST_LINE = pattern(
    rb"(?:INFO|DEBUG) (?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d \[?[\w./\-]+:\d+\] " + _HEAD.encode("ascii")
)
_QUOTED = pattern(r"""'[^'\\]*(?:\\.[^'\\]*)*'?|"[^"\\]*(?:\\.[^"\\]*)*"?""", re.DOTALL)
"""A text as Python or JSON quotes it. One that has no end goes on to the end of the line: the log cuts long prompts."""
_ANOTHER = pattern(rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d{4}-)?\d\d-\d\d ")

_LONGEST_HEAD = 600
"""Bytes in which the head of such a line, tags and all, ends."""
_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_SPACE = 0x20


def prefix_outside_quotes(text: str, at: int) -> re.Match[str] | None:
    """Return the first prefix of a message behind `at` that no quoted text holds: a prompt may be about a log of vLLM."""
    found = PREFIX.search(text, at)
    quoted = _QUOTED.search(text, at)
    while found is not None and quoted is not None and quoted.start() < found.start():
        at = quoted.end()
        if at > found.start():
            found = PREFIX.search(text, at)
        quoted = _QUOTED.search(text, at)
    return found


class RequestLines:
    """Tells them from other lines. Remembers the last head: the next one differs in its digits alone, and matches alike."""

    def __init__(self) -> None:
        self._head = b"none yet"
        self._size = len(self._head)

    def hold(self, data: bytes, begin: int, hit: int, stop: int) -> bool:
        r"""Whether the line `data[begin:stop]`, whose first anchor is at `hit`, is nothing but a logged request.

        `data[stop]` is its newline.
        """
        end = begin + self._size
        if hit < end or data[begin:end].translate(_ALIKE) != self._head:
            most = min(stop, begin + _LONGEST_HEAD)
            if data.find(b" request ", begin, most) < 0:
                return False
            request = REQUEST_LINE.search(data, begin, most)
            if request is None or request.start() > hit:
                return False
            end = request.end()
            self._head = data[begin:end].translate(_ALIKE)
            self._size = end - begin
        # No other process wrote its message into the line behind it: that would bring its own `[file:line] `.
        at = data.find(b"]", end, stop)  # one byte is looked for several times faster than two
        while at >= 0:
            if data[at + 1] == _SPACE:
                return _ANOTHER.search(data, end, stop) is None
            at = data.find(b"]", at + 1, stop)
        return True
