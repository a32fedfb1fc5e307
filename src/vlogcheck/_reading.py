"""Reading a log: records as they come, or the start-ups it holds."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Union

from vlogcheck.files import LogFile, open_log
from vlogcheck.scan import Parser
from vlogcheck.wrappers import WIDEST, is_hard_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck._collector import Collector
    from vlogcheck.context import LogFacts
    from vlogcheck.lines import LogLine
    from vlogcheck.startup import Startup
    from vlogcheck.template import Record

    Begin = Callable[[int, bytes], Parser]
    Done = Callable[[int, Parser, LogFile], None]
    Torn = Callable[[int, LogLine], None]

__all__ = ["CHUNK", "SNIFF", "LogSource", "begun", "facts_of", "judged", "parse", "parse_parts", "read", "source_name"]

CHUNK = 1 << 18
SNIFF = 1 << 16
"""Bytes from which it is told whether a terminal cut every line."""
KEEP_UNRECOGNISED = 200

LogSource = Union[str, "os.PathLike[str]", bytes, IO[bytes]]
"""A path (`-` is standard input), the log's bytes, or a binary file."""


def _open(source: LogSource) -> LogFile:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return open_log(io.BytesIO(source))
    if isinstance(source, io.TextIOBase):
        raise TypeError("a log is read as bytes: open it with mode 'rb'")
    return open_log(source)  # type: ignore[arg-type]


def _head(stream: LogFile) -> bytes:
    """Read the beginning of a log."""
    head = b""
    while len(head) < SNIFF and (chunk := stream.read(CHUNK)):
        head += chunk
    return head


def _wrapped_at(head: bytes) -> int | None:
    """Return the column at which a terminal cut every line of a log, or None."""
    lines = head[:SNIFF].split(b"\n")
    if len(lines) > 1 and max(map(len, lines)) > 4 * WIDEST:  # wider than any terminal, whatever the characters
        return None
    return is_hard_wrapped([line.decode("utf-8", "replace") for line in lines[:-1] or lines])


def parse(
    source: LogSource, *, on_unrecognised: Callable[[LogLine], None] | None = None,
    on_end: Callable[[int], None] | None = None,
) -> Iterator[Record]:  # fmt: skip
    """Yield the records of a log as it is read: constant memory, any size.

    `source` is a path (also compressed, `-` for standard input), the bytes themselves or a binary file. `on_unrecognised` is
    called with each memory-looking or reworded line that no template knows, `on_end` with the number of lines once all are
    read. Raises `LogFileError` for a file that cannot be read; log content never raises.
    """

    def begin(_: int, head: bytes) -> Parser:
        return Parser(on_unrecognised=on_unrecognised, wrapped_at=_wrapped_at(head))

    def done(_: int, parser: Parser, __: LogFile) -> None:
        if on_end is not None:
            on_end(parser.lines)

    for _, records in _alone(source, begin, done):
        yield from records


def parse_parts(
    sources: Sequence[LogSource], *, on_unrecognised: Callable[[int, LogLine], None] | None = None,
    on_end: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, Record]]:  # fmt: skip
    """Yield the records of a log in several parts, each with the number of its part, from 0. Calls are as for `parse`."""

    def begin(number: int, head: bytes) -> Parser:
        tell = None if on_unrecognised is None else partial(on_unrecognised, number)
        return Parser(on_unrecognised=tell, wrapped_at=_wrapped_at(head))

    def done(number: int, parser: Parser, _: LogFile) -> None:
        if on_end is not None:
            on_end(number, parser.lines)

    for number, records in _through(sources, begin, done, on_unrecognised or (lambda *_: None)):
        for record in records:
            yield number, record


