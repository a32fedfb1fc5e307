"""Scan: bytes in, records out. A push parser without I/O; files, pipes and follow mode are loops around it.

A multi-pattern search over raw bytes finds the lines that can matter: those with a literal of some template, or with a word
that makes a line look like a memory figure. Everything else is counted, never decoded. What becomes of the decoded lines is in
`_messages`. This file is long because finding lines, counting them and leaving out those of requests is one walk over the bytes.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vlogcheck._anchors import METRICS, Find, scan_anchors, scanner
from vlogcheck._messages import Messages
from vlogcheck._requests import REQUEST_LINE, RequestLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vlogcheck._held import HeldLines
    from vlogcheck._messages import Sink
    from vlogcheck._metrics_line import Figures
    from vlogcheck.lines import LogLine, Splitter
    from vlogcheck.template import Record

__all__ = ["Parser", "parse_lines"]

MAX_LINE = 1 << 20
"""Bytes of one physical line handled at a time: a longer line is read in pieces of this size, so memory stays bounded."""

MAX_PIECES = 16
"""Such pieces of one line that are looked at: what comes after them without any newline is no log."""

BLOCK = 1 << 18
"""Bytes searched at a time: few enough to stay in the processor's cache from one pass of the search to the next."""

_METRICS = METRICS.encode()
_MANY = 100
"""Metrics lines from which on the quick way to read them pays for what it costs to prepare (10 ms)."""

_ACCESS = b" HTTP/1."
_STATUS = b" Error"
"""How the status of an access line ends: `500 Internal Server Error`."""


