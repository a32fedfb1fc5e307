"""What every wrapper family shares: the layer it takes off, and how a line of the process itself begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

Fields = Mapping[str, "str | int"]


_LONGEST_NAME = 256
_MOST_NAMES = 4096
_MOST_SHAPES = 256


class Layer(NamedTuple):
    """One wrapper taken off one line."""

    text: str
    """What was inside."""
    time: str | None = None
    """The wrapper's own time, as it is written."""
    source: str | None = None
    """Who wrote the line, as far as this wrapper knows."""
    stream: str | None = None
    """stdout or stderr, where the wrapper says so."""
    partial: bool = False
    """The line goes on in the next line of the same source and stream."""
    fields: Fields | None = None
    """Set when the payload is the record of a logging formatter: text is then the bare message."""
    shape: tuple[str, ...] | None = None
    """The keys of the object the record was."""


class State:
    """What one input has shown so far. Helps where a single line is ambiguous; never makes a clear line unclear."""

    def __init__(self) -> None:
        self.docker_newlines = False
        """A Docker json-file record that ends in a newline was seen: one without is then a piece of a longer line."""
        self.names: set[str] = set()
        """Container, pod and host names that a line with an unmistakable form carried."""
        self.column: tuple[int, int, int] | None = None
        """Number of columns and index of the message column of a CSV export, and how many wrappers are around it."""
        self._carriers: set[tuple[str, ...] | None] = set()

    def carries_lines(self, shape: tuple[str, ...] | None) -> bool:
        """Whether the messages of records of this shape are a process's lines, not what a logger was told."""
        return shape in self._carriers

    def is_carrier(self, shape: tuple[str, ...] | None) -> None:
        """Keep, within bounds, that a record of this shape had a line for its message."""
        if len(self._carriers) < _MOST_SHAPES:
            self._carriers.add(shape)

    def remember(self, name: str) -> None:
        """Keep a name, within bounds: a log of many short-lived containers must not fill memory."""
        if len(name) <= _LONGEST_NAME:
            if len(self.names) >= _MOST_NAMES:
                self.names.clear()
            self.names.add(name)


Family = Callable[[str, State], "Layer | None"]
"""Takes a line whose first character is one the family is registered for; None when it is not this wrapper."""

Registration = tuple[str, Family]
"""First characters a family can begin with, and the family."""

DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

ESC = r"\x1b\[[0-9;]*m"

# Names vLLM gives its processes (0.4.2 … 0.33) and Ray gives vLLM's worker classes. Such a tag belongs to the line,
# not to a wrapper: one server has several of them, so it must not become a source.
_VLLM_TAG = (
    r"\((?:A[Pp][Ii]Server\w*|\w*EngineCore\w*|\w*Worker[\w \-]*|MainProcess|\w*Process-[\d:]+|DP\w+|Ray\w*Executor\w*)"
    r"(?: rank=\d+)? pid=\d+"
)
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_PREFIX = rf"{_LEVEL}(?:{ESC})* (?:vllm(?:\.\w{{1,64}}){{1,12}} )?(?:{ESC})*\d\d-\d\d \d\d:\d\d:\d\d"

VLLM_START = re.compile(rf"(?:{ESC})*(?:{_VLLM_TAG}|{_PREFIX})")
"""A line as vLLM itself begins it: process tag, or level and date."""

VLLM_TAG = pattern(rf"(?:{ESC}){{0,4}}{_VLLM_TAG}")
"""A process tag of vLLM's anywhere in a line, with its colour."""

# Looked for anywhere in a line: what may repeat is bounded, so that a line of nothing else costs one pass.
_SOME_ESC = rf"(?:{ESC}){{0,4}}"
VLLM_PREFIX = pattern(
    rf"(?:{_SOME_ESC}\([^()\r\n]{{1,80}}pid=\d{{1,15}}[^()\r\n]{{0,60}}\){_SOME_ESC} ){{0,8}}{_SOME_ESC}{_PREFIX}"
)
"""vLLM's own prefix (process tags, level, date) anywhere in a line."""

UVICORN = re.compile(r"(?=.{10})(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): {1,5}(?<=^.{10})")
"""Uvicorn's default prefix: the level and a colon, padded to ten columns. Part of every plain vLLM log."""

LEADING_ESC = pattern(rf"(?:{ESC})+")


def clean(text: str) -> str:
    """Replace lone surrogates in text from JSON, which no later step could encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def without_newline(text: str) -> str:
    """Drop the line end the writer kept in a payload."""
    return text[:-1] if text.endswith("\n") else text
