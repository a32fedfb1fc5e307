"""Lines that a wrapper cut into pieces, as container runtimes do at 16 KiB: kept until the last piece is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vlogcheck.wrappers import Unwrapped, Unwrapper

__all__ = ["Pieces"]

_JOIN_LIMIT = 1 << 20
"""Characters of one line put together again."""
_HOLD_LIMIT = 16 << 20
_MOST_PARTIAL = 4096
"""What is held of all lines that go on, in characters and in lines: beyond it a piece is taken as it is."""


class _Line:
    __slots__ = ("first", "size", "texts")

    def __init__(self, first: Unwrapped) -> None:
        self.first = first
        self.texts: list[str] = []
        self.size = 0


class Pieces:
    """Puts pieces of lines together, by source, stream and how deep in wrappers the cut was made."""

    def __init__(self, unwrapper: Unwrapper) -> None:
        self._unwrapper = unwrapper
        self._lines: dict[tuple[str | None, str | None, int], _Line] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._lines)

    def join(self, piece: Unwrapped) -> Unwrapped | None:
        """Take a piece, or a line that is none; return the whole line when it is complete, None before.

        What was cut may itself be wrapped (JSON inside CRI), and be a piece of what another wrapper cut.
        """
        while True:
            key = (piece.source, piece.stream, piece.layers)
            line = self._lines.get(key)
            if line is None:
                if not piece.partial:
                    return piece
                line = _Line(piece)
            line.texts.append(piece.text)
            line.size += len(piece.text)
            room = len(self._lines) < _MOST_PARTIAL and self._size < _HOLD_LIMIT
            if piece.partial and line.size < _JOIN_LIMIT and room:
                self._lines[key] = line
                self._size += len(piece.text)
                return None
            if self._lines.pop(key, None) is not None:
                self._size -= line.size - len(piece.text)
            piece = self._unwrapper.unwrap("".join(line.texts), line.first)

    def flush(self) -> Iterator[Unwrapped]:
        """Give, without their ends, the lines whose continuation never came."""
        lines = [*self._lines.values()]
        self._lines.clear()
        self._size = 0
        for line in lines:
            yield self._unwrapper.unwrap("".join(line.texts), line.first)._replace(partial=False)
