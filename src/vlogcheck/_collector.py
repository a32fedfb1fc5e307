"""Collect: records into start-ups as they come.

A file may hold several start-ups one after the other (restart loop, appended runs) or side by side (several containers, two
servers writing to one file). Holds no line of the log, only records, and a bounded number of each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._causes import REFUSALS
from vlogcheck.records import (
    ContainerMemory,
    EngineConfig,
    EngineInit,
    EngineInitFailed,
    EngineStats,
    OOMKilled,
    ProcessKilled,
    Ready,
    ServerArgs,
    ServerVersion,
    WeightsLoaded,
)
from vlogcheck.startup import Startup
from vlogcheck.template import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vlogcheck._metrics_line import Figures

__all__ = ["MOST", "Collector", "startups"]

MOST = 1000
"""Start-ups kept of one log: a crash loop over days must not fill memory either."""
_FROM_OUTSIDE = (ProcessKilled, OOMKilled, ContainerMemory)
_NEVER_STARTED = (EngineInitFailed, *REFUSALS)


class PartLine(int):
    """A line's number in one of several files that are one log, with the file."""

    path: str


class Collector:
    """Assigns records to start-ups as they come. `startups` is the result at any time."""

    def __init__(self) -> None:
        self.startups: list[Startup] = []
        self.path: str | None = None
        """The file of a set of several that the next records stand in."""
        self.forgotten = 0
        """Earlier rounds of servers that started again, beyond `MOST`: only counted."""
        self.lost = 0
        """The same of servers that did not start again: they cannot be judged any more."""
        self._open: dict[str | None, list[Startup]] = {}
        self._serving: dict[int | None, Startup] = {}
        """Where the metrics lines of a process id went, as long as nothing but metrics lines came since."""

    def add(self, record: Record) -> Startup:
        """Take the next record; return the start-up it belongs to."""
        if self.path is not None:
            record.__dict__.update(path=self.path, line=self.place(record.line))
        startup = self._place(record)
        startup.add(record)
        if not isinstance(record, EngineStats):
            self._serving.clear()
        elif record.container is None:
            self._serving[record.pid] = startup
        return startup

    def place(self, line: int) -> int:
        """Return a line's number so that it knows the file, where several are one log."""
        if self.path is None:
            return line
        place = PartLine(line)
        place.path = self.path
        return place

    def add_figures(self, line: int, figures: Figures) -> bool:
        """Take a metrics line without wrapper as mere figures; False when only its record tells where it belongs."""
        startup = self._serving.get(figures.pid)
        if startup is None:
            return False
        startup.add_figures(line if self.path is None else self.place(line), figures)
        return True

    def _place(self, record: Record) -> Startup:
        """Return the start-up a record belongs to, a new one if need be."""
        running = self._open.setdefault(record.container, [])
        if not running and isinstance(record, _FROM_OUTSIDE) and self.startups:
            # The container runtime or the kernel speaks of the container, not from inside it.
            running = self._open.setdefault(self.startups[-1].container, [])
        startup = self._choose(record, running)
        if startup is None or self._begins_anew(record, startup):
            if startup is not None and record.pid in startup._pids:
                running.remove(
                    startup
                )  # the process id begins again (a container's are the same each time): it is gone
            startup = Startup(record.line, record.container, record.path)
            if len(self.startups) >= MOST:
                self._forget()
                running = self._open.setdefault(record.container, [])
            self.startups.append(startup)
            running.append(startup)
            del running[:-4]  # more servers at once in one file without any tag cannot be told apart anyway
        return startup

    def _forget(self) -> None:
        """Drop the older half of the rounds that were followed by another one of the same server; else the oldest servers."""
        last = {(s.container, s.model): s for s in self.startups}
        followed = [s for s in self.startups if last[(s.container, s.model)] is not s]
        gone = set(followed[: max(len(followed) // 2, MOST // 10)])
        self.forgotten += len(gone)
        if len(gone) < MOST // 10:
            oldest = self.startups[: MOST // 10]
            self.lost += sum(last[(s.container, s.model)] is s and (s.identified or s.has_ledger) for s in oldest)
            self.forgotten += sum(last[(s.container, s.model)] is not s and s not in gone for s in oldest)
            gone |= set(oldest)
        self.startups = [s for s in self.startups if s not in gone]
        self._serving.clear()
        for container, running in tuple(self._open.items()):
            running[:] = [s for s in running if s not in gone]
            if not running:
                del self._open[container]

    def extend(self, records: Iterable[Record]) -> None:
        """Take several records."""
        for record in records:
            self.add(record)

    def _choose(self, record: Record, running: list[Startup]) -> Startup | None:
        """Return the start-up whose processes printed this, as far as process ids tell."""
        if not running:
            return None
        if record.pid is not None:
            for startup in reversed(running):
                if record.pid in startup._pids:
                    return startup
            if not isinstance(record, (EngineConfig, ServerVersion, ServerArgs)):
                near = [(record.pid - max(below), s) for s in running if (below := _below(s._pids, record.pid))]
                if near:
                    return min(near, key=lambda pair: pair[0])[1]
        elif isinstance(record, Ready) and running[-1].ready is not None:
            return next((s for s in reversed(running) if s.ready is None and s.last(EngineInit)), running[-1])
        return running[-1]

    @staticmethod
    def _begins_anew(record: Record, startup: Startup) -> bool:
        """Whether the record can only be the beginning of another start-up."""
        started = startup._phase >= 1
        if isinstance(record, EngineConfig):
            engine = startup.engine_of(record)
            earlier = engine.config
            if earlier is None:
                return False
            if record.pid is not None and record.pid == earlier.pid:
                failed = startup.refusal is not None or startup.last(EngineInitFailed) is not None
                return failed or (record.process is None and engine.last(WeightsLoaded) is not None)
            return record.pid is not None or engine.last(WeightsLoaded) is not None or started
        if isinstance(record, (ServerVersion, ServerArgs)):
            earlier_same = startup.last(type(record))
            if earlier_same is not None and (earlier_same.pid != record.pid or started):
                return not (record.pid is not None and record.pid == earlier_same.pid and not started)
            return started and startup.ready is not None
        # A server that was ready cannot fail to start: this is a piece of another one's log.
        return isinstance(record, _NEVER_STARTED) and record.pid not in startup._pids and startup.ready is not None


def _below(pids: set[int], pid: int) -> list[int]:
    return [known for known in pids if known <= pid]


def startups(records: Iterable[Record]) -> Iterator[Startup]:
    """Yield the start-ups in a stream of records."""
    collector = Collector()
    collector.extend(records)
    yield from collector.startups