def read(log: LogSource | Sequence[LogSource]) -> LogFacts:
    """Read a log into its start-ups. Several sources are one log in the order given: a line cut between two is put together."""
    several = isinstance(log, Sequence) and not isinstance(log, (str, bytes, bytearray, memoryview))
    sources: list[LogSource] = list(log) if several else [log]  # type: ignore[arg-type, list-item]
    if not sources:
        raise ValueError("no log was given")
    from vlogcheck._collector import Collector

    collector = Collector()
    seen: list[tuple[int, str]] = []
    lines = unrecognised = end = damaged_at = 0
    truncated = False
    damage = None

    def note(line: LogLine) -> None:
        nonlocal unrecognised
        unrecognised += 1
        if len(seen) < KEEP_UNRECOGNISED:
            seen.append((collector.place(line.number), line.message[:1000]))

    def begin(number: int, head: bytes) -> Parser:
        collector.path = source_name(sources[number]) if len(sources) > 1 else None
        return Parser(on_unrecognised=note, wrapped_at=_wrapped_at(head), collector=collector)

    def done(_: int, parser: Parser, stream: LogFile) -> None:
        nonlocal lines, end, truncated, damage, damaged_at
        lines += parser.lines
        end = collector.place(parser.lines)
        truncated = parser.truncated
        if damage is None and stream.damage is not None:
            damage, damaged_at = stream.damage, end

    def torn(number: int, line: LogLine) -> None:
        collector.path = source_name(sources[number])
        note(line)

    for _ in _through(sources, begin, done, torn):
        pass
    return facts_of(
        ", ".join(source_name(source) for source in sources), collector, lines=lines, truncated=truncated,
        unrecognised=unrecognised, unrecognised_lines=seen, damage=damage, end=end, damaged_at=damaged_at,
    )  # fmt: skip


def _alone(source: LogSource, begin: Begin, done: Done) -> Iterator[tuple[int, list[Record]]]:
    """Read a log that is one file, as `_parts.through` reads several."""
    stream, head = begun(source)
    with stream:
        parser = begin(0, head)
        yield 0, parser.feed(head)
        for chunk in stream.chunks(CHUNK):
            yield 0, parser.feed(chunk)
    yield 0, parser.close()
    done(0, parser, stream)


def _through(sources: Sequence[LogSource], begin: Begin, done: Done, torn: Torn) -> Iterator[tuple[int, list[Record]]]:
    """Read the sources as parts of one log."""
    if len(sources) == 1:
        return _alone(sources[0], begin, done)
    from vlogcheck._parts import through

    return through(sources, begin, done, torn)


def begun(source: LogSource) -> tuple[LogFile, bytes]:
    """Open a log and read its beginning."""
    stream = _open(source)
    return stream, _head(stream)


def facts_of(
    path: str, collector: Collector, *, lines: int, truncated: bool = False, unrecognised: int = 0,
    unrecognised_lines: Sequence[tuple[int, str]] = (), damage: str | None = None, growing: bool = False,
    end: int | None = None, damaged_at: int | None = None,
) -> LogFacts:  # fmt: skip
    """Return what was read so far as the facts that are judged."""
    from vlogcheck.context import LogFacts

    startups = [s for s in collector.startups if s.identified or s.has_ledger]
    return LogFacts(
        path, lines, truncated, unrecognised, list(unrecognised_lines), damage, startups, judged(startups), growing,
        collector.forgotten + collector.lost, collector.lost, lines if end is None else end,
        lines if damaged_at is None else damaged_at, "" if startups else _others(collector.startups),
    )  # fmt: skip


def _others(startups: list[Startup]) -> str:
    """Return what a log without a start-up has of vLLM."""
    if any(startup.runtime.samples for startup in startups):
        return "serving"
    records = (record for startup in startups for record in startup.records if record.source is not None)
    return "vllm" if any(template.source == "vllm" for record in records for template in record.templates) else ""


def source_name(source: LogSource) -> str:
    """Return what to call a log in messages."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def judged(startups: list[Startup]) -> list[int]:
    """Return which start-ups count: the last one of each server (container and model), in order."""
    last: dict[tuple[str | None, str | None], int] = {}
    for number, startup in enumerate(startups):
        last[(startup.container, startup.model)] = number
    named = {container for container, model in last if model is not None}
    return sorted(n for (container, model), n in last.items() if model is not None or container not in named)
