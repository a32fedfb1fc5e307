"""Live: judge a start-up while it is being printed, and say so the moment it can be said.

`Watcher` is the sans-IO core: bytes in, events out, `report` once it is decided. `watch` and `awatch` feed it from a growing
file (through rotation and truncation, as `tail -F` does), a pipe or any binary stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from vlogcheck._collector import Collector
from vlogcheck._encodings import Text
from vlogcheck.api import Inquiry, Report, facts_of, source_name
from vlogcheck.expect import Expectation
from vlogcheck.files import LogFileError, compression_of_head
from vlogcheck.records import (
    AutoFitImpossible,
    DeviceBlocks,
    EngineConfig,
    EngineDead,
    EngineDied,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    EngineReady,
    FreeMemoryTooLow,
    GraphCapture,
    KVCacheCapacity,
    KVCacheTooSmall,
    MaxConcurrency,
    NoKVCacheMemory,
    OutOfMemory,
    Progress,
    Raised,
    Ready,
    ServerProcessDied,
    ServerStarting,
    WeightsLoaded,
    WorkerDied,
)
from vlogcheck.scan import Parser
from vlogcheck.startup import Startup

if TYPE_CHECKING:
    from vlogcheck._metrics_line import Figures
    from vlogcheck.template import Record

__all__ = ["Event", "Watcher", "awatch", "watch"]

POLL_SECONDS = 0.005
"""How often a file is looked at: well below the 100 ms in which a verdict is due, and not felt by a CPU."""

_IDLE_SECONDS = 0.1
"""How long a pipe, which wakes up its reader, is waited for at a time."""

QUIET_SECONDS = 5.0
"""How long the error behind an announced failure is waited for."""

_FATAL = (
    FreeMemoryTooLow, KVCacheTooSmall, NoKVCacheMemory, AutoFitImpossible, OutOfMemory, EngineDead, EngineDied,
    EngineInitFailed, ServerProcessDied, WorkerDied,
)  # fmt: skip
"""Records after which a start-up does not come up any more."""
_TELLING = (
    *_FATAL, EngineFailed, Raised, KVCacheCapacity, MaxConcurrency, DeviceBlocks, WeightsLoaded, GraphCapture,
    EngineInit, EngineReady, ServerStarting, Ready,
)  # fmt: skip
"""Records after which it is worth judging anew."""


class Event(NamedTuple):
    """Something to tell a waiting person: a phase that began, or progress inside one."""

    kind: str
    """`phase` or `progress`."""
    text: str
    line: int
    seconds: float
    """Since watching began."""


class Watcher:
    """Feeds a log to the parser and decides as soon as it can. `report` is None until then.

    With an expectation the verdict falls on the line that settles it: a promise that cannot be kept any more, a line after
    which the server cannot come up, or the last of the capacity lines the release prints. Without one, or with
    `until="ready"`, a pass waits until the server is ready. With `history`, what the log already holds (older start-ups in the
    same file) is only judged once `caught_up` says that it has been read. `clock` gives seconds.
    """

    def __init__(
        self, inquiry: Inquiry, *, name: str = "<stream>", until: str = "decided", history: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.inquiry = inquiry
        self.name = name
        self.until = until
        self.report: Report | None = None
        self.history = history
        self.collector = Collector()
        self._clock = clock
        self._began = clock()
        self._parser = Parser(collector=self)
        self._text = Text()
        self._lines = 0
        self._events: list[Event] = []
        self._warm = False
        self._phases: WeakKeyDictionary[Startup, int] = WeakKeyDictionary()
        self._fed = self._began
        self._quiet = False

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; return what there is to tell. Sets `report` when the verdict is known."""
        self._fed = self._clock()
        self._parser.feed(self._text.utf8(data))
        return self._told()

    def idle(self) -> None:
        """Say that nothing came for a moment: a failure that was announced is judged once its error does not come."""
        if not self._warm and self.collector.startups and not self.history and self.report is None:
            self._warm = True
            self._judge(growing=True)  # what judging needs is there when the deciding line comes: time to spare is now
        if not self._quiet and not self.history and self._clock() - self._fed >= QUIET_SECONDS:
            self._quiet = True
            if self.collector.startups and self.report is None:
                self._decide()

    def rotated(self) -> list[Event]:
        """Say that the bytes that follow come from a new file: the old one was rotated away or truncated."""
        self._parser.close()
        self._lines += self._parser.lines
        self._parser, self._text = Parser(collector=self), Text()
        return self._told()

    def close(self, stopped: str | None = None) -> Report:
        """Return the verdict on what there is: the log has ended, or `stopped` says why watching ended before it did."""
        self.history = False
        if self.report is None:
            self._parser.close()
        if self.report is None:
            self.report = self._judge(stopped)
        return self.report

    @property
    def elapsed(self) -> float:
        """Seconds since watching began."""
        return self._clock() - self._began

    @property
    def phase(self) -> str:
        """The phase the newest start-up is in."""
        return self.collector.startups[-1].phase if self.collector.startups else "waiting for vLLM's first line"

    def caught_up(self) -> None:
        """Judge what the log held when watching began: from here on every line is judged as it comes."""
        if self.history:
            self.history = False
            if self.collector.startups and self.report is None:
                self._decide()

    def add(self, record: Record) -> None:
        """Take a record from the parser. After the one that decides, nothing counts: however many came at once."""
        if self.report is not None:
            return
        startup = self.collector.add(record)
        self._events += self._tell(startup, record)
        if isinstance(record, _TELLING) and not self.history:
            self._decide()

    def add_figures(self, line: int, figures: Figures) -> bool:
        """Take a metrics line as mere figures; False when only its record tells where it belongs. It decides nothing."""
        return self.report is not None or self.collector.add_figures(line, figures)

    def _told(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _tell(self, startup: Startup, record: Record) -> Iterator[Event]:
        told = self._phases.get(startup, 0)
        for phase in startup.phases[told:]:
            yield Event("phase", phase.name, phase.line, self.elapsed)
        self._phases[startup] = len(startup.phases)
        if isinstance(record, Progress):
            yield Event("progress", f"{record.stage} {record.done}/{record.total}", record.line, self.elapsed)

    def _judge(self, stopped: str | None = None, *, growing: bool = False) -> Report:
        facts = facts_of(self.name, self.collector, lines=self._lines + self._parser.lines, growing=growing)
        return self.inquiry.report(facts, stopped)

    def _decide(self) -> None:
        startup = self.collector.startups[-1]
        dead = self._dead(startup)
        usable = startup.usable or startup.last(ServerStarting) is not None
        complete = usable or startup.last(EngineInit) is not None or _capacity_complete(startup)
        if not (dead or complete):
            return
        expectation = self.inquiry.expect
        stated = expectation is not None and bool(expectation.stated)
        report = self._judge(growing=True)
        if report.verdict == "fail":
            if dead or _contradicted(report, startup):
                self.report = report
        elif report.verdict == "pass" and not dead:
            waits = self.until == "ready" or not stated
            if startup.usable if waits else complete:
                self.report = report

    def _dead(self, startup: Startup) -> bool:
        """Whether it cannot come up any more, and the log says why: `EngineCore failed to start.` precedes its error."""
        announced = False
        for record in startup.records:
            if isinstance(record, _FATAL) or (announced and isinstance(record, Raised)):
                return True
            announced = announced or isinstance(record, EngineFailed)
        return announced and self._quiet


def _contradicted(report: Report, startup: Startup) -> bool:
    """Whether an error is about what was printed, not about what is still to come."""
    return any(finding.code != "VL002" for finding in report.failing)


def _capacity_complete(startup: Startup) -> bool:
    """Whether every capacity line that the release prints is there: one pair per engine, per rank until 0.11.0."""
    from vlogcheck.budget.releases import parse_release

    config = startup.last(EngineConfig)
    if config is None or startup.version is None:
        return False
    engines = config.data_parallel_size or 1
    per_engine = 1
    if parse_release(startup.version).before("0.11.1") and config.engine_generation == "V1":
        per_engine = (config.tensor_parallel_size or 1) * (config.pipeline_parallel_size or 1)
    with_concurrency = len(startup.all(MaxConcurrency))
    with_concurrency += sum(r.max_concurrency is not None for r in startup.all(KVCacheCapacity))
    return with_concurrency >= engines * per_engine


def watch(
    source: str | os.PathLike[str] | IO[bytes], expect: Expectation | None = None, timeout: float | None = None, *,
    until: str = "decided", on_event: Callable[[Event], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None, **question: Any,
) -> Report:  # fmt: skip
    """Follow a log until its verdict is known; return the report.

    `source` is a path (it may not exist yet, may be rotated or truncated) or a binary stream (a pipe, standard input). After
    `timeout` seconds the report is inconclusive and names the phase the start-up hung in. `on_bytes` gets the log unchanged.
    The other arguments are those of `vlogcheck.check`.
    """
    history = isinstance(source, (str, os.PathLike))
    name = "<stdin>" if getattr(source, "name", None) == 0 else source_name(source)  # 0: standard input, reopened
    watcher = Watcher(Inquiry(expect, **question), name=name, until=until, history=history)
    for data in _pieces(source):
        events = watcher.rotated() if data is None else watcher.feed(data)
        if data == b"":
            watcher.caught_up()
            watcher.idle()
        _pass_on(data, events, on_bytes, on_event)
        if watcher.report is not None:
            return watcher.report
        if timeout is not None and watcher.elapsed >= timeout:
            return watcher.close(_hung(watcher, timeout))
    return watcher.close()


async def awatch(
    source: str | os.PathLike[str] | AsyncIterator[bytes], expect: Expectation | None = None,
    timeout: float | None = None, *, until: str = "decided", on_event: Callable[[Event], None] | None = None,
    **question: Any,
) -> Report:  # fmt: skip
    """`watch` for async code: `source` is a path or an async iterator of bytes (a subprocess's output, say)."""
    streaming = not isinstance(source, (str, os.PathLike))
    name = "<stream>" if streaming else os.fspath(source)  # type: ignore[arg-type]
    watcher = Watcher(Inquiry(expect, **question), name=name, until=until, history=not streaming)

    async def run() -> Report:
        pieces = source if streaming else _afile(Path(name))
        async for data in pieces:  # type: ignore[union-attr]
            events = watcher.rotated() if data is None else watcher.feed(data)
            if data == b"":
                watcher.caught_up()
                watcher.idle()
            _pass_on(data, events, None, on_event)
            if watcher.report is not None:
                return watcher.report
        return watcher.close()

    try:
        return await asyncio.wait_for(run(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        return watcher.close(_hung(watcher, timeout or 0))


def _pass_on(
    data: bytes | None, events: list[Event], on_bytes: Callable[[bytes], None] | None,
    on_event: Callable[[Event], None] | None,
) -> None:  # fmt: skip
    if data and on_bytes is not None:
        on_bytes(data)
    if on_event is not None:
        for event in events:
            on_event(event)


def _hung(watcher: Watcher, timeout: float) -> str:
    return f"no verdict after {timeout:g} s: the start-up is still {watcher.phase}"


def _pieces(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[bytes | None]:
    """Yield what is appended, b"" when nothing was for a moment, None when the file was replaced."""
    if isinstance(source, (str, os.PathLike)):
        for data in Tail(Path(source)):
            yield data
            if data == b"":
                time.sleep(POLL_SECONDS)
        return
    try:
        number = source.fileno()
        waitable = not stat.S_ISREG(os.fstat(number).st_mode)
    except (OSError, AttributeError, ValueError):
        waitable = False
    while True:
        if waitable:
            ready, _, _ = select.select([number], [], [], _IDLE_SECONDS)
            if not ready:
                yield b""
                continue
            data = os.read(number, 1 << 16)
        else:
            data = source.read(1 << 16)
        if not data:
            return
        yield data


async def _afile(path: Path) -> AsyncIterator[bytes | None]:
    for data in Tail(path):
        yield data
        if data == b"":
            await asyncio.sleep(POLL_SECONDS)


class Tail:
    """Iterates over what is appended to a file, for ever: bytes, b"" when there is nothing new, None after a replacement.

    The file may not exist yet. A new file under the same name (rotation) is read from its start once the old one is
    exhausted; a file that shrinks (truncation) is read again from its start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._identity: tuple[int, int] | None = None
        self._regular = True
        self._begun = False

    def __iter__(self) -> Iterator[bytes | None]:
        try:
            while True:
                yield self._next()
        finally:
            if self._file is not None:
                self._file.close()

    def _next(self) -> bytes | None:
        if self._file is None:
            return b"" if not self._open() else self._read()
        data = self._read()
        if data:
            return data
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(self.path)
            if (there.st_dev, there.st_ino) != self._identity:
                self._file.close()
                self._file = None
                return None
            if self._regular and there.st_size < self._file.tell():
                self._file.seek(0)
                return None
        return b""

    def _open(self) -> bool:
        try:
            # A pipe that nobody writes to yet must not hold up the time-out.
            self._file = open(self.path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115  (closed at the end)
        except FileNotFoundError:
            return False
        there = os.fstat(self._file.fileno())
        self._identity = (there.st_dev, there.st_ino)
        self._regular = stat.S_ISREG(there.st_mode)
        self._begun = False
        return True

    def _read(self) -> bytes:
        assert self._file is not None
        data = self._file.read(1 << 16) or b""
        if data and not self._begun:
            self._begun = True
            if (packed := compression_of_head(data)) is not None:
                raise LogFileError(f"{self.path}: is compressed ({packed}): only plain text can be followed")
        return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
