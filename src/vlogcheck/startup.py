"""Collect: records into start-ups, each with its engines (data parallel) and ranks (tensor and pipeline parallel).

A file may hold several start-ups one after the other (restart loop, appended runs) or side by side (several containers, two
servers writing to one file). Holds no line of the log, only records, and a bounded number of each kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vlogcheck._lazy import pattern
from vlogcheck.records import (
    DeviceBlocks,
    EngineConfig,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    EngineStats,
    FreeMemoryTooLow,
    GraphCapture,
    KVCacheCapacity,
    KVCacheMemory,
    KVCacheTooSmall,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    NoKVCacheMemory,
    OOMKilled,
    OutOfMemory,
    ProcessKilled,
    Ready,
    ServerArgs,
    ServerVersion,
    WeightsLoaded,
    WeightsRead,
    WorkerFailed,
)
from vlogcheck.runtime import RunTime, Sample
from vlogcheck.template import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vlogcheck._metrics_line import Figures

__all__ = ["PHASES", "Collector", "Engine", "Moment", "Phase", "Rank", "Startup"]

R = TypeVar("R", bound=Record)

KEEP = 512
"""Records kept of one kind in one start-up; later ones are counted (a log of gigabytes must not fill memory)."""

MOST = 1000
"""Start-ups kept of one log: a crash loop over days must not fill memory either."""

PHASES = (
    "starting",
    "loading weights",
    "profiling memory",
    "allocating the KV cache",
    "capturing graphs",
    "starting the API server",
    "ready",
)
"""The phases of a start-up in order; the name says what was going on after the records that begin it."""

_BEGINS: dict[type[Record], int] = {
    ServerVersion: 0,
    ServerArgs: 0,
    EngineConfig: 1,
    WeightsRead: 1,
    WeightsLoaded: 2,
    MemoryProfile: 3,
    KVCacheMemory: 3,
    DeviceBlocks: 4,
    KVCacheCapacity: 4,
    MaxConcurrency: 4,
    GraphCapture: 4,
    MemoryUse: 4,
    EngineInit: 5,
    Ready: 6,
}
_READY = len(PHASES) - 1
_RANK_RECORDS = (WeightsLoaded, WeightsRead, KVCacheMemory, MemoryProfile, MemoryUse, GraphCapture)
_REFUSALS = (FreeMemoryTooLow, KVCacheTooSmall, NoKVCacheMemory)
_FROM_OUTSIDE = (ProcessKilled, OOMKilled)
_SAYS_SO = (
    EngineConfig,
    ServerVersion,
    ServerArgs,
    WeightsRead,
    GraphCapture,
    EngineInit,
    EngineFailed,
    EngineInitFailed,
)
_NEVER_STARTED = (EngineInitFailed, *_REFUSALS)
_DP = pattern(r"(?:EngineCore_(?:DP)?|_DP|\bDP)(\d{1,9})(?!\d)")


class Phase(NamedTuple):
    """When a phase began."""

    name: str
    line: int
    time: str | None


class Moment(NamedTuple):
    """What was going on when a message was printed."""

    phase: str
    """The start-up's phase."""
    own_phase: str
    """The phase of the process that printed it: behind the start-up's where ranks load at different speed."""
    sample: Sample | None
    """The last metrics line before it, once there was one."""


class Rank:
    """One worker process: what it printed."""

    def __init__(self, process: str | None, pid: int | None, number: int | None) -> None:
        self.process = process
        self.pid = pid
        self.number = number
        """Rank as the tag states it, else None."""
        self.records: list[Record] = []

    def last(self, kind: type[R]) -> R | None:
        """Return the last record of a kind, or None."""
        return next((r for r in reversed(self.records) if isinstance(r, kind)), None)

    @property
    def stage(self) -> int:
        """Pipeline stage by the tag; 0 where it states none."""
        match = re.search(r"PP(\d{1,9})(?!\d)", self.process or "")
        return int(match[1]) if match else 0

    @property
    def name(self) -> str:
        """What to call the rank in a report."""
        worker = self.process and not self.process.startswith("EngineCore")
        if worker and (match := re.search(r"(?:(?:DP|PP|TP|EP|PCP|DCP)\d+_?)+$", self.process or "")):
            return match[0]
        if self.number is not None:
            return f"rank {self.number}"
        if worker and self.process != "Worker":
            return f"{self.process} {self.pid}" if self.pid is not None else str(self.process)
        return "rank 0"

    def __repr__(self) -> str:
        return f"<Rank {self.name}: {len(self.records)} records>"


