"""What decides a start-up while it is being printed: fatal records, and whether all capacity lines are there."""

from __future__ import annotations

from vlogcheck.records import (
    AutoFitImpossible,
    DeviceBlocks,
    EngineConfig,
    EngineDead,
    EngineDied,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    EngineReady,
    FreeMemoryTooLow,
    GraphCapture,
    KVCacheCapacity,
    KVCacheTooSmall,
    MaxConcurrency,
    NoKVCacheMemory,
    OutOfMemory,
    Raised,
    Ready,
    ServerProcessDied,
    ServerStarting,
    WeightsLoaded,
    WorkerDied,
)
from vlogcheck.startup import Startup

__all__ = ["FATAL", "TELLING", "capacity_complete"]

FATAL = (
    FreeMemoryTooLow, KVCacheTooSmall, NoKVCacheMemory, AutoFitImpossible, OutOfMemory, EngineDead, EngineDied,
    EngineInitFailed, ServerProcessDied, WorkerDied,
)  # fmt: skip
"""Records after which a start-up does not come up any more."""
TELLING = (
    *FATAL, EngineFailed, Raised, KVCacheCapacity, MaxConcurrency, DeviceBlocks, WeightsLoaded, GraphCapture,
    EngineInit, EngineReady, ServerStarting, Ready,
)  # fmt: skip
"""Records after which it is worth judging anew."""


def capacity_complete(startup: Startup) -> bool:
    """Whether every capacity line that the release prints is there: one pair per engine, per rank until 0.11.0."""
    from vlogcheck.budget.releases import parse_release

    config = startup.last(EngineConfig)
    if config is None or startup.version is None:
        return False
    engines = config.data_parallel_size or 1
    per_engine = 1
    if parse_release(startup.version).before("0.11.1") and config.engine_generation == "V1":
        per_engine = (config.tensor_parallel_size or 1) * (config.pipeline_parallel_size or 1)
    with_concurrency = len(startup.all(MaxConcurrency))
    with_concurrency += sum(r.max_concurrency is not None for r in startup.all(KVCacheCapacity))
    return with_concurrency >= engines * per_engine
