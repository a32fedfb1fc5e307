"""The phases of a start-up, and which records begin them."""

from __future__ import annotations

from vlogcheck._tuples import NamedTuple
from vlogcheck.records import (
    CPUKVCache,
    DeviceBlocks,
    EngineConfig,
    EngineInit,
    GraphCapture,
    HPUMemorySplit,
    KVCacheCapacity,
    KVCacheMemory,
    KVCacheMemoryBytes,
    KVCachePinned,
    LoadStart,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    Ready,
    ServerArgs,
    ServerVersion,
    TPUKVCache,
    TPUMemory,
    WeightsLoaded,
    WeightsRead,
    XPUMemory,
)
from vlogcheck.runtime import Sample
from vlogcheck.template import Record

__all__ = ["BEGINS", "PHASES", "READY", "Moment", "Phase"]

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
BEGINS: dict[type[Record], int] = {
    ServerVersion: 0,
    ServerArgs: 0,
    EngineConfig: 1,
    LoadStart: 1,
    WeightsRead: 1,
    WeightsLoaded: 2,
    XPUMemory: 2,
    MemoryProfile: 3,
    KVCacheMemory: 3,
    KVCacheMemoryBytes: 3,
    KVCachePinned: 3,
    CPUKVCache: 3,
    HPUMemorySplit: 3,
    TPUMemory: 3,
    DeviceBlocks: 4,
    KVCacheCapacity: 4,
    MaxConcurrency: 4,
    TPUKVCache: 4,
    GraphCapture: 4,
    MemoryUse: 4,
    EngineInit: 5,
    Ready: 6,
}
READY = len(PHASES) - 1


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
