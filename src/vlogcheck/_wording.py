"""A template's text taken apart, and the expression of each of its lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vlogcheck._holes import ANY, NUMBER, SIZE_UNITS
from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vlogcheck._holes import Hole

__all__ = ["Piece", "expressions", "is_open", "parse"]

_SOME = ".{0,400}?"  # searching for an embedded text may start at many places: bounded, it stays linear
_SPECIAL = re.compile(r"[.^$*+?{}\[\]|()\\]")
_PIECES = re.compile(r"\{\{|\}\}|\{(?P<field>\w+)(?::(?P<spec>[^{}]*))?\}|\[\[|\]\]")


class Piece(NamedTuple):
    """A literal, a hole, or the border of an optional part."""

    kind: str  # literal, hole, open, close
    text: str
    spec: str = ""

    @property
    def unit(self) -> int | None:
        """Bytes of the unit the hole is printed in, where the template names one."""
        return SIZE_UNITS.get(self.spec.lstrip(".0123456789"))

    @property
    def decimals(self) -> int | None:
        """Decimals the hole is rounded to, where the template says so."""
        digits = re.match(r"\.(\d+)", self.spec)
        return None if digits is None else int(digits[1])


def parse(text: str) -> Iterator[Piece]:
    """Yield the pieces of a template's text in order."""
    at = 0
    literal = ""
    for match in _PIECES.finditer(text):
        literal += text[at : match.start()]
        at = match.end()
        token = match[0]
        if token in ("{{", "}}"):
            literal += token[0]
            continue
        if literal:
            yield Piece("literal", literal)
            literal = ""
        if token == "[[":
            yield Piece("open", "")
        elif token == "]]":
            yield Piece("close", "")
        else:
            yield Piece("hole", match["field"], match["spec"] or "")
    literal += text[at:]
    if literal:
        yield Piece("literal", literal)


def is_open(pieces: Sequence[Piece], enter: str, leave: str) -> bool:
    """Whether the first of the pieces that is there is a value, with any optional parts before it or without them."""
    depth = 0
    skipping = 0
    for piece in pieces:
        if piece.kind == enter:
            depth += 1
        elif piece.kind == leave:
            depth -= 1
            skipping = min(skipping, depth)
        elif depth and depth <= skipping:
            continue  # what stands behind the end of an optional part
        elif piece.kind == "hole" and piece.text != "_":
            return True
        elif piece.kind == "literal":
            if not depth:
                return False
            skipping = depth
    return False


class _Expression:
    """The expression of one line of a message, so put together that matching it costs one pass over the line.

    With several holes that take any text, an expression would try every way to share the text out among them: a long line
    that repeats a literal would take hours. But what a hole took up to the first place where the literals and holes behind
    it fit never needs to be longer while another such hole follows: that one takes the rest. So each of these stretches is
    closed, by a group that looks ahead and a reference to what it found (Python has atomic groups from 3.11 on only).
    """

    def __init__(self) -> None:
        self._closed = ""
        self._open = ""
        self._free = False
        self._stretches = 0

    def add(self, part: str, *, free: bool = False) -> None:
        """Add a literal, a hole (`free`: one that takes any text) or the border of an optional part."""
        if free:
            self._close()
            self._free = True
        self._open += part

    def _close(self) -> None:
        if self._free:
            name = f"_{self._stretches}"
            self._stretches += 1
            self._open = f"(?=(?P<{name}>{self._open}))(?P={name})"
        self._closed, self._open = self._closed + self._open, ""

    @property
    def text(self) -> str:
        """The whole expression."""
        return self._closed + self._open


def expressions(
    pieces: Sequence[Piece], hole_of: Callable[[str], Hole], *, embedded: bool = False
) -> tuple[re.Pattern[str], ...]:
    """Return one compiled expression for each line of the message; `hole_of` says what a field's hole looks like."""
    lines = [_Expression()]
    depth = 0
    for at, piece in enumerate(pieces):
        if piece.kind == "open":
            depth += 1
            lines[-1].add("(?:")
        elif piece.kind == "close":
            depth -= 1
            lines[-1].add(")?")
        elif piece.kind == "hole":
            # A hole inside an optional part is tried wherever the part may begin: bounded, unless it takes the rest.
            inner = depth > 0 and any(p.kind != "close" for p in pieces[at + 1 :])
            taken, free = _hole(piece, hole_of, bounded=embedded or inner)
            lines[-1].add(taken, free=free and not depth)
        else:
            first, *rest = (_SPECIAL.sub(r"\\\g<0>", part) for part in piece.text.split("\n"))
            lines[-1].add(first)
            for part in rest:
                lines.append(_Expression())
                lines[-1].add(part)
    return tuple(re.compile(line.text, re.DOTALL) for line in lines)


def _hole(piece: Piece, hole_of: Callable[[str], Hole], *, bounded: bool) -> tuple[str, bool]:
    """Return a hole's group, and whether the hole takes any text, as little of it as it can."""
    if piece.text == "_":
        return f"(?:{_SOME if bounded else ANY})", True
    expression = NUMBER if piece.unit is not None else hole_of(piece.text).expression
    free = expression == ANY
    return f"(?P<{piece.text}>{_SOME if bounded and free else expression})", free
