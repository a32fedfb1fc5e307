"""Lines for people: colour only where the caller says so, aligned columns, folding at the width of a terminal."""

from __future__ import annotations

from vlogcheck._tuples import NamedTuple

__all__ = ["Paint", "align", "at_line", "fold", "rows"]

_STYLES = {
    "error": "31;1",
    "warning": "33",
    "note": "36",
    "fail": "31;1",
    "pass": "32;1",
    "inconclusive": "33;1",
    "dim": "2",
    "bold": "1",
}
_LEAST = 24
"""Columns that text needs beside what it stands next to; with fewer it goes below."""


class Paint(NamedTuple):
    """Colours text, or leaves it as it is."""

    on: bool

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def fold(lead: str, text: str, width: int | None, *, hang: int | None = None) -> list[str]:
    """Return `lead` and `text` in lines of at most `width` columns (None: one line), continued below the text.

    `hang` is the column at which it goes on (default: where the text began). A word longer than the line, such as a path, is
    kept whole.
    """
    if width is None or len(lead) + len(text) <= width or not text:
        return [lead + text]
    import textwrap  # most output is never folded

    column = len(lead) if hang is None else hang
    if width - column < _LEAST:
        column = 4
    room = max(width - column, _LEAST // 2)
    first = width - len(lead)
    if first < _LEAST and hang is None:
        wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        return [lead.rstrip(), *(" " * column + line for line in wrapped)]
    wrapped = textwrap.wrap(
        text, room, initial_indent=" " * max(room - first, 0), break_long_words=False, break_on_hyphens=False
    )
    return [lead + wrapped[0].lstrip(), *(" " * column + line for line in wrapped[1:])]


def rows(pairs: list[tuple[str, str]], width: int | None = None) -> list[str]:
    """Return label and value side by side, the values below each other."""
    widest = max((len(label) for label, _ in pairs), default=0)
    return [line for label, value in pairs for line in fold(f"  {label:<{widest}}  ", value, width)]


def align(row: list[str], widths: list[int]) -> str:
    """Return a table's row: the first column to the left, the figures to the right."""
    first, *cells = row
    return f"{first:<{widths[0]}}" + "".join(
        f"  {cell:>{widths[i]}}" for i, cell in enumerate(cells, 1) if i < len(row)
    )


def at_line(line: int) -> str:
    """Return where in the log something stands: of several parts, in which."""
    path = getattr(line, "path", None)
    return f"line {line}" if path is None else f"line {line} of {path.replace(chr(92), '/').rpartition('/')[2]}"
