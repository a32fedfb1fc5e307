"""Scan: bytes in, records out. A push parser without I/O; files, pipes and follow mode are loops around it.

One multi-pattern search over raw bytes finds the lines that can matter: those with a literal of some template, or with a
word that makes a line look like a memory figure. Everything else is counted, never decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vlogcheck.lines import LogLine, Splitter
from vlogcheck.recognise import SUSPICIOUS, Recogniser, looks_like_memory
from vlogcheck.template import Record

__all__ = ["Parser", "parse_lines"]

MAX_LINE = 1 << 20
"""Bytes of one physical line handled at a time: a longer line is read in pieces of this size, so memory stays bounded."""

_OPAQUE = ('"MESSAGE":[', '"MESSAGE" : [', '"MESSAGE": [')
"""journald writes a message with escape sequences as an array of byte values: no literal can be found in it."""

_AFTER = 64
"""Lines after the first line of a multi-line message in which its continuation is looked for."""


class Parser:
    """Push parser: `feed` bytes in pieces of any size, get the records they complete; `close` gives the rest.

    The records do not depend on how the bytes were cut. `dense` decodes every line instead of only those the scan finds
    (for logs hard-wrapped by a terminal). After `close`: `lines` is the number of physical lines, `truncated` whether the
    last one had no newline, `unrecognised` the number of memory-looking messages no template knows; `on_unrecognised` is
    called with each.
    """

    def __init__(self, *, on_unrecognised: Callable[[LogLine], None] | None = None, dense: bool = False) -> None:
        self.lines = 0
        self.truncated = False
        self.unrecognised = 0
        self._on_unrecognised = on_unrecognised
        self._recogniser = Recogniser()
        self._splitter = Splitter()
        self._find = None if dense else scanner(scan_anchors(self._recogniser))
        self._tail = bytearray()
        self._after = 0
        self._closed = False

    def feed(self, data: bytes) -> list[Record]:
        """Take the next bytes of the log; return the records they complete. Never raises for any content."""
        records: list[Record] = []
        end = data.rfind(b"\n")
        if end < 0:
            self._tail += data
            self._drain(records)
            return records
        start = 0
        if self._tail:
            start = data.index(b"\n") + 1
            self._tail += data[:start]
            line = bytes(self._tail)
            self._tail.clear()
            self._region(line, records)
        if end >= start:
            self._region(data[start : end + 1], records)
        self._tail += data[end + 1 :]
        self._drain(records)
        return records

    def close(self) -> list[Record]:
        """Return the records that the end of the log completes."""
        records: list[Record] = []
        if self._closed:
            return records
        self._closed = True
        if self._tail:
            self.lines += 1
            self.truncated = True
            self._line(bytes(self._tail), self.lines, records, cut=True)
            self._tail.clear()
        for line in self._splitter.flush(self.lines):
            self._message(line, records)
        return records

    def _drain(self, records: list[Record]) -> None:
        """Handle what has come of a line longer than any buffer should be."""
        while len(self._tail) > MAX_LINE:
            piece = bytes(self._tail[:MAX_LINE])
            del self._tail[:MAX_LINE]
            if self._find is None or self._find(piece):
                self._line(piece, self.lines + 1, records)

    def _region(self, region: bytes, records: list[Record]) -> None:
        """Handle whole lines."""
        if self._find is None:
            for line in region.split(b"\n")[:-1]:
                self.lines += 1
                self._line(line, self.lines, records)
            return
        at = 0  # start of the first line not yet counted
        for hit in self._find(region):
            if hit < at:
                continue
            while self._after and at <= hit:
                at = self._next_line(region, at, records)
            if hit < at:
                continue
            start = region.rfind(b"\n", at, hit) + 1 or at
            self.lines += region.count(b"\n", at, start)
            at = self._next_line(region, start, records)
        while self._after and at < len(region):
            at = self._next_line(region, at, records)
        self.lines += region.count(b"\n", at)

    def _next_line(self, region: bytes, start: int, records: list[Record]) -> int:
        """Handle the line at `start`; return where the next one begins."""
        end = region.index(b"\n", start)
        self.lines += 1
        self._line(region[start:end], self.lines, records)
        return end + 1

    def _line(self, raw: bytes, number: int, records: list[Record], cut: bool = False) -> None:
        if len(raw) > MAX_LINE:
            for at in range(0, len(raw), MAX_LINE):
                self._line(raw[at : at + MAX_LINE], number, records, cut)
            return
        for line in self._splitter.split(number, raw.decode("utf-8", "replace"), cut):
            self._message(line, records)
        if self._splitter.unfinished or self._recogniser.unfinished:
            self._after = self._after - 1 if self._after else _AFTER
        else:
            self._after = 0

    def _message(self, line: LogLine, records: list[Record]) -> None:
        record = self._recogniser.recognise(line)
        if record is not None:
            records.append(record)
        elif not self._recogniser.unfinished and looks_like_memory(line.message):
            self.unrecognised += 1
            if self._on_unrecognised is not None:
                self._on_unrecognised(line)


def scan_anchors(recogniser: Recogniser) -> list[bytes]:
    """Return the literals whose presence makes a line worth decoding, without those that hold another one."""
    wanted = {anchor for template in recogniser.templates for anchor in template.anchors} | {*SUSPICIOUS, *_OPAQUE}
    kept: list[str] = []
    for anchor in sorted(wanted, key=len):
        if not any(shorter in anchor for shorter in kept):
            kept.append(anchor)
    return [anchor.encode() for anchor in kept]


def scanner(anchors: list[bytes]) -> Callable[[bytes], Iterable[int]]:
    """Return a function from bytes to the offsets of anchors in them, in order."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind
    except ImportError:  # no wheel for this platform: the standard library does it, slower
        pattern = re.compile(b"|".join(re.escape(anchor) for anchor in sorted(anchors, key=len, reverse=True)))
        return lambda data: [match.start() for match in pattern.finditer(data)]
    automaton = BytesAhoCorasick(anchors, matchkind=MatchKind.LeftmostFirst)
    return lambda data: [hit[1] for hit in automaton.find_matches_as_indexes(data)]


def parse_lines(lines: Iterable[str | bytes], **options: Any) -> Iterator[Record]:
    """Yield the records in lines of text, with or without their newlines. Options as for `Parser`."""
    parser = Parser(**options)
    for line in lines:
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        yield from parser.feed(data if data.endswith(b"\n") else data + b"\n")
    yield from parser.close()