class Engine:
    """One engine (one of several under data parallelism) with its ranks."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.records: list[Record] = []
        self._ranks: dict[tuple[Any, ...], Rank] = {}

    def last(self, kind: type[R]) -> R | None:
        """Return the last record of a kind, or None."""
        return next((r for r in reversed(self.records) if isinstance(r, kind)), None)

    def all(self, kind: type[R]) -> list[R]:
        """Return the records of a kind in order."""
        return [r for r in self.records if isinstance(r, kind)]

    @property
    def config(self) -> EngineConfig | None:
        """The engine's banner."""
        return self.last(EngineConfig)

    @property
    def ranks(self) -> list[Rank]:
        """The ranks that printed something, in order of their number or first line.

        Where several ranks print under one tag (no tag in old releases), their lines are told apart by order.
        """
        ranks: list[Rank] = []
        expected = self._expected_ranks()
        for rank in self._ranks.values():
            ranks += _split_anonymous(rank, expected - len(self._ranks) + 1)
        return sorted(ranks, key=_rank_order)

    def _expected_ranks(self) -> int:
        config = self.config
        if config is None:
            return 1
        return (config.tensor_parallel_size or 1) * (config.pipeline_parallel_size or 1)

    def add(self, record: Record) -> None:
        """Take a record of this engine."""
        self.records.append(record)
        if isinstance(record, _RANK_RECORDS):
            key = (record.process, record.pid, record.container)
            rank = self._ranks.get(key)
            if rank is None:
                rank = self._ranks[key] = Rank(record.process, record.pid, record.rank)
            rank.records.append(record)

    def __repr__(self) -> str:
        return f"<Engine {self.index}: {len(self.records)} records, {len(self._ranks)} ranks>"


def _rank_order(rank: Rank) -> tuple[int, int]:
    return (rank.stage, rank.number if rank.number is not None else -1)


def _split_anonymous(rank: Rank, most: int) -> list[Rank]:
    """Return one rank per weight report where several ranks share a tag and the configuration says there are more."""
    reports = [r for r in rank.records if isinstance(r, WeightsLoaded)]
    if most < 2 or len(reports) < 2:
        return [rank]
    parts = [Rank(rank.process, rank.pid, rank.number) for _ in reports[:most]]
    seen: dict[type[Record], int] = {}
    for record in rank.records:
        at = seen.get(type(record), 0)
        seen[type(record)] = at + 1
        parts[min(at, len(parts) - 1)].records.append(record)
    for number, part in enumerate(parts):
        part.number = number if rank.number is None else rank.number
    return parts


