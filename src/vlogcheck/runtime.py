"""What the metrics lines of a serving server add up to, in constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vlogcheck.records import EngineStats

__all__ = ["RunTime", "Sample"]


class Sample(NamedTuple):
    """One metrics line, as far as it matters here."""

    line: int
    time: str | None
    running: int
    waiting: int
    usage: float
    """KV cache usage in percent."""


class RunTime:
    """Peaks and sums over all metrics lines. Each figure keeps the line that shows it."""

    def __init__(self) -> None:
        self.samples = 0
        self.busy = 0
        """Lines with at least one request running."""
        self.first: Sample | None = None
        self.last: Sample | None = None
        self.peak_running: Sample | None = None
        self.peak_waiting: Sample | None = None
        self.peak_usage: Sample | None = None
        self.queued = 0
        """Lines on which requests waited."""
        self.queued_running = 0
        """Sum of running requests over the lines on which requests waited."""
        self.queued_usage = 0.0
        """Sum of KV usage in percent over those lines."""
        self.peak_queued: Sample | None = None
        """The line with most requests running while others waited."""
        self.preemptions = 0
        self.first_preemption: int | None = None
        """Line of the first preemption."""
        self.engines: set[str] = set()

    def add(self, record: EngineStats) -> None:
        """Take one metrics line."""
        self.add_sample(
            Sample(record.line, record.time, record.running, record.waiting, record.kv_cache_usage_percent),
            record.preemptions or 0,
            record.engine,
        )

    def add_sample(self, sample: Sample, preemptions: int = 0, engine: str | None = None) -> None:
        """Take one metrics line's figures."""
        self.samples += 1
        if engine is not None and len(self.engines) < 1024:
            self.engines.add(engine)
        if self.first is None:
            self.first = sample
        self.last = sample
        if sample.running:
            self.busy += 1
        if self.peak_running is None or sample.running > self.peak_running.running:
            self.peak_running = sample
        if self.peak_waiting is None or sample.waiting > self.peak_waiting.waiting:
            self.peak_waiting = sample
        if self.peak_usage is None or sample.usage > self.peak_usage.usage:
            self.peak_usage = sample
        if sample.waiting:
            self.queued += 1
            self.queued_running += sample.running
            self.queued_usage += sample.usage
            if self.peak_queued is None or sample.running > self.peak_queued.running:
                self.peak_queued = sample
        if preemptions:
            self.preemptions += preemptions
            if self.first_preemption is None:
                self.first_preemption = sample.line
