"""What the metrics lines of a serving server add up to, in constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from vlogcheck.records import EngineStats

__all__ = ["FULL_PERCENT", "RunTime", "Sample"]

FULL_PERCENT = 90.0
"""KV cache usage from which on a waiting request waits for blocks: the last tenth is what running requests grow into."""

_MOST_ENGINES = 1024


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
        self.lightest: Sample | None = None
        """The line with the least KV cache usage for each running request."""
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
        self.summed = 1
        """Engines whose requests a line adds up (`… Engines Aggregated`); 1 where each engine has its own lines."""
        self.full = 0
        """Lines on which requests waited while the KV cache was full (`FULL_PERCENT`)."""
        self.full_running = 0
        """Sum of running requests over those lines."""
        self.full_usage = 0.0
        """Sum of KV usage in percent over those lines."""
        self.peak_full: Sample | None = None
        """The one of those lines with most requests running."""
        self.roomy = 0
        """Lines on which requests waited though the KV cache was not full."""
        self.peak_roomy: Sample | None = None
        """The one of those lines with most requests running."""
        self.by_engine: dict[str, Sample] = {}
        """The line with most requests running, by engine."""
        self.uneven = 0
        """Lines on which requests waited at one engine while another ran less than half as many and had none waiting."""
        self.first_uneven: tuple[Sample, str, Sample, str] | None = None
        """The first of them: the busy engine's line and name, the idle one's last line and name."""
        self._latest: dict[str, Sample] = {}
        self._least = float("inf")
        """KV cache usage for each running request on the lightest line."""

    def add(self, record: EngineStats) -> None:
        """Take one metrics line."""
        self.add_sample(
            Sample(record.line, record.time, record.running, record.waiting, record.kv_cache_usage_percent),
            record.preemptions or 0,
            record.engine,
            record.engines or 1,
        )

    def add_sample(self, sample: Sample, preemptions: int = 0, engine: str | None = None, summed: int = 1) -> None:
        """Take one metrics line's figures; `summed` is how many engines the line adds up."""
        _, _, running, waiting, usage = sample
        self.samples += 1
        if summed > self.summed:
            self.summed = summed
        if engine is not None and (engine in self.engines or len(self.engines) < _MOST_ENGINES):
            self.engines.add(engine)
            self._add_engine(sample, engine)
        if self.first is None:
            self.first = sample
        self.last = sample
        if running:
            self.busy += 1
            if usage > 0 and usage / running < self._least:
                self._least = usage / running
                self.lightest = sample
        if self.peak_running is None or running > self.peak_running.running:
            self.peak_running = sample
        if self.peak_waiting is None or waiting > self.peak_waiting.waiting:
            self.peak_waiting = sample
        if self.peak_usage is None or usage > self.peak_usage.usage:
            self.peak_usage = sample
        if waiting:
            self.queued += 1
            self.queued_running += running
            self.queued_usage += usage
            if self.peak_queued is None or running > self.peak_queued.running:
                self.peak_queued = sample
            self._add_queue(sample)
        if preemptions:
            self.preemptions += preemptions
            if self.first_preemption is None:
                self.first_preemption = sample.line

    def _add_queue(self, sample: Sample) -> None:
        if sample.usage >= FULL_PERCENT:
            self.full += 1
            self.full_running += sample.running
            self.full_usage += sample.usage
            if self.peak_full is None or sample.running > self.peak_full.running:
                self.peak_full = sample
            return
        self.roomy += 1
        if self.peak_roomy is None or sample.running > self.peak_roomy.running:
            self.peak_roomy = sample

    def _add_engine(self, sample: Sample, engine: str) -> None:
        best = self.by_engine.get(engine)
        if best is None or sample.running > best.running:
            self.by_engine[engine] = sample
        self._latest[engine] = sample
        if not sample.waiting or len(self._latest) < 2:
            return
        idle = min(self._latest, key=lambda name: self._latest[name].running)
        other = self._latest[idle]
        if idle != engine and not other.waiting and other.running * 2 < sample.running:
            self.uneven += 1
            if self.first_uneven is None:
                self.first_uneven = (sample, engine, other, idle)