class Startup:
    """One start of one server: its records, engines, phases and what it reported while it served."""

    def __init__(self, first_line: int, container: str | None = None, path: str | None = None) -> None:
        self.first_line = first_line
        self.last_line = first_line
        self.container = container
        self.path = path
        self.records: list[Record] = []
        self.counts: dict[str, int] = {}
        """How many records of each kind there were, kept or not."""
        self.phases: list[Phase] = []
        self.runtime = RunTime()
        """What the metrics lines said."""
        self._engines: dict[int, Engine] = {}
        self._pids: set[int] = set()
        self._phase = -1
        self._own_phase: dict[tuple[Any, ...], int] = {}
        self._moments: dict[int, tuple[int, int, Sample | None]] = {}

    def add(self, record: Record) -> None:
        """Take a record of this start-up."""
        kind = type(record).__name__
        self.counts[kind] = seen = self.counts.get(kind, 0) + 1
        self.last_line = max(self.last_line, record.line)
        if isinstance(record, EngineStats):
            self.runtime.add(record)
            return
        if seen > KEEP:
            return
        self.records.append(record)
        if record.pid is not None:
            self._pids.add(record.pid)
        own = (record.process, record.pid)
        self._moments[id(record)] = (self._phase, self._own_phase.get(own, self._phase), self.runtime.last)
        if isinstance(record, _RANK_RECORDS) and self._phase < _READY:
            self._own_phase[own] = max(self._own_phase.get(own, 0), _BEGINS[type(record)])
        self._mark(record)
        self.engine_of(record).add(record)

    def add_figures(self, line: int, figures: Figures) -> None:
        """Take a metrics line as mere figures: the same as `add` of its record."""
        self.counts["EngineStats"] = self.counts.get("EngineStats", 0) + 1
        if line > self.last_line:
            self.last_line = line
        _, time, running, waiting, usage, preemptions, engine, summed = figures
        self.runtime.add_sample(Sample(line, time, running, waiting, usage), preemptions, engine, summed)

    def engine_of(self, record: Record) -> Engine:
        """Return the engine a record belongs to; the first one where nothing says which."""
        match = _DP.search(record.process or "")
        index = int(match[1]) if match else 0
        engine = self._engines.get(index)
        if engine is None:
            engine = self._engines[index] = Engine(index)
        return engine

    def _mark(self, record: Record) -> None:
        phase = _BEGINS.get(type(record))
        if phase is None or phase <= self._phase:
            return
        if phase == _READY and self._phase < 1 and not self.last(EngineConfig):
            return  # another web server's line before vLLM's engine
        self._phase = phase
        self.phases.append(Phase(PHASES[phase], record.line, record.time))

    def last(self, kind: type[R]) -> R | None:
        """Return the last record of a kind, or None."""
        return next((r for r in reversed(self.records) if isinstance(r, kind)), None)

    def all(self, kind: type[R]) -> list[R]:
        """Return the records of a kind in order."""
        return [r for r in self.records if isinstance(r, kind)]

    @property
    def engines(self) -> list[Engine]:
        """The engines in order of their data-parallel index."""
        return [self._engines[index] for index in sorted(self._engines)]

    @property
    def ranks(self) -> list[Rank]:
        """The ranks of all engines."""
        return [rank for engine in self.engines for rank in engine.ranks]

    @property
    def config(self) -> EngineConfig | None:
        """The first engine's banner."""
        return next((engine.config for engine in self.engines if engine.config), None)

    @property
    def args(self) -> dict[str, Any]:
        """The server's arguments as printed; empty where they were not."""
        args = self.last(ServerArgs)
        return args.args if args is not None else {}

    @property
    def version(self) -> str | None:
        """The vLLM release, or None where no line names it."""
        config = self.config
        if config is not None and config.version:
            return config.version
        server = self.last(ServerVersion)
        return server.version if server is not None else None

    @property
    def model(self) -> str | None:
        """The model's name or path."""
        config = self.config
        if config is not None and config.model:
            return config.model
        model = self.args.get("model") or self.args.get("model_tag")
        return model if isinstance(model, str) else None

    @property
    def phase(self) -> str:
        """The last phase reached."""
        return self.phases[-1].name if self.phases else PHASES[0]

    @property
    def offline(self) -> bool:
        """Whether nothing of an API server was printed: `LLM()` in a script, which is ready when the engine is."""
        return not any(
            isinstance(r, ServerVersion)
            or (r.process or "").lower().startswith("apiserver")
            or (r.source or "").startswith(("api_server.py", "launcher.py"))
            for r in self.records
        )

    @property
    def usable(self) -> bool:
        """Whether start-up came to its end: the server answers, or an offline engine is initialised.

        A server whose access log goes elsewhere prints no ready line; its metrics lines show as well that it serves.
        """
        initialised = self._phase >= PHASES.index("starting the API server")
        return self.ready is not None or (initialised and (self.offline or self.runtime.samples > 0))

    @property
    def ready(self) -> Ready | None:
        """The line that says the server answers requests, or None."""
        if self._phase != _READY:
            return None
        return next((r for r in self.records if isinstance(r, Ready) and r.line == self.phases[-1].line), None)

    def moment(self, record: Record) -> Moment:
        """Return what was going on just before a record of this start-up was printed."""
        phase, own, sample = self._moments[id(record)]
        # The engine decides on the KV cache when every rank has reported: from then on no rank is behind.
        return Moment(
            PHASES[max(phase, 0)], PHASES[max(phase if phase >= _BEGINS[KVCacheCapacity] else own, 0)], sample
        )

    @property
    def refusal(self) -> Record | None:
        """The first message with which vLLM refused to start, or None."""
        return next((r for r in self.records if isinstance(r, _REFUSALS)), None)

    @property
    def identified(self) -> bool:
        """Whether a line says that this is vLLM starting, or failing to: it may be all that is left of a start-up's log."""
        return any(
            isinstance(r, _SAYS_SO) or (isinstance(r, WorkerFailed) and r.phase == "start") for r in self.records
        )

    @property
    def has_ledger(self) -> bool:
        """Whether any line of the memory ledger was printed."""
        kinds = (WeightsLoaded, KVCacheMemory, KVCacheCapacity, MaxConcurrency, DeviceBlocks, MemoryProfile, MemoryUse)
        return any(isinstance(r, kinds + _REFUSALS + (OutOfMemory,)) for r in self.records)

    def __repr__(self) -> str:
        return f"<Startup {self.model} {self.version}: lines {self.first_line}-{self.last_line}, {self.phase}>"


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
            record.__dict__["path"] = self.path
        startup = self._place(record)
        startup.add(record)
        if not isinstance(record, EngineStats):
            self._serving.clear()
        elif record.container is None:
            self._serving[record.pid] = startup
        return startup

    def add_figures(self, line: int, figures: Figures) -> bool:
        """Take a metrics line without wrapper as mere figures; False when only its record tells where it belongs."""
        startup = self._serving.get(figures.pid)
        if startup is None:
            return False
        startup.add_figures(line, figures)
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
