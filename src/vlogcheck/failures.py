"""Why a start-up failed, or why a server that was ready died: one root cause out of all that a failing vLLM prints.

A failure is printed many times: once per rank, in each traceback of the chain, and again by the processes that
noticed it. The root is the first message that states a cause; what only says that somebody else is gone never is, while
there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vlogcheck._clock import between
from vlogcheck.records import (
    AutoFitImpossible,
    BatchedTokensMismatch,
    CollectiveTimeout,
    CommunicationError,
    Crashed,
    EngineDead,
    EngineDied,
    EngineFailed,
    EngineInit,
    EngineInitFailed,
    EngineTimeout,
    ExternalWeightsTooLarge,
    FreeMemoryTooLow,
    GraphCapture,
    GraphModeUnsupported,
    HostAllocationFailed,
    InvalidKVCacheSpace,
    KVCacheMemory,
    KVCacheRequestTooLarge,
    KVCacheTokensTooFew,
    KVCacheTooSmall,
    MambaBlocksTooFew,
    MaxModelLenTooLarge,
    NoKVCacheMemory,
    NoSpaceLeft,
    OOMKilled,
    OutOfMemory,
    PeerLost,
    ProcessKilled,
    ProfilingMemoryChanged,
    Raised,
    RendezvousTimeout,
    ServerProcessDied,
    Shutdown,
    SignalReceived,
    SwapSpaceTooLarge,
    TracebackFrame,
    UtilizationOutOfRange,
    WorkerDied,
    WorkerFailed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.runtime import Sample
    from vlogcheck.startup import Startup
    from vlogcheck.template import Record

__all__ = ["FRAME_LINES", "Failure", "Outcome", "failure_of", "outcome", "phase_of", "reason", "stop_of", "survived"]

FRAME_LINES = 400
"""Lines in which a traceback's frames are looked for above the error they belong to."""

_REFUSALS = (
    FreeMemoryTooLow,
    ExternalWeightsTooLarge,
    KVCacheRequestTooLarge,
    NoKVCacheMemory,
    AutoFitImpossible,
    KVCacheTooSmall,
    KVCacheTokensTooFew,
    ProfilingMemoryChanged,
)
_OPTIONS = (
    MaxModelLenTooLarge,
    BatchedTokensMismatch,
    UtilizationOutOfRange,
    SwapSpaceTooLarge,
    InvalidKVCacheSpace,
    GraphModeUnsupported,
    MambaBlocksTooFew,
)
_HOST = (OOMKilled, HostAllocationFailed, NoSpaceLeft, ProcessKilled, Crashed)
_COMMUNICATION = (CollectiveTimeout, RendezvousTimeout, CommunicationError, PeerLost)
_TIMEOUTS = (EngineTimeout,)
_ERRORS = (EngineFailed, WorkerFailed, EngineInitFailed, Raised)
_DEATHS = (WorkerDied, EngineDied, ServerProcessDied, EngineDead)
_ASKED = ("API server", "EngineCore", "MPClient", "uvicorn")
"""Who shuts down only when asked to; executors and process managers also clean up after a failure."""
_PROOF = (
    EngineFailed,
    WorkerFailed,
    EngineInitFailed,
    EngineTimeout,
    CollectiveTimeout,
    ProcessKilled,
    OOMKilled,
    Crashed,
    OutOfMemory,
    *_DEATHS,
)
"""What alone shows that a server which was ready is not any more (other errors may be one request's)."""


class Failure(NamedTuple):
    """One failure: its root message and what was going on."""

    kind: str
    """refusal, option, oom, host, communication, timeout, error or died."""
    record: Record
    """The first message that states it."""
    phase: str
    """What was going on: a phase of the start-up, `warming up` or `serving`."""
    ranks: int
    """Processes that printed it."""
    repeats: int
    """How many times it was printed in all."""
    after_ready: bool
    seconds: float | None
    """Seconds from ready to the failure, where the times tell."""
    sample: Sample | None
    """The last metrics line before it."""
    deaths: tuple[Record, ...]
    """What else the log says of processes that ended."""

    @property
    def line(self) -> int:
        """The line that shows it."""
        return self.record.line


class Outcome(NamedTuple):
    """How a start-up went."""

    failure: Failure | None
    stop: Record | None
    """The message that shows somebody asked it to stop."""
    survived: tuple[OutOfMemory, ...]
    """Failed device allocations it went on after."""


def outcome(startup: Startup) -> Outcome:
    """Return how a start-up went, from its lines alone."""
    return Outcome(failure_of(startup), stop_of(startup), tuple(survived(startup)))


def reason(startup: Startup) -> str:
    """Return in a few words how a start-up that did not come to its end ended, with its numbers."""
    failure = failure_of(startup)
    if failure is None:
        asked = stop_of(startup) is not None
        return f"told to stop while {startup.phase}" if asked else f"ended while {startup.phase} without a word"
    record = failure.record
    if isinstance(record, FreeMemoryTooLow):
        return f"{record.free_gib} of {record.total_gib} GiB free, {record.requested_gib} asked for"
    if isinstance(record, KVCacheTooSmall):
        return f"{record.available_gib} GiB of KV cache, {record.needed_gib} needed"
    if isinstance(record, KVCacheTokensTooFew):
        return f"KV cache of {record.tokens:,} tokens, {record.max_model_len:,} needed"
    if isinstance(record, (NoKVCacheMemory, AutoFitImpossible)):
        left = min((r.gib for r in startup.all(KVCacheMemory)), default=None)
        return "nothing left for the KV cache" + (f" ({left} GiB)" if left is not None else "")
    if isinstance(record, OutOfMemory):
        return f"out of device memory while {failure.phase}"
    if isinstance(record, Raised):
        return f"{record.error}{record.ending}: {record.text}"[:120]
    words = {
        "refusal": "refused",
        "option": "option refused",
        "host": "host memory or killed",
        "died": "a process died",
    }
    return f"{words.get(failure.kind, failure.kind)} while {failure.phase}"


