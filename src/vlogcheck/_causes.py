"""Which records can be the cause of a failure, and which of them is its root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.records import (
    AutoFitImpossible,
    BatchedTokensMismatch,
    CollectiveTimeout,
    CommunicationError,
    Crashed,
    EngineDead,
    EngineDied,
    EngineDump,
    EngineFailed,
    EngineInitFailed,
    EngineTimeout,
    ExternalWeightsTooLarge,
    FreeMemoryTooLow,
    GraphModeUnsupported,
    HostAllocationFailed,
    InvalidKVCacheSpace,
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
    RayWorkerDied,
    RendezvousTimeout,
    ServerProcessDied,
    Shutdown,
    SignalReceived,
    SwapSpaceTooLarge,
    TPUMemoryTooSmall,
    UtilizationOutOfRange,
    WorkerDied,
    WorkerFailed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.template import Record

__all__ = ["DEATHS", "PROOF", "REFUSALS", "counts", "root_of", "says_serving", "says_start", "signalled", "stop_index"]

REFUSALS = (
    FreeMemoryTooLow,
    ExternalWeightsTooLarge,
    KVCacheRequestTooLarge,
    NoKVCacheMemory,
    AutoFitImpossible,
    KVCacheTooSmall,
    KVCacheTokensTooFew,
    ProfilingMemoryChanged,
    TPUMemoryTooSmall,
)
"""What vLLM will not start with: messages of memory."""
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
DEATHS = (WorkerDied, RayWorkerDied, EngineDied, ServerProcessDied, EngineDead)
_HOST_SIGNALS = (7, 9)
"""SIGBUS: memory that was mapped could not be had; SIGKILL: on a server nearly always the host's memory."""
_ASKING_SIGNALS = (2, 15)
_ASKED = ("API server", "EngineCore", "MPClient", "uvicorn")
"""Who shuts down only when asked to; executors and process managers also clean up after a failure."""
PROOF = (
    EngineFailed,
    WorkerFailed,
    EngineInitFailed,
    EngineTimeout,
    CollectiveTimeout,
    ProcessKilled,
    OOMKilled,
    Crashed,
    OutOfMemory,
    *(kind for kind in DEATHS if kind is not RayWorkerDied),
)
"""What alone shows that a server which was ready is not any more (other errors may be one request's)."""


def stop_index(records: Sequence[Record]) -> int | None:
    """Return where somebody asked the server to stop; a shutdown that follows a failure is no such request."""
    for index, record in enumerate(records):
        if isinstance(
            record, (*REFUSALS, *_ERRORS, *DEATHS, *_TIMEOUTS, OutOfMemory, ProcessKilled, OOMKilled, Crashed)
        ):
            if counts(record) and not isinstance(record, Raised):
                return None
        elif isinstance(record, SignalReceived) or (isinstance(record, Shutdown) and record.component in _ASKED):
            return index
    return None


def counts(record: Record) -> bool:
    """Whether a record can be a cause: options are also warned of, and a graph mode replaced is no failure."""
    if isinstance(record, _OPTIONS):
        replaced = isinstance(record, GraphModeUnsupported) and record.becomes is not None
        allowed = isinstance(record, SwapSpaceTooLarge) and not record.refused
        allowed |= isinstance(record, MambaBlocksTooFew) and record.max_num_seqs is None  # smaller graphs, no refusal
        return not (replaced or allowed) and record.level in (None, "ERROR", "CRITICAL")
    return True


def root_of(window: list[Record]) -> tuple[str, Record] | None:
    """Return the kind of the first message that states a cause, and the message; None where none does."""
    for kinds in (
        (("refusal", REFUSALS), ("option", _OPTIONS), ("oom", (OutOfMemory,)), ("host", _HOST)),
        (("communication", _COMMUNICATION),),
        (("timeout", _TIMEOUTS),),
        (("error", _ERRORS), ("died", (WorkerDied, RayWorkerDied, EngineDied, ServerProcessDied))),
        (("died", (EngineDead,)),),
    ):
        for record in window:
            for name, types in kinds:
                if isinstance(record, types) and not (isinstance(record, Crashed) and record.fault != "bus"):
                    return _error(record, window) if name == "error" else (name, record)
    crash = next((r for r in window if isinstance(r, Crashed)), None)
    return ("died", crash) if crash is not None else None


def _error(record: Record, window: list[Record]) -> tuple[str, Record]:
    """Return the error that is told, or what ended the process where no more is told than that an engine did not start."""
    record = _named(record, window)
    if isinstance(record, EngineInitFailed):
        crash = next((r for r in window if isinstance(r, Crashed)), None)
        if crash is not None:
            return "died", crash
        if (ended := signalled(record)) is not None:
            return "host" if ended[1] in _HOST_SIGNALS else "died", record
    return "error", record


def signalled(record: EngineInitFailed) -> tuple[str, int] | None:
    """Return the process that a signal ended and which it was, None where one ended by itself or the parent ended it."""
    codes = {str(name): code for name, code in (record.exit_codes or {}).items() if isinstance(code, int)}
    by_signal = [(name, -code) for name, code in codes.items() if code < 0 and -code not in _ASKING_SIGNALS]
    return by_signal[0] if by_signal and not any(code > 0 for code in codes.values()) else None


def _named(record: Record, window: list[Record]) -> Record:
    """Prefer the message with the error's text over the one that announces its traceback."""
    if isinstance(record, Raised) or (isinstance(record, WorkerFailed) and record.error):
        return record
    return next((r for r in window if isinstance(r, Raised) and r.line >= record.line), record)


def says_nothing(root: tuple[str, Record]) -> bool:
    """Whether no more than the announcement of an error, or a death, is in the log."""
    kind, record = root
    told = getattr(record, "error", None) or isinstance(record, Raised)
    return (
        kind in ("error", "died")
        and not isinstance(record, Crashed)
        and (not told or str(told).startswith("Traceback"))
    )


def says_serving(record: Record) -> bool:
    """Whether a message only comes from an engine that had come up: the log begins later, or lacks what came before."""
    return isinstance(record, (EngineDump, EngineDead)) or (
        isinstance(record, EngineFailed) and record.phase == "serve"
    )


def says_start(record: Record) -> bool:
    """Whether a message only comes from an engine that does not come up."""
    return isinstance(record, (EngineInitFailed, *REFUSALS)) or (
        isinstance(record, (EngineFailed, WorkerFailed)) and record.phase == "start"
    )
