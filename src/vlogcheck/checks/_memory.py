"""What the checks about device memory share: which ranks there are, what a byte is worth, how figures read."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from vlogcheck._tuples import NamedTuple
from vlogcheck.advice import reserve, unified_memory
from vlogcheck.budget.releases import Release, parse_release
from vlogcheck.context import Context, provide
from vlogcheck.deployment import platform_of
from vlogcheck.ledger import Ledger, Number, Term
from vlogcheck.observed import EngineLedger, RankLedger
from vlogcheck.records import OutOfMemory, ServerArgs
from vlogcheck.registry import Missing
from vlogcheck.smi import Occupancy
from vlogcheck.startup import Startup
from vlogcheck.units import GIB, MIB, Interval, format_bytes, format_gib

VLLM_BUFFER = 150 * MIB
"""What vLLM keeps back in the `--kv-cache-memory` it suggests (v1/worker/gpu_worker.py): less than that is noise."""


class Worker(NamedTuple):
    """One rank with its engine."""

    engine: EngineLedger
    rank: RankLedger

    @property
    def ledger(self) -> Ledger:
        """The rank's terms."""
        return self.rank.ledger

    @property
    def name(self) -> str:
        """What to call the rank."""
        return self.rank.rank.name


class Workers(list[Worker]):
    """All ranks of all engines that have a ledger; never empty."""

    def worst(self, key: Callable[[Worker], Number | None]) -> Worker | None:
        """Return the rank with the largest value, or None where none has one."""
        known = [(value, index) for index, worker in enumerate(self) if (value := key(worker)) is not None]
        return self[max(known, key=lambda pair: (pair[0], -pair[1]))[1]] if known else None

    def where(self, worker: Worker, same: Callable[[Worker], bool]) -> str:
        """Return ` on rank 2`, ` on all 4 ranks` or nothing for a single rank."""
        if len(self) == 1:
            return ""
        if all(same(other) for other in self):
            return " on both ranks" if len(self) == 2 else f" on all {len(self)} ranks"
        return f" on {worker.name}"


def _workers(context: Context) -> Workers:
    found = Workers(Worker(engine, rank) for engine in context.observation.engines for rank in engine.ranks)
    if not found:
        raise Missing("the log prints no rank's memory")
    return found


def _device_workers(context: Context) -> DeviceWorkers:
    if backend(context.startup) == "cpu":
        raise Missing("the CPU back end uses host memory, not a card")
    if backend(context.startup) == "tpu":
        raise Missing("a TPU's memory is that of all its chips in sum: the rules of cards do not apply")
    return DeviceWorkers(_workers(context))


class DeviceWorkers(Workers):
    """The ranks, where they sit on cards of their own memory."""


def _occupancy(context: Context) -> Occupancy:
    raise Missing("no card reading: give --smi FILE")


provide(Workers, _workers)
provide(DeviceWorkers, _device_workers)
provide(Occupancy, _occupancy)


def backend(startup: Startup) -> str | None:
    """Return cuda, rocm, npu, xpu, hpu, tpu, cpu or a plug-in's name as far as the log's lines say, else None."""
    platform = platform_of(startup)
    failed = startup.last(OutOfMemory)
    if platform in (None, "cuda") and failed is not None and failed.backend in ("HIP", "NPU", "XPU"):
        return {"HIP": "rocm"}.get(failed.backend, failed.backend.lower())  # "cuda" is also what torch calls ROCm
    return platform


def release_of(startup: Startup) -> Release:
    """Return the release whose rules apply."""
    return parse_release(startup.version)


def held_before(ledger: Ledger) -> Interval | None:
    """Return what was in use on the card when the worker started, its own context counted: total − free."""
    total, free = ledger["total"].interval, ledger["free"].interval
    return None if total is None or free is None or ledger["total"].status != "printed" else total.minus(free)


def is_unified(ledger: Ledger) -> str | None:
    """Return the machine whose CPU and GPU share the memory, or None."""
    total = ledger["total"].interval
    return unified_memory(total) if total is not None else None


def kept(ledger: Ledger) -> int | None:
    """Return the reserve of the rank's card in bytes."""
    total = ledger["total"].interval
    return None if total is None else reserve(total.hi)


def request_bytes(worker: Worker) -> tuple[Fraction, int] | None:
    """Return the KV cache bytes one request takes of a rank, and its length in tokens."""
    concurrency, length = worker.engine.ledger["concurrency"], worker.engine.ledger["max_model_len"].interval
    pools = [i for rank in worker.engine.ranks if (i := rank.ledger["kv_cache"].interval) is not None]
    if not pools or concurrency.lo is None or concurrency.lo <= 0 or length is None:
        return None
    pool = min(pools)
    return (Fraction(pool.mid) / Fraction(concurrency.lo), length.lo) if pool.mid > 0 else None


def worth(worker: Worker, size: Number) -> str:
    """Return what bytes of KV cache per rank are worth: ` (2.31 requests of 4,096 tokens)`, nothing if unknown."""
    one = request_bytes(worker)
    if one is None:
        return ""
    return f" ({float(size / one[0]):,.2f} requests of {one[1]:,} tokens)"


def stated_utilization(startup: Startup, workers: Workers | None) -> Term:
    """Return the utilization the log states. Raises `Missing` where it does not, or where it plays no part."""
    if workers is not None:
        if all(worker.rank.rule.pinned for worker in workers):
            raise Missing("the KV cache was given in bytes: the utilization plays no part")
        term = workers[0].ledger["utilization"]
        if term.known and term.status != "assumed":
            return term if term.line is not None else term._replace(line=args_line(startup))
    stated = startup.args.get("gpu_memory_utilization")
    if not isinstance(stated, (int, float)) or isinstance(stated, bool) or not 0 < stated <= 1:
        raise Missing("the log does not state the utilization")
    share = Fraction(str(stated))
    return Term("utilization", "utilization", "ratio", share, share, "printed", line=args_line(startup))


def args_line(startup: Startup) -> int | None:
    """Return the line that prints the server's arguments."""
    args = startup.last(ServerArgs)
    if args is not None:
        return args.line
    return startup.config.line if startup.config is not None else None


def figure(term: Term) -> str:
    """Return a term's value with how it is known, where it was not printed."""
    return term.text() + (f" ({term.status})" if term.status in ("derived", "assumed", "given") else "")


def gib(size: Number | float) -> str:
    """Return bytes as GiB with two decimals."""
    return format_gib(int(size))


def signed_gib(size: Number | float) -> str:
    """Return bytes as GiB, or smaller where that says nothing."""
    return format_gib(int(size)) if size >= GIB // 100 or -size >= GIB // 100 else format_bytes(int(size))


def floor_hundredths(value: Number) -> float:
    """Return a utilization rounded down to two decimals."""
    return float(Fraction(value) * 100 // 1) / 100
