"""Parts of one log: whether the line that one file ends in goes on in the first line of the next.

A part that ends without a newline was cut at some byte (`split -b`, `copytruncate`), or its writer was killed there. The next
part's first line tells which: it begins in mid-line when it does not begin as the lines of this log do.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from vlogcheck._copied import strip_ansi
from vlogcheck._prefix import PREFIX
from vlogcheck._reading import CHUNK, SNIFF, begun
from vlogcheck.lines import LogLine, Splitter
from vlogcheck.scan import Parser
from vlogcheck.wrappers import Unwrapper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vlogcheck._reading import Begin, Done, LogSource, Torn
    from vlogcheck.template import Record

__all__ = ["through"]

_SAMPLE = 200
"""Lines of a part from which it is told how lines begin in this log."""
_TEACHING = 50
"""How many of them are read before a line on trial: what a wrapper nobody has described looks like must be known."""
_PREFIX_SIZE = 400
"""Characters a prefix and its process tags may have."""
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*)?$")
_PLAIN = ("tag", "level", "uvicorn")
"""How lines of the server itself begin. In a log whose lines are wrapped none does."""


class _Seam:
    """What there is where one part ends and the next begins.

    `joined` is True where the two lines are one, False where they are two, None where it cannot be told; then `torn` holds what
    makes no record as it stands, with 0 for the part that ends and 1 for the one that begins.
    """

    def __init__(self, rest: bytes, first: bytes, others: Sequence[bytes]) -> None:
        self._others = [text for line in others if (text := _text(line)).strip()]
        self._taught = self._others[:_TEACHING]
        self.torn: list[tuple[int, LogLine]] = []
        self.joined = _halved(rest, first) or self._decided(_text(rest), _text(first))
        if self.joined is None:
            self.torn = [(part, line) for part, text in enumerate((rest, first)) for line in self._unread(_text(text))]

    def _decided(self, rest: str, first: str) -> bool | None:
        if not first.strip() or not rest.strip():
            return True  # all that was cut off is the newline, or blanks
        unwrapper = Unwrapper()
        for line in self._others:
            unwrapper.beginning(line)
        kinds = Counter(unwrapper.beginning(line) for line in (*self._others, rest))
        begun = sum(kinds.values()) - kinds[None]
        bare, at = strip_ansi(rest[-_PREFIX_SIZE:]), len(strip_ansi(rest[-_PREFIX_SIZE:]))
        if any(prefix.start() < at < prefix.end() for prefix in PREFIX.finditer(bare + strip_ansi(first))):
            return True
        kind = unwrapper.beginning(first)
        if kind is not None and any(kinds[like] for like in (_PLAIN if kind in _PLAIN else (kind,))):
            return False
        if rest.startswith('{"') and unwrapper.beginning(rest) is None:
            return True  # an object that has no end
        most = begun >= max(1, sum(kinds.values()) / 2)
        if len(rest) > SNIFF:  # no message is as long
            return most or None
        alone, whole = self._tried(rest)[0], self._tried(rest + first)[0]
        if whole and not _open(whole):
            return True  # up to its end it is a wording
        if alone and not _open(alone):
            return False  # and nothing is missing
        if whole or most:
            return bool(whole) or not alone
        return False if alone else None

    def _tried(self, text: str) -> tuple[list[Record], int]:
        """Return the records a line makes here, and how many messages of it are told of as not recognised."""
        told: list[int] = []
        parser = Parser(on_unrecognised=lambda line: told.append(line.number))
        records = parser.feed("".join(f"{line}\n" for line in self._taught).encode("utf-8", "surrogatepass"))
        records += parser.feed(f"{text}\n".encode("utf-8", "surrogatepass")) + parser.close()
        number = len(self._taught) + 1
        return [record for record in records if record.line == number], told.count(number)

    def _unread(self, text: str) -> list[LogLine]:
        """Return the messages of a line that makes no record and would not be told of."""
        if len(text) > SNIFF or any(self._tried(text)):
            return []
        splitter = Splitter()
        for line in self._taught:
            splitter.split(0, line)
        return [line for line in splitter.split(1, text, True)[-1:] if line.message]


def through(sources: Sequence[LogSource], begin: Begin, done: Done, torn: Torn) -> Iterator[tuple[int, list[Record]]]:
    """Read the parts of one log; yield the number of the part, from 0, and records as they come.

    `begin` gives a part's parser, `done` takes it back. A line whose end is in the next part belongs to the one it begins in,
    and its end is a line of the next part's count. Where it cannot be told whether a part ends in mid-line, `torn` is called
    with what makes no record as it stands.
    """
    number, taken = 0, 0
    stream, head = begun(sources[0])
    known: Splitter | None = None
    while True:
        with stream:
            parser = begin(number, head)
            if known is not None:
                parser.follow(known)
            parser.lines = 1 if taken else 0
            yield number, parser.feed(head[taken:])
            for chunk in stream.chunks(CHUNK):
                yield number, parser.feed(chunk)
        part, passed, following, taken = number, [stream], None, 0
        left: list[tuple[int, LogLine]] = []
        while (number := number + 1) < len(sources):
            following = begun(sources[number])
            taken, left = _end_in(following[1], parser, head)
            if not taken:
                break
            yield part, parser.feed(following[1][:taken])
            if taken < len(following[1]) or following[1].endswith(b"\n"):
                break
            passed.append(following[0])  # nothing but the middle of the line
        known = parser.leave() if following is not None else None
        yield part, parser.close()
        done(part, parser, passed[0])
        for at, line in left:
            torn(part + at, line._replace(number=1 if at else parser.lines))
        for middle in passed[1:]:
            part += 1
            parser = begin(part, b"")
            parser.lines, parser.truncated = 1, True
            with middle:
                done(part, parser, middle)
        if following is None or number == len(sources):
            return
        stream, head = following


def _end_in(head: bytes, parser: Parser, before: bytes) -> tuple[int, list[tuple[int, LogLine]]]:
    """Return how many bytes at the beginning of a part end the line the one before ends in, and the torn lines if any."""
    rest = parser.open_line
    first, newline, more = head.partition(b"\n")
    if not rest or not (newline or len(first) < SNIFF):
        return 0, []
    seam = _Seam(rest, first, [*more.split(b"\n", _SAMPLE)[:-1], *before.split(b"\n", _SAMPLE)[:-1]])
    return (len(first) + len(newline), []) if seam.joined else (0, seam.torn)


def _halved(rest: bytes, first: bytes) -> bool:
    """Whether an escape sequence or a character is cut in two."""
    return _ESCAPE.search(rest[-16:]) is not None or (first != b"" and 0x80 <= first[0] < 0xC0)


def _open(records: list[Record]) -> bool:
    """Whether the last record's message may go on: a value ends it."""
    template = records[-1].template
    return template is None or template.open_end


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")