def stop_of(startup: Startup) -> Record | None:
    """Return the message that shows somebody asked the server to stop before anything had failed, or None."""
    found = _stop_index(startup.records)
    return startup.records[found] if found is not None else None


def failure_of(startup: Startup) -> Failure | None:
    """Return why a start-up failed or its server died, None where the log shows no failure."""
    records = startup.records
    usable = _usable_index(startup)
    stop = _stop_index(records)
    end = len(records) if stop is None else stop
    first = 0 if usable is None else usable + 1
    after = usable is not None
    later = [r for r in records[end:] if isinstance(r, OOMKilled)]  # a stop that the kernel's killer caused
    window = [r for r in records[first:end] if _counts(r)] + later
    if after and not any(isinstance(r, _PROOF) or _ends_script(startup, r) for r in window):
        return None
    if not after:
        window = _after_progress(startup, window)
    root = _root(window)
    if root is None:
        return None
    kind, record = root
    same = [r for r in window if type(r) is type(record)]
    named = next((r for r in same if isinstance(r, OutOfMemory) and r.phase is not None), record)
    seconds = between(records[: first or 1], [record, *(r for r in window if r.line >= record.line)]) if after else None
    return Failure(
        kind=kind,
        record=record,
        phase="serving" if after else phase_of(startup, named),
        ranks=len({(r.process, r.pid) for r in same if _is_worker(r)}) or 1,
        repeats=len(same),
        after_ready=after,
        seconds=seconds,
        sample=startup.moment(record).sample if after else None,
        deaths=tuple(r for r in window if isinstance(r, (*_DEATHS, ProcessKilled, OOMKilled)) and r is not record),
    )


def survived(startup: Startup) -> list[OutOfMemory]:
    """Return the failed device allocations that a start-up which came to its end went on after."""
    usable = _usable_index(startup)
    return [] if usable is None else [r for r in startup.records[:usable] if isinstance(r, OutOfMemory)]


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
    return found


def _usable_index(startup: Startup) -> int | None:
    if not startup.usable:
        return None
    if startup.ready is not None:
        return next(i for i, r in enumerate(startup.records) if r is startup.ready)
    return next((i for i, r in enumerate(startup.records) if isinstance(r, EngineInit)), None)


def _stop_index(records: Sequence[Record]) -> int | None:
    """Return where somebody asked the server to stop; a shutdown that follows a failure is no such request."""
    for index, record in enumerate(records):
        if isinstance(
            record, (*_REFUSALS, *_ERRORS, *_DEATHS, *_TIMEOUTS, OutOfMemory, ProcessKilled, OOMKilled, Crashed)
        ):
            if _counts(record) and not isinstance(record, Raised):
                return None
        elif isinstance(record, SignalReceived) or (isinstance(record, Shutdown) and record.component in _ASKED):
            return index
    return None


def _counts(record: Record) -> bool:
    """Whether a record can be a cause: options are also warned of, and a graph mode replaced is no failure."""
    if isinstance(record, _OPTIONS):
        replaced = isinstance(record, GraphModeUnsupported) and record.becomes is not None
        allowed = isinstance(record, SwapSpaceTooLarge) and not record.refused
        allowed |= isinstance(record, MambaBlocksTooFew) and record.max_num_seqs is None  # smaller graphs, no refusal
        return not (replaced or allowed) and record.level in (None, "ERROR", "CRITICAL")
    return True


def _after_progress(startup: Startup, window: list[Record]) -> list[Record]:
    """Drop Python errors that the start-up went on after."""
    last = startup.phases[-1].line if startup.phases else 0
    return [r for r in window if not isinstance(r, Raised) or r.line > last]


def _root(window: list[Record]) -> tuple[str, Record] | None:
    for kinds in (
        (("refusal", _REFUSALS), ("option", _OPTIONS), ("oom", (OutOfMemory,)), ("host", _HOST)),
        (("communication", _COMMUNICATION),),
        (("timeout", _TIMEOUTS),),
        (("error", _ERRORS), ("died", (WorkerDied, EngineDied, ServerProcessDied))),
        (("died", (EngineDead,)),),
    ):
        for record in window:
            for name, types in kinds:
                if isinstance(record, types) and not (isinstance(record, Crashed) and record.fault != "bus"):
                    return name, _named(record, window) if name == "error" else record
    crash = next((r for r in window if isinstance(r, Crashed)), None)
    return ("died", crash) if crash is not None else None


def _ends_script(startup: Startup, record: Record) -> bool:
    """Whether an error outside the logger ended a script that uses `LLM()`; a server logs the errors of its requests."""
    return startup.offline and isinstance(record, Raised) and record.level is None


def _named(record: Record, window: list[Record]) -> Record:
    """Prefer the message with the error's text over the one that announces its traceback."""
    if isinstance(record, Raised) or (isinstance(record, WorkerFailed) and record.error):
        return record
    return next((r for r in window if isinstance(r, Raised) and r.line >= record.line), record)


def _is_worker(record: Record) -> bool:
    return "orker" in (record.process or "")
