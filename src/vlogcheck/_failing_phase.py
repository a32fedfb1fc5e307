"""What was going on when a start-up's message was printed, from its own traceback where it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.records import (
    DeviceBlocks,
    EngineFailed,
    GraphCapture,
    KVCacheMemory,
    KVCacheTokensTooFew,
    KVCacheTooSmall,
    MemoryProfile,
    NoKVCacheMemory,
    OutOfMemory,
    Raised,
    TracebackFrame,
    WorkerFailed,
)

if TYPE_CHECKING:
    from vlogcheck.startup import Startup
    from vlogcheck.template import Record

__all__ = ["FRAME_LINES", "phase_of"]

_OF_THE_CACHE = (DeviceBlocks, KVCacheMemory, KVCacheTokensTooFew, KVCacheTooSmall, MemoryProfile, NoKVCacheMemory)
"""Refusals that only come when the KV cache is sized, V0 has printed its blocks then, and figures that end a start-up."""
FRAME_LINES = 400
"""Lines in which a traceback's frames are looked for above the error they belong to."""


def phase_of(startup: Startup, record: Record) -> str:
    """Return what was going on when a start-up's message was printed, from its own traceback where it has one."""
    if isinstance(record, OutOfMemory) and record.phase is not None:
        return "loading weights" if record.phase == "load" else "warming up"
    frames = _frames(startup, record)
    for functions, phase in (
        ({"load_model"}, "loading weights"),
        (
            {"determine_available_memory", "determine_num_available_blocks", "profile_num_available_blocks"},
            "profiling memory",
        ),
        ({"capture_model"}, "capturing graphs"),
        ({"compile_or_warm_up_model"}, "warming up"),
        ({"initialize_kv_cache", "initialize_cache"}, "allocating the KV cache"),
        ({"init_device"}, "starting"),
    ):
        if frames & functions:
            return phase
    if isinstance(record, _OF_THE_CACHE):
        return "allocating the KV cache"
    phase = startup.moment(record).own_phase
    if phase == "capturing graphs":
        at = startup.records.index(record)
        captured = any(isinstance(r, GraphCapture) for r in startup.records[:at])
        eager = startup.config is not None and startup.config.enforce_eager
        if captured or eager:
            return "warming up"
    return phase


def _frames(startup: Startup, record: Record) -> set[str]:
    at = next(i for i, r in enumerate(startup.records) if r is record)
    found: set[str] = set()
    for other in reversed(startup.records[:at]):
        if record.line - other.line > FRAME_LINES or other.line > record.line:
            break
        if (other.process, other.pid) != (record.process, record.pid):
            continue
        if isinstance(other, TracebackFrame):
            found.add(other.function)
        elif not isinstance(other, (Raised, EngineFailed, WorkerFailed)):
            break
    if isinstance(record, (EngineFailed, WorkerFailed)):  # announces the traceback that follows
        for other in startup.records[at + 1 :]:
            if other.line - record.line > FRAME_LINES:
                break
            if (other.process, other.pid) == (record.process, record.pid):
                if not isinstance(other, TracebackFrame):
                    break
                found.add(other.function)
    return found
