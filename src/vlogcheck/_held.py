"""Lines of a log that a terminal cut at its width: kept until the lines they go on in are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.wrappers import rejoin

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HeldLines"]

_HELD = 4096
"""Lines put together at a time."""
_MOST_BYTES = 1 << 20
"""Bytes of them."""


class HeldLines:
    """Puts the pieces of cut lines together and gives the whole ones to `take`: number, text, whether the log ends in it."""

    def __init__(self, width: int, take: Callable[[int, str, bool], None]) -> None:
        self._width = width
        self._take = take
        self._lines: list[str] = []
        self._size = 0

    def hold(self, number: int, raw: bytes) -> None:
        """Take line `number`."""
        self._lines.append(raw.decode("utf-8", "replace"))
        self._size += len(raw)
        if len(self._lines) >= _HELD or self._size > _MOST_BYTES:
            self.join(number)

    def join(self, number: int, *, last: bool = False, cut: bool = False) -> None:
        """Give the whole lines up to line `number`. The last one is kept while it may go on: until the `last` call.

        `cut` says that the log ends in the middle of its last line.
        """
        if not self._lines:
            return
        before = number - len(self._lines)
        whole = list(rejoin(self._lines, self._width))
        kept = [] if last else self._lines[whole[-1][0] :]
        if len(kept) >= _HELD:
            kept = []
        for index, text in whole if not kept else whole[:-1]:
            self._take(before + index + 1, text, last and cut and index == whole[-1][0])
        self._lines = kept
        self._size = 0
