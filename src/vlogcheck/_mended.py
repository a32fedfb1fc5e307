"""Mended: messages that are whole in the log and yet not as vLLM wrote them, because somebody copied them.

Two kinds, both only for lines that make no record as they stand: a message between marks of a document (`> `, `# `, bold
type, backticks), and a long message of the memory ledger that was broken over several lines.
"""

from __future__ import annotations

from itertools import cycle, product
from operator import add
from typing import TYPE_CHECKING, Any

from vlogcheck._cut_ends import missing_ends
from vlogcheck._lazy import pattern
from vlogcheck._prefix import LEVELS
from vlogcheck._quoted import unquoted, without_level
from vlogcheck.records import (
    FreeMemoryTooLow,
    KVCacheCapacity,
    KVCacheMemory,
    KVCacheTooSmall,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    NoKVCacheMemory,
    OutOfMemory,
    Raised,
    WeightsLoaded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.lines import LogLine
    from vlogcheck.template import Record

__all__ = ["Mender"]

_MARKS = " \t#=>*`|\u2502\u2022\u258c\u258d\u258e\u258f\u2590-"
_LONG = (
    FreeMemoryTooLow, KVCacheCapacity, KVCacheMemory, KVCacheTooSmall, MaxConcurrency, MemoryProfile, MemoryUse,
    NoKVCacheMemory, OutOfMemory, WeightsLoaded,
)  # fmt: skip
"""The records a broken message may make."""
_OPENING = pattern(
    r"(?:[\w.]+(?:Error|Exception): )?"
    r"(?:Free memory on device\b|Available memory on node\b|To serve at least one request with\b|No available memory for the\b"
    r"|(?:CUDA|HIP|XPU|NPU|MUSA|MLU) out of memory\.|(?:Loading model weights|Model loading) took\b|Available KV cache memory:"
    r"|(?:GPU|CPU|[NTXH]PU) KV cache size:|Maximum concurrency for\b|Memory profiling results: duration=)"
)
"""How these messages begin."""
_DOTS = pattern(r"(?:`?\.`?| ?(?:\.{3}|\u2026)\)?)$")
"""What stands in a document for the end of a message, and the full stop of the sentence it is quoted in."""
_MOST_LINES = 12
_MORE = 4
"""Lines behind a message that is whole in which more of it is looked for."""
_MOST_CUTS = 5
_ALIKE = ((" ",), ("",))
_MOST_WAITING = 64
_LONGEST = 4000


class _Broken:
    """The lines so far of what may be one broken message."""

    __slots__ = ("alone", "lines", "taken", "whole")

    def __init__(self, line: LogLine, alone: Record | None) -> None:
        self.lines = [line]
        self.alone = alone
        """The record its first line makes by itself: an error whose text is cut short."""
        self.whole: Record | None = alone if isinstance(alone, _LONG) else None
        """The record they make together."""
        self.taken = 1
        """How many lines that took."""

    def full(self) -> bool:
        """Whether no line that may follow could tell more."""
        if isinstance(self.whole, KVCacheTooSmall):
            return self.whole.estimated_max_model_len is not None
        return self.whole is not None and not (isinstance(self.whole, OutOfMemory) and self.whole.total_gib is None)

    def waits(self) -> bool:
        """Whether another line is looked at."""
        return len(self.lines) < (_MOST_LINES if self.whole is None else self.taken + _MORE)


class Mender:
    """Puts copied messages right and asks again what record they make."""

    def __init__(self, recognise: Callable[[LogLine], Record | None]) -> None:
        self._recognise = recognise
        self._waiting: dict[tuple[Any, ...], _Broken] = {}

    @property
    def unfinished(self) -> int:
        """How many broken messages wait for their next line."""
        return len(self._waiting)

    def forget(self) -> list[Record | LogLine]:
        """Wait no more; return what the lines that waited come to."""
        left = [part for broken in self._waiting.values() for part in self._left(broken)]
        self._waiting.clear()
        return left

    def take(self, line: LogLine, record: Record | None) -> list[Record | LogLine]:
        """Take a line and the record it makes as it stands; return the records there are now, and lines that make none."""
        key = _key(line)
        if (
            self._waiting
            and record is None
            and line.process is None
            and line.source is None
            and key not in self._waiting
        ):
            key = next(reversed(self._waiting))  # a piece cut off behind a tag has none
        left: list[Record | LogLine] = []
        if self._waiting and (broken := self._waiting.get(key)) is not None:
            first = broken.lines[0]
            if record is None and (line.source is None or line.source == first.source):
                broken.lines.append(line)
                whole = self._joined(broken.lines)
                if whole is not None and (broken.whole is None or _told(whole) > _told(broken.whole)):
                    broken.whole, broken.taken = whole, len(broken.lines)
                if broken.full():
                    del self._waiting[key]
                    return [whole] if whole is not None else []
                if line.message.strip() and broken.waits() and not self._opens(line):
                    return []
                broken.lines.pop()
            left = self._left(broken)
            del self._waiting[key]
        if record is None:
            record = self._unmarked(line)
        if self._opens(line) and _may_go_on(record, line.message) and len(self._waiting) < _MOST_WAITING:
            self._waiting[_key(line)] = _Broken(line, record)
            return left
        return [*left, line if record is None else record]

    def _left(self, broken: _Broken) -> list[Record | LogLine]:
        """Return what lines come to that are no whole message together."""
        if broken.whole is not None:
            return [broken.whole, *broken.lines[broken.taken :]]
        first = broken.lines[0]
        pieces = _pieces(broken.lines)
        for count in range(min(len(pieces), _MOST_CUTS), 0, -1):
            record = self._completed(first, _DOTS.sub("", " ".join(pieces[:count])))
            if isinstance(record, NoKVCacheMemory) and broken.alone is None and first.source is None:
                record = None  # without figures, no error's class and no prefix: prose, or a source line of a traceback
            if record is not None:
                return [record, *broken.lines[count:]]
        return [broken.alone or first, *broken.lines[1:]]

    def _completed(self, first: LogLine, text: str) -> Record | None:
        """Return the record of a message whose end was cut off behind its last figure."""
        for missing in missing_ends(text, _LONG):
            record = self._recognise(first._replace(message=text + missing))
            if isinstance(record, _LONG):
                return record
        return None

    @staticmethod
    def _opens(line: LogLine) -> bool:
        return _OPENING.match(line.message.lstrip(_MARKS)) is not None

    def _unmarked(self, line: LogLine) -> Record | None:
        """Return the record of a message between marks, or with some of its words in bold type."""
        if "**" in line.message and (record := self._recognise(line._replace(message=line.message.replace("**", "")))):
            return record
        message = unquoted(line)
        if line.source is None and message[:1] in _MARKS:
            message = message.strip(_MARKS)
        if line.source is None and message.startswith(LEVELS):
            message = without_level(message)
        return self._recognise(line._replace(message=message)) if message and message != line.message else None

    def _joined(self, lines: list[LogLine]) -> Record | None:
        pieces = _pieces(lines)
        glues = tuple(product((" ", ""), repeat=len(pieces) - 1)) if len(pieces) <= _MOST_CUTS else _ALIKE
        best: Record | None = None
        for glue in glues:  # a line ends between two words or in one
            text = pieces[0] + "".join(map(add, cycle(glue), pieces[1:]))
            if len(text) < _LONGEST:
                record = self._recognise(lines[0]._replace(message=text))
                if isinstance(record, _LONG) and (best is None or _told(record) > _told(best)):
                    best = record
        return best


def _pieces(lines: list[LogLine]) -> list[str]:
    """Return what the lines of a broken message hold of it; a remark of the one who copied it does not."""
    last = lines[-1].message if lines[-1].source is not None else unquoted(lines[-1])
    return [line.message.strip(_MARKS) for line in lines[:-1]] + [last.strip(_MARKS)]


def _may_go_on(record: Record | None, message: str) -> bool:
    """Whether a message that begins like a long one, and the record it makes, may lack what the next lines say."""
    if isinstance(record, KVCacheTooSmall):
        return record.estimated_max_model_len is None and "Try increasing" not in message
    if isinstance(record, OutOfMemory):
        return record.total_gib is None and "Tried to allocate" in message
    return record is None or isinstance(record, Raised)


def _told(record: Record) -> int:
    """Return how many figures a record has."""
    return sum(value is not None for value in vars(record).values())


def _key(line: LogLine) -> tuple[Any, ...]:
    return (line.process, line.pid, line.container)
