"""Why a start-up failed, or why a server that was ready died: one root cause out of all that a failing vLLM prints.

A failure is printed many times: once per rank, in each traceback of the chain, and again by the processes that
noticed it. The root is the first message that states a cause; what only says that somebody else is gone never is, while
there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._causes import DEATHS, PROOF, counts, root_of, says_nothing, says_serving, says_start, stop_index
from vlogcheck._clock import between
from vlogcheck._phases import PHASES
from vlogcheck._tuples import NamedTuple
from vlogcheck.records import (
    AutoFitImpossible,
    DeviceBlocks,
    EngineInit,
    FreeMemoryTooLow,
    KVCacheMemory,
    KVCacheTokensTooFew,
    KVCacheTooSmall,
    MaxConcurrency,
    MemoryProfile,
    NoKVCacheMemory,
    OOMKilled,
    OutOfMemory,
    ProcessKilled,
    Raised,
    TPUMemoryTooSmall,
)

if TYPE_CHECKING:
    from vlogcheck.runtime import Sample
    from vlogcheck.startup import Startup
    from vlogcheck.template import Record

__all__ = ["Failure", "Outcome", "failure_of", "outcome", "reason", "stop_of", "survived"]


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
    shown: bool = True
    """Whether the log shows when it was; of a piece that begins later nobody knows the phase."""

    @property
    def when(self) -> str:
        """What was going on, in words."""
        return f"while {self.phase}" if self.shown else "in a phase that the log does not show"

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
    if isinstance(
        record, (NoKVCacheMemory, AutoFitImpossible, KVCacheMemory, MemoryProfile, DeviceBlocks, TPUMemoryTooSmall)
    ):
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
    found = stop_index(startup.records)
    return startup.records[found] if found is not None else None


def failure_of(startup: Startup) -> Failure | None:
    """Return why a start-up failed or its server died, None where the log shows no failure."""
    records = startup.records
    usable = _usable_index(startup)
    stop = stop_index(records)
    end = len(records) if stop is None else stop
    first = 0 if usable is None else usable + 1
    after = usable is not None
    later = [r for r in records[end:] if isinstance(r, OOMKilled)]  # a stop that the kernel's killer caused
    window = [r for r in records[first:end] if counts(r)] + later
    if after and not any(isinstance(r, PROOF) or _ends_script(startup, r) for r in window):
        return None
    if not after:
        serving = [] if startup.phases else [r for r in window if startup.moment(r).sample is not None]
        after = any(isinstance(r, PROOF) for r in serving)  # metrics lines, and none of a start-up before them
        if not after and any(map(says_serving, startup.records)) and not any(map(says_start, window)):
            after = any(isinstance(r, PROOF) for r in window)
            serving = window
        window = serving if after else _after_progress(startup, window)
    root = root_of(window)
    if not after and (root is None or says_nothing(root)):
        root = _below_zero(startup) or root
    if root is None:
        return None
    from vlogcheck._failing_phase import phase_of

    kind, record = root
    same = [r for r in window if type(r) is type(record)]
    named = next((r for r in same if isinstance(r, OutOfMemory) and r.phase is not None), record)
    seconds = between(records[: first or 1], [record, *(r for r in window if r.line >= record.line)])
    phase = "serving" if after else phase_of(startup, named)
    told = startup.phases or phase != PHASES[0] or kind in ("refusal", "option") or any(map(says_start, window))
    return Failure(
        kind=kind,
        record=record,
        phase=phase,
        ranks=len({(r.process, r.pid) for r in same if _is_worker(r)}) or 1,
        repeats=len(same),
        after_ready=after,
        seconds=seconds if usable is not None else None,
        sample=startup.moment(record).sample if after else None,
        deaths=tuple(r for r in window if isinstance(r, (*DEATHS, ProcessKilled, OOMKilled)) and r is not record),
        shown=bool(told),
    )


def survived(startup: Startup) -> list[OutOfMemory]:
    """Return the failed device allocations that a start-up which came to its end went on after."""
    usable = _usable_index(startup)
    return [] if usable is None else [r for r in startup.records[:usable] if isinstance(r, OutOfMemory)]


def _usable_index(startup: Startup) -> int | None:
    if not startup.usable:
        return None
    if startup.ready is not None:
        return next(i for i, r in enumerate(startup.records) if r is startup.ready)
    return next((i for i, r in enumerate(startup.records) if isinstance(r, EngineInit)), None)


def _below_zero(startup: Startup) -> tuple[str, Record] | None:
    """Return the tightest rank's line where less than nothing was left and the log ends there: vLLM cannot go on from it."""
    profiles: list[KVCacheMemory | MemoryProfile] = [*startup.all(KVCacheMemory), *startup.all(MemoryProfile)]
    least = min(profiles, key=_left, default=None)
    blocks = next((r for r in startup.all(DeviceBlocks) if not r.device_blocks and r.device.lower() != "cpu"), None)
    if (least is None or _left(least) > 0) and blocks is None:
        return None
    told = [*profiles, *startup.all(DeviceBlocks), *startup.all(MaxConcurrency)]
    if startup.phases[-1].line > max(record.line for record in told):
        return None
    return ("refusal", least) if least is not None and _left(least) <= 0 else ("refusal", blocks) if blocks else None


def _left(record: KVCacheMemory | MemoryProfile) -> float:
    return record.gib if isinstance(record, KVCacheMemory) else record.kv_cache_gib


def _after_progress(startup: Startup, window: list[Record]) -> list[Record]:
    """Drop Python errors that the start-up went on after."""
    last = startup.phases[-1].line if startup.phases else 0
    return [r for r in window if not isinstance(r, Raised) or r.line > last]


def _ends_script(startup: Startup, record: Record) -> bool:
    """Whether an error outside the logger ended a script that uses `LLM()`; a server logs the errors of its requests."""
    return startup.offline and isinstance(record, Raised) and record.level is None


def _is_worker(record: Record) -> bool:
    return "orker" in (record.process or "")