class Parser:
    """Push parser: `feed` bytes in pieces of any size, get the records they complete; `close` gives the rest.

    The records do not depend on how the bytes were cut. `wrapped_at` is the column at which a terminal cut every line (see
    `wrappers.is_hard_wrapped`): then lines are joined again, and every line is decoded instead of only those the search finds.
    With a `collector`, records go to it as they come, and metrics lines as mere figures where that is all it keeps of them;
    `feed` and `close` then return nothing. After `close`: `lines` is the number of physical lines, `truncated` whether the
    last one had no newline, `unrecognised` the number of messages no template knows that speak of memory, are a known one but
    for a few words or were torn apart; `on_unrecognised` is called with each.
    """

    def __init__(
        self, *, on_unrecognised: Callable[[LogLine], None] | None = None, wrapped_at: int | None = None,
        collector: Sink | None = None,
    ) -> None:  # fmt: skip
        self.lines = 0
        self.truncated = False
        self._collector = collector
        self._records: list[Record] = []
        self._messages = Messages(self._records.append if collector is None else collector.add, on_unrecognised)
        self._metrics_lines = 0
        self._read_metrics: Callable[[bytes], Figures | None] | None = None
        self._requests = RequestLines()
        self._find: Find | None = None if wrapped_at else _finder(self._messages.texts)
        self._held: HeldLines | None = None
        if wrapped_at:
            from vlogcheck._held import HeldLines

            self._held = HeldLines(wrapped_at, self._messages.take)
        self._tail = bytearray()
        self._pieces = 0  # of the line in the tail that were handled already
        self._closed = False

    @property
    def unrecognised(self) -> int:
        """How many messages were told to `on_unrecognised`."""
        return self._messages.unrecognised

    def leave(self) -> Splitter:
        """Return what the parser of the log's next part has to know of wrappers. Before `close`."""
        return self._messages.splitter.leave()

    def follow(self, left: Splitter) -> None:
        """Go on with the log that another parser has read a part of."""
        self._messages.follow(left)

    @property
    def open_line(self) -> bytes:
        """What has come of a line whose end has not; nothing of one that is too long to be held."""
        return b"" if self._pieces else bytes(self._tail)

    def feed(self, data: bytes) -> list[Record]:
        """Take the next bytes of the log; return the records they complete. Never raises for any content.

        Raises `ValueError` after `close` and `TypeError` for what is no bytes.
        """
        if self._closed:
            raise ValueError("the parser is closed: begin another log with a new one")
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        for start in range(0, len(data), BLOCK) if len(data) > BLOCK else (0,):
            self._feed(data[start : start + BLOCK])
        return self._taken()

    def close(self) -> list[Record]:
        """Return the records that the end of the log completes."""
        if not self._closed:
            self._closed = True
            if self._tail:
                self.truncated = True
                self._last_line(self._rest())
            if self._held is not None:
                self._held.join(self.lines, last=True, cut=self.truncated)
            self._messages.give_up(self.lines)
        return self._taken()

    def _taken(self) -> list[Record]:
        records = self._records.copy()
        self._records.clear()
        return records

    def _feed(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if not end:
            self._tail += data
            self._drain()
            return
        start = 0
        if self._tail:
            start = data.index(b"\n") + 1
            self._tail += data[:start]
            self._drain()
            line = self._rest()
            self._region(line, 0, len(line))
        if end > start:
            self._region(data, start, end)
        self._tail += data[end:]

    def _rest(self) -> bytes:
        """Take what is left of a line whose beginning came earlier; nothing of one that is too long to be looked at."""
        rest = bytes(self._tail)
        self._tail.clear()
        if self._pieces > MAX_PIECES:
            rest = rest[-1:] if rest.endswith(b"\n") else b""
        self._pieces = 0
        return rest

    def _drain(self) -> None:
        """Handle what has come of a line longer than any buffer should be."""
        while len(self._tail) > MAX_LINE:
            piece = bytes(self._tail[:MAX_LINE])
            del self._tail[:MAX_LINE]
            self._pieces += 1
            if self._pieces <= MAX_PIECES and (self._find is None or self._messages.after or self._find(piece)):
                self._messages.take(self.lines + 1, piece.decode("utf-8", "replace"), False)

    def _region(self, data: bytes, start: int, end: int) -> None:
        """Handle the whole lines in `data[start:end]`."""
        messages = self._messages
        if self._find is None:
            for line in data[start:end].split(b"\n")[:-1]:
                self._hold(line)
            return
        hits = self._find(data if end - start == len(data) else memoryview(data)[start:end])
        at = counted = start  # the first line not yet handled, the first one not yet counted
        collecting = self._collector is not None
        for hit in hits:
            hit += start
            if hit < at:
                continue
            if messages.after:
                self.lines += _newlines(data, counted, at)
                while messages.after and at <= hit:
                    at = self._next_line(data, at)
                counted = at
                if hit < at:
                    continue
            begin = data.rfind(b"\n", at, hit) + 1 or at
            stop = data.index(b"\n", hit)
            if hit + len(_STATUS) - 1 == stop and data[hit - 1 : stop] == _STATUS:
                continue  # the first anchor of the line, and its last word: a status, no error of a name
            if messages.whole and at < begin:
                self.lines += _newlines(data, counted, at)
                counted = self._look(data, at, begin)
            at = stop + 1
            figures = self._figures(data[begin:stop]) if collecting and data.find(b"%", begin, stop) >= 0 else None
            if figures is None and self._requests.hold(data, begin, hit, stop):
                continue
            self.lines += _newlines(data, counted, begin) + 1
            counted = at
            if figures is None or self._collector is None or not self._collector.add_figures(self.lines, figures):
                self._line(data[begin:stop])
        self.lines += _newlines(data, counted, at)
        while messages.after and at < end:
            at = self._next_line(data, at)
        if messages.whole and at < end:
            at = self._look(data, at, end)
        self.lines += _newlines(data, at, end)

    def _look(self, data: bytes, at: int, end: int) -> int:
        """Handle lines of a start-up that hold no anchor; return where it stopped.

        They make no record. But a release may have changed the very word a wording is found by.
        """
        while self._messages.whole and at < end:
            stop = data.index(b"\n", at)
            self._messages.whole -= 1
            self.lines += 1
            line = data[at:stop]
            if b" " not in line:
                if line[:1].isalpha():  # one word at the margin
                    self._line(line)
            elif _ACCESS not in line and (b" request " not in line or REQUEST_LINE.search(line) is None):
                self._line(line)
            at = stop + 1
        return at

    def _next_line(self, data: bytes, start: int) -> int:
        """Handle the line at `start`; return where the next one begins."""
        stop = data.index(b"\n", start)
        self.lines += 1
        self._line(data[start:stop])
        return stop + 1

    def _figures(self, line: bytes) -> Figures | None:
        """Return a metrics line as mere figures; None when it must be read the long way."""
        if self._read_metrics is None:
            if _METRICS in line:
                self._metrics_lines += 1
            if self._metrics_lines < _MANY:
                return None
            from vlogcheck._metrics_line import metrics_reader

            self._read_metrics = metrics_reader()
        return self._read_metrics(line)

    def _line(self, raw: bytes, cut: bool = False) -> None:
        """Handle line number `self.lines`."""
        self._messages.take(self.lines, raw.decode("utf-8", "replace"), cut)

    def _hold(self, raw: bytes) -> None:
        """Keep a line of a hard-wrapped log until the lines it goes on in are there."""
        self.lines += 1
        if self._held is not None:
            self._held.hold(self.lines, raw)

    def _last_line(self, raw: bytes) -> None:
        """Handle a line without a newline at the end of the log."""
        if self._find is None:
            self._hold(raw)
            return
        self.lines += 1
        self._line(raw, cut=True)


@lru_cache(maxsize=2)
def _finder(texts: tuple[str, ...]) -> Find:
    """Return the search for templates of these texts: made once for thousands of logs."""
    return scanner(scan_anchors(texts))


def _newlines(data: bytes, start: int, end: int) -> int:
    """Return how many newlines are in `data[start:end]`.

    Until Python 3.13 `count` looks at each byte, while `replace` jumps from one newline to the next: three times as fast for
    lines of usual length.
    """
    if sys.version_info >= (3, 13) or end - start < 512 or data.count(b"\n", start, start + 512) > 32:
        return data.count(b"\n", start, end)
    piece = data[start:end]
    return len(piece) - len(piece.replace(b"\n", b""))


def parse_lines(lines: Iterable[str | bytes], **options: Any) -> Iterator[Record]:
    """Yield the records in lines of text, with or without their newlines. Options as for `Parser`."""
    parser = Parser(**options)
    for line in lines:
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        yield from parser.feed(data if data.endswith(b"\n") else data + b"\n")
    yield from parser.close()
