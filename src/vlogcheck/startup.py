"""One start-up: its records, with its engines (data parallel) and ranks (tensor and pipeline parallel), and how far it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlogcheck._causes import REFUSALS
from vlogcheck._engine import RANK_RECORDS, Engine, Printed, Rank
from vlogcheck._lazy import pattern
from vlogcheck._phases import BEGINS, PHASES, READY, Moment, Phase
from vlogcheck._telling import LEDGER, SAYS_SO, ends_process
from vlogcheck.records import (
    EngineConfig,
    EngineDump,
    EngineStats,
    KVCacheCapacity,
    LoadStart,
    Ready,
    ServedModel,
    ServerArgs,
    ServerVersion,
    UtilityFailed,
)
from vlogcheck.runtime import RunTime, Sample
from vlogcheck.template import Record

if TYPE_CHECKING:
    from vlogcheck._metrics_line import Figures

__all__ = ["PHASES", "Engine", "Moment", "Phase", "Rank", "Startup"]

KEEP = 512
"""Records kept of one kind in one start-up; later ones are counted (a log of gigabytes must not fill memory)."""

_DP = pattern(r"(?:EngineCore_(?:DP)?|_DP|\bDP)(\d{1,9})(?!\d)")


class Startup(Printed):
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
        if isinstance(record, RANK_RECORDS) and self._phase < READY:
            self._own_phase[own] = max(self._own_phase.get(own, 0), BEGINS[type(record)])
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
        phase = BEGINS.get(type(record))
        if phase is None or phase <= self._phase:
            return
        if phase == READY and self._phase < 1 and not self.last(EngineConfig):
            return  # another web server's line before vLLM's engine
        self._phase = phase
        self.phases.append(Phase(PHASES[phase], record.line, record.time))

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
        server = self.last(ServerVersion) or self.last(EngineDump)
        return server.version if server is not None else None

    @property
    def model(self) -> str | None:
        """The model's name or path."""
        config = self.config
        if config is not None and config.model:
            return config.model
        model = self.args.get("model") or self.args.get("model_tag")
        if isinstance(model, str):
            return model
        dump = self.last(EngineDump)
        if dump is not None and isinstance(model := dump.config.get("model"), str):
            return model
        told = self.last(ServedModel) or next((r for r in self.all(LoadStart) if r.model), None)
        return told.model if told is not None else None

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
        if self._phase != READY:
            return None
        return next((r for r in self.records if isinstance(r, Ready) and r.line == self.phases[-1].line), None)

    def moment(self, record: Record) -> Moment:
        """Return what was going on just before a record of this start-up was printed."""
        phase, own, sample = self._moments[id(record)]
        # The engine decides on the KV cache when every rank has reported: from then on no rank is behind.
        return Moment(PHASES[max(phase, 0)], PHASES[max(phase if phase >= BEGINS[KVCacheCapacity] else own, 0)], sample)

    @property
    def refusal(self) -> Record | None:
        """The first message with which vLLM refused to start, or None."""
        if not any(kind.__name__ in self.counts for kind in REFUSALS):
            return None  # asked for by nearly every check
        return next((r for r in self.records if isinstance(r, REFUSALS)), None)

    @property
    def identified(self) -> bool:
        """Whether a line says that this is vLLM starting, or failing to: it may be all that is left of a start-up's log."""
        survived = {(r.process, r.source) for r in self.all(UtilityFailed)}
        ended = (r for r in self.records if ends_process(r) and (r.process, r.source) not in survived)
        return (not self.runtime.samples and any(ended)) or any(isinstance(r, SAYS_SO) for r in self.records)

    @property
    def has_ledger(self) -> bool:
        """Whether any line of the memory ledger was printed."""
        return any(isinstance(r, LEDGER) for r in self.records)

    def __repr__(self) -> str:
        return f"<Startup {self.model} {self.version}: lines {self.first_line}-{self.last_line}, {self.phase}>"
