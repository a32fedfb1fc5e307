"""Which records say that a log is vLLM's start-up, and which are lines of the memory ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._causes import DEATHS, REFUSALS
from vlogcheck.records import (
    CollectiveTimeout,
    CommunicationError,
    CPUKVCache,
    DeviceBlocks,
    EngineConfig,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    EngineTimeout,
    GraphCapture,
    HPUMemorySplit,
    KVCacheCapacity,
    KVCacheMemory,
    LoadStart,
    MambaBlocksTooFew,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    OutOfMemory,
    PeerLost,
    Raised,
    RayWorkerDied,
    RendezvousTimeout,
    ServerArgs,
    ServerVersion,
    TPUKVCache,
    TPUMemory,
    WeightsLoaded,
    WeightsRead,
    WorkerFailed,
    XPUMemory,
)

if TYPE_CHECKING:
    from vlogcheck.template import Record

__all__ = ["LEDGER", "SAYS_SO", "ends_process"]

SAYS_SO = (
    EngineConfig,
    ServerVersion,
    ServerArgs,
    LoadStart,
    WeightsRead,
    GraphCapture,
    EngineInit,
    EngineFailed,
    EngineInitFailed,
    EngineTimeout,
    MambaBlocksTooFew,
    WorkerFailed,
    *(kind for kind in DEATHS if kind is not RayWorkerDied),
)
"""vLLM starting, or failing to: any of them may be all that is left of a start-up's log."""
_FATAL = (
    "core.py:",
    "multiproc_executor.py:",
    "engine.py:",
    "multiproc_worker_utils.py:",
    "worker_base.py:",
    "ray_utils.py:",
)
"""Files that print an error's text only where it ends their process."""
_CONNECTIONS = (CollectiveTimeout, CommunicationError, PeerLost, RendezvousTimeout)
_PROCESSES = ("EngineCore", "Worker", "VllmWorker")
"""How the names of processes begin that lose one: other programs lose theirs in the same words."""
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


def ends_process(record: Record) -> bool:
    """Whether a line is the text of an error that ends a process of vLLM's, unless the engine goes on to print metrics."""
    if isinstance(record, _CONNECTIONS):
        return (record.process or "").startswith(_PROCESSES)
    return isinstance(record, Raised) and record.level == "ERROR" and (record.source or "").startswith(_FATAL)
