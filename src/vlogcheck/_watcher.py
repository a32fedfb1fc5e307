"""The sans-IO core of watching: bytes in, events out, and a report once the start-up is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vlogcheck._collector import Collector
from vlogcheck._deciding import FATAL, TELLING, capacity_complete
from vlogcheck._encodings import Text
from vlogcheck._reading import facts_of
from vlogcheck._tuples import NamedTuple
from vlogcheck.api import Inquiry, Report
from vlogcheck.records import (
    EngineFailed,
    EngineInit,
    Progress,
    Raised,
    ServerStarting,
)
from vlogcheck.scan import Parser
from vlogcheck.startup import Startup

if TYPE_CHECKING:
    from vlogcheck._metrics_line import Figures
    from vlogcheck.template import Record

__all__ = ["QUIET_SECONDS", "Event", "Watcher"]

QUIET_SECONDS = 5.0
"""How long the error behind an announced failure is waited for."""


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
        known = self._parser.leave()
        self._parser.close()
        self._lines += self._parser.lines
        self._parser, self._text = Parser(collector=self), Text()
        self._parser.follow(known)
        return self._told()

    def close(self, stopped: str | None = None) -> Report:
        """Return the verdict on what there is: the log has ended, or `stopped` says why watching ended before it did."""
        self.history = False
        if self.report is None:
            self._parser.close()
        if self.report is None:
            self.report = self._judge(stopped)
        return self.report

    def time_out(self, seconds: float) -> Report:
        """Return the verdict where none came in that time: which phase the start-up is in."""
        return self.close(f"no verdict after {seconds:g} s: the start-up is still {self.phase}")

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
        if isinstance(record, TELLING) and not self.history:
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
        complete = usable or startup.last(EngineInit) is not None or capacity_complete(startup)
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
            if isinstance(record, FATAL) or (announced and isinstance(record, Raised)):
                return True
            announced = announced or isinstance(record, EngineFailed)
        return announced and self._quiet


def _contradicted(report: Report, startup: Startup) -> bool:
    """Whether an error is about what was printed, not about what is still to come."""
    return any(finding.code != "VL002" for finding in report.failing)
