"""Unfinished: messages of several lines, of each process the one that waits for its next line.

Every line of such a message has the prefix and the tag. Two processes that write at the same moment get their tags in front of
each other's lines: then a line goes on where it fits, among the few messages to which that can have happened.
"""

from __future__ import annotations

from collections import deque
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vlogcheck.lines import LogLine
    from vlogcheck.template import Template

__all__ = ["Pending", "Unfinished"]

_MOST = 1024
"""Processes whose message may be unfinished at the same time."""
_MOST_PIECES = 5
"""Pieces a copied line may have been broken into."""
_TELLS = 8
"""Characters that are enough to tell how a line begins."""
_LONGEST_VALUE = 24
"""Characters of a value in a line that may be broken."""
_CROSSED = "crossed"
"""Marks the key of a message that was interrupted by another one's beginning behind its own tag."""


class Pending:
    """The lines so far of a message that spreads over several lines."""

    __slots__ = ("broken", "candidates", "first", "lines")

    def __init__(self, first: LogLine, candidates: list[Template]) -> None:
        self.first = first
        self.candidates = candidates
        self.lines = [first.message]
        self.broken: list[LogLine] = []
        """The pieces so far of its next line, where that was broken by copying."""

    def goes_on(self, message: str) -> list[Template]:
        """Return the wordings of which this is the next line."""
        at = len(self.lines)
        return [t for t in self.candidates if len(t.lines()) > at and t.lines()[at].fullmatch(message)]

    def breaks(self, line: LogLine) -> bool:
        """Take a piece of the next line: its beginning, or what follows that without a prefix; whether it can be one."""
        if len(self.broken) >= _MOST_PIECES or (self.broken and line.source is not None):
            return False
        at = len(self.lines)
        texts = list(_put_together([*self.broken, line]))
        taken = any(
            _begins(text, template.literals()[at])
            for template in self.candidates
            if len(template.lines()) > at
            for text in texts
        )
        if taken:
            self.broken.append(line)
        return taken

    def mended(self) -> str | None:
        """Return the next line put together of its pieces, where it is whole."""
        return next((text for text in _put_together(self.broken) if self.goes_on(text)), None)

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
        self._dropped += [part for pending in self._pending.values() for part in (pending.first, *pending.broken)]
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
        message = line.message
        if not left and pending.breaks(line):
            whole = pending.mended()
            if whole is None:
                return pending
            left, message = pending.goes_on(whole), whole
        if not left:
            self._interrupt(key, pending, line)
            return None
        pending.broken.clear()
        pending.lines.append(message)
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
            self._dropped += (pending.first, *pending.broken)


def _put_together(pieces: list[LogLine]) -> Iterator[str]:
    """Yield the texts a line may have been that was broken into pieces, between two words or in one."""
    texts = [piece.message.strip() for piece in pieces]
    for glues in product((" ", ""), repeat=len(texts) - 1):
        yield texts[0] + "".join(map(add, glues, texts[1:]))


def _begins(text: str, literals: list[str]) -> bool:
    """Whether a text may be the beginning of a line that has these literals between its values."""
    if not text.startswith(literals[0]):
        return len(text) >= _TELLS and literals[0].startswith(text)
    at = 0
    for literal in literals:
        found = text.find(literal, at, at + _LONGEST_VALUE + len(literal))
        if found < 0:
            rest = text[at:]
            return any(
                rest.endswith(literal[:end])
                and " " not in rest[: len(rest) - end]
                and len(rest) - end <= _LONGEST_VALUE
                for end in range(min(len(literal), len(rest)) + 1)
            )
        at = found + len(literal)
    return True


def _key(line: LogLine) -> tuple[Any, ...]:
    return (line.process, line.pid, line.container)
