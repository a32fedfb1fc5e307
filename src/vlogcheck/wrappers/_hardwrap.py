"""Logs that were copied from a terminal: every line cut at the terminal's width."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern

from ._base import VLLM_PREFIX, VLLM_START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NARROWEST, WIDEST = 40, 400
_FEWEST = 3
_SAMPLE = 2000
_FIGURES = pattern(r"\d+")


def _columns(line: str) -> int:
    if line.isascii():
        return len(line)
    import unicodedata

    wide = sum(1 for char in line if unicodedata.east_asian_width(char) in "WF")
    combining = sum(1 for char in line if unicodedata.combining(char))
    return len(line) + wide - combining


def _begins(line: str) -> bool:
    """Whether a line has vLLM's prefix of its own, alone or behind a short wrapper."""
    if VLLM_START.match(line):
        return True
    found = VLLM_PREFIX.search(line[:120])
    return found is not None and found.start() < 60


def _separator(line: str) -> bool:
    return len(set(line.strip())) <= 1


def is_hard_wrapped(lines: Sequence[str]) -> int | None:
    """Find the column (display columns, wide characters count two) at which lines were cut, None when they were not.

    A log counts as cut when nothing is wider than that column, at least three lines reach it exactly, and most of those
    that do and begin with vLLM's prefix go on in a line without one: in an uncut log, most lines of any one length are
    followed by a line with its own prefix. Of those that end there, lines that differ in figures only count once: a message
    that happens to be as long may come a thousand times.
    """
    lines = [line.rstrip("\r\n") for line in lines[:_SAMPLE]]
    widths = [_columns(line) for line in lines]
    counts = Counter(width for width in widths if width)
    if not counts:
        return None
    width = max(counts)
    if not (_NARROWEST <= width <= WIDEST and counts[width] >= _FEWEST):
        return None
    full = [
        number
        for number, columns in enumerate(widths[:-1])
        if columns == width and _begins(lines[number]) and not _separator(lines[number])
    ]
    going_on = [number for number in full if lines[number + 1].strip() and not _begins(lines[number + 1])]
    if len(going_on) < _FEWEST:
        return None
    ended = {_FIGURES.sub("0", lines[number]) for number in {*full} - {*going_on}}
    return width if len(going_on) >= 3 * len(ended) else None


def rejoin(lines: Sequence[str], width: int) -> Iterator[tuple[int, str]]:
    """Undo the cut: each whole line with the index (from 0) of its first piece in `lines`.

    Only for a log `is_hard_wrapped` said yes to. A piece as wide as the terminal goes on in the next piece unless that
    begins with vLLM's prefix. Copying may have dropped one blank at the cut: a piece of a prefixed line that is one
    column short gets it back.
    """
    first, parts, prefixed = 0, [""], False
    started = goes_on = False
    for number, raw in enumerate(lines):
        line = raw.rstrip("\r\n")
        begins = _begins(line)
        if started and goes_on and not begins and line.strip():
            parts.append(line)
        else:
            if started:
                yield first, "".join(parts)
            first, parts, prefixed, started = number, [line], begins, True
        columns = _columns(line)
        goes_on = columns == width and not _separator(line)
        if columns == width - 1 and prefixed and number + 1 < len(lines):
            following = lines[number + 1].rstrip("\r\n")
            if following.strip() and not following[0].isspace() and not _begins(following):
                parts.append(" ")
                goes_on = True
    if started:
        yield first, "".join(parts)
