"""One engine with its ranks: what each worker process of a start-up printed."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from vlogcheck.records import (
    EngineConfig,
    GraphCapture,
    HPUMemorySplit,
    KVCacheMemory,
    MemoryProfile,
    MemoryUse,
    TPUMemory,
    WeightsLoaded,
    WeightsRead,
)
from vlogcheck.template import Record

__all__ = ["RANK_RECORDS", "Engine", "Printed", "Rank"]

R = TypeVar("R", bound=Record)
RANK_RECORDS = (
    WeightsLoaded,
    WeightsRead,
    KVCacheMemory,
    MemoryProfile,
    MemoryUse,
    HPUMemorySplit,
    TPUMemory,
    GraphCapture,
)


class Printed:
    """What somebody printed: records, in order."""

    records: list[Record]

    def last(self, kind: type[R]) -> R | None:
        """Return the last record of a kind, or None."""
        return next((r for r in reversed(self.records) if isinstance(r, kind)), None)

    def all(self, kind: type[R]) -> list[R]:
        """Return the records of a kind in order."""
        return [r for r in self.records if isinstance(r, kind)]


class Rank(Printed):
    """One worker process: what it printed."""

    def __init__(self, process: str | None, pid: int | None, number: int | None) -> None:
        self.process = process
        self.pid = pid
        self.number = number
        """Rank as the tag states it, else None."""
        self.records: list[Record] = []

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


class Engine(Printed):
    """One engine (one of several under data parallelism) with its ranks."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.records: list[Record] = []
        self._ranks: dict[tuple[Any, ...], Rank] = {}

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
        if isinstance(record, RANK_RECORDS):
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
