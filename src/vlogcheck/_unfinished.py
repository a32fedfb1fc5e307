"""Unfinished: messages of several lines, of each process the one that waits for its next line.

Every line of such a message has the prefix and the tag. Two processes that write at the same moment get their tags in front of
each other's lines: then a line goes on where it fits, among the few messages to which that can have happened.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlogcheck.lines import LogLine
    from vlogcheck.template import Template

__all__ = ["Pending", "Unfinished"]

_MOST = 1024
"""Processes whose message may be unfinished at the same time."""
_CROSSED = "crossed"
"""Marks the key of a message that was interrupted by another one's beginning behind its own tag."""


class Pending:
    """The lines so far of a message that spreads over several lines."""

    __slots__ = ("candidates", "first", "lines")

    def __init__(self, first: LogLine, candidates: list[Template]) -> None:
        self.first = first
        self.candidates = candidates
        self.lines = [first.message]

    def goes_on(self, message: str) -> list[Template]:
        """Return the wordings of which this is the next line."""
        at = len(self.lines)
        return [t for t in self.candidates if len(t.lines()) > at and t.lines()[at].fullmatch(message)]

    def begins_at(self, line: LogLine) -> bool:
        """Whether this began where and when that line was printed."""
        first = self.first
        return (first.source, first.time, first.container) == (line.source, line.time, line.container)

    def complete(self) -> Template | None:
        """Return the wording that is whole with the lines so far."""
        return next((t for t in self.candidates if len(t.lines()) == len(self.lines)), None)


class Unfinished:
    """The unfinished message of each process, and the first lines of those that went on otherwise."""

    def __init__(self) -> None:
        self._pending: dict[tuple[Any, ...], Pending] = {}
        self._crossed: deque[tuple[Any, ...]] = deque(maxlen=8)
        """Keys of messages that may go on behind another process's tag."""
        self._dropped: list[LogLine] = []

    def __len__(self) -> int:
        return len(self._pending)

    def begin(self, line: LogLine, candidates: list[Template]) -> None:
        """Wait for the next line of a message."""
        if len(self._pending) > _MOST:
            self.forget()
        self._pending[key := _key(line)] = Pending(line, candidates)
        if line.process is None and key not in self._crossed:
            self._crossed.append(key)

    def forget(self) -> None:
        """Wait no more: the next lines are not coming."""
        self._dropped += [pending.first for pending in self._pending.values()]
        self._pending.clear()
        self._crossed.clear()

    def dropped(self) -> list[LogLine]:
        """Return, once, the first lines of messages that began as a known one and went on otherwise."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def go_on(self, line: LogLine) -> Pending | None:
        """Take a line as the next one of a message and return that, whole or not; None where it goes on none."""
        key = _key(line)
        pending = self._pending.get(key)
        left = pending.goes_on(line.message) if pending is not None else []
        if not left and line.source is not None and (crossed := self._behind_other_tag(line)) is not None:
            pending = self._pending.pop(crossed)
            left = pending.goes_on(line.message)
            if line.process is None or key in self._pending:
                key = crossed
            else:
                pending.first = pending.first._replace(process=line.process, pid=line.pid, rank=line.rank)
            self._pending[key] = pending
        if pending is None:
            return None
        if not left:
            self._interrupt(key, pending, line)
            return None
        pending.lines.append(line.message)
        pending.candidates = left
        if pending.complete() is not None:
            del self._pending[key]
        return pending

    def _interrupt(self, key: tuple[Any, ...], pending: Pending, line: LogLine) -> None:
        """Drop a message that does not go on; set it aside where the same one begins again in the midst of it."""
        begun = pending.begins_at(line) and pending.candidates[0].lines()[0].fullmatch(line.message)
        if begun and line.source is not None and len(pending.lines) > 1:
            self._drop(aside := (*key, _CROSSED))
            self._pending[aside] = self._pending.pop(key)
            self._crossed += (aside, key)
        else:
            self._drop(key)

    def _behind_other_tag(self, line: LogLine) -> tuple[Any, ...] | None:
        """Return the message that goes on here behind another process's tag, where two wrote tags and lines at once.

        Such a message was interrupted by a beginning that has its tag, began behind a wrong one, or began without any.
        """
        for key in tuple(self._crossed):
            pending = self._pending.get(key)
            if pending is None or not pending.begins_at(line):
                self._crossed.remove(key)
                if pending is not None and key[-1] == _CROSSED:
                    self._drop(key)
            elif pending.goes_on(line.message):
                return key
        return None

    def _drop(self, key: tuple[Any, ...]) -> None:
        if (pending := self._pending.pop(key, None)) is not None:
            self._dropped.append(pending.first)


def _key(line: LogLine) -> tuple[Any, ...]:
    return (line.process, line.pid, line.container)
