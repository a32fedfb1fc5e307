"""Which records say that a log is vLLM's start-up, and which are lines of the memory ledger."""

from __future__ import annotations

from vlogcheck._causes import DEATHS, REFUSALS
from vlogcheck.records import (
    CPUKVCache,
    DeviceBlocks,
    EngineConfig,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    GraphCapture,
    HPUMemorySplit,
    KVCacheCapacity,
    KVCacheMemory,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    OutOfMemory,
    ServerArgs,
    ServerVersion,
    TPUKVCache,
    TPUMemory,
    WeightsLoaded,
    WeightsRead,
    WorkerFailed,
    XPUMemory,
)

__all__ = ["LEDGER", "SAYS_SO"]

SAYS_SO = (
    EngineConfig,
    ServerVersion,
    ServerArgs,
    WeightsRead,
    GraphCapture,
    EngineInit,
    EngineFailed,
    EngineInitFailed,
    WorkerFailed,
    *DEATHS,
)
"""vLLM starting, or failing to: any of them may be all that is left of a start-up's log."""
LEDGER = (
    WeightsLoaded,
    KVCacheMemory,
    KVCacheCapacity,
    MaxConcurrency,
    DeviceBlocks,
    MemoryProfile,
    MemoryUse,
    CPUKVCache,
    HPUMemorySplit,
    TPUKVCache,
    TPUMemory,
    XPUMemory,
    OutOfMemory,
    *REFUSALS,
)
"""Figures of memory, and refusals for want of it."""
