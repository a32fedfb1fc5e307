"""The observed ledger: what a start-up's lines say about each rank's memory and each engine's KV cache."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.ledger import Ledger
from vlogcheck.records import (
    DeviceBlocks,
    FreeMemoryTooLow,
    GraphCapture,
    KVCacheCapacity,
    KVCacheMemory,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    WeightsLoaded,
)
from vlogcheck.startup import Engine, Rank, Startup

__all__ = ["Capacity", "EngineLedger", "Observation", "RankLedger", "observe"]


class Capacity(NamedTuple):
    """One engine's printed capacity: the smallest of its lines, since the scheduler uses the tightest rank."""

    tokens: int | None
    tokens_line: int | None
    max_model_len: int | None
    concurrency: Fraction | None
    concurrency_line: int | None
    blocks: int | None
    blocks_line: int | None


class RankLedger(NamedTuple):
    """One rank's memory terms."""

    rank: Rank
    ledger: Ledger


class EngineLedger(NamedTuple):
    """One engine's KV cache terms and its ranks."""

    engine: Engine
    ledger: Ledger
    capacity: Capacity
    ranks: list[RankLedger]


class Observation(NamedTuple):
    """Everything a start-up's lines say about memory."""

    startup: Startup
    engines: list[EngineLedger]

    @property
    def ranks(self) -> list[RankLedger]:
        """The ranks of all engines."""
        return [rank for engine in self.engines for rank in engine.ranks]


def observe(startup: Startup) -> Observation:
    """Return the observed ledgers of a start-up."""
    return Observation(startup, [_observe_engine(startup, engine) for engine in startup.engines])


def _decimal(value: float) -> Fraction:
    """Return the decimal a float was printed as, exactly."""
    return Fraction(str(value))


def printed_range(value: float, decimals: int = 2) -> tuple[Fraction, Fraction]:
    """Return the bounds of the numbers printed as `value` with that many decimals."""
    middle = _decimal(value)
    half = Fraction(1, 2 * 10**decimals)
    return middle - half, middle + half


def capacity_of(engine: Engine) -> Capacity:
    """Return the engine's printed capacity."""
    sizes = engine.all(KVCacheCapacity)
    tightest = min(sizes, key=lambda r: r.tokens, default=None)
    printed: list[tuple[Fraction, int, int]] = [
        (_decimal(r.max_concurrency), r.max_model_len, r.line) for r in engine.all(MaxConcurrency)
    ]
    printed += [
        (_decimal(r.max_concurrency), r.max_model_len or 0, r.line) for r in sizes if r.max_concurrency is not None
    ]
    if printed:  # a later line (after an override or another length) replaces the earlier ones of its rank
        length = printed[-1][1]
        concurrency = min(p for p in printed if p[1] == length)
    else:
        concurrency = None
    blocks = min(engine.all(DeviceBlocks), key=lambda r: r.device_blocks, default=None)
    count = blocks.device_blocks if blocks else None
    if blocks and blocks.device.lower() == "cpu" and blocks.device_blocks == 0:
        count = blocks.cpu_blocks
    return Capacity(
        tokens=tightest.tokens if tightest else None,
        tokens_line=tightest.line if tightest else None,
        max_model_len=concurrency[1] if concurrency else None,
        concurrency=concurrency[0] if concurrency else None,
        concurrency_line=concurrency[2] if concurrency else None,
        blocks=count,
        blocks_line=blocks.line if blocks else None,
    )


def _observe_engine(startup: Startup, engine: Engine) -> EngineLedger:
    ledger = Ledger(f"engine {engine.index}")
    ranks = [RankLedger(rank, _observe_rank(startup, rank)) for rank in engine.ranks]
    capacity = capacity_of(engine)
    _add_block_size(startup, ledger)
    if capacity.blocks is not None:
        ledger.exact("blocks", "KV cache blocks", "blocks", capacity.blocks, "printed", line=capacity.blocks_line)
    if capacity.tokens is not None:
        ledger.exact("tokens", "KV cache size", "tokens", capacity.tokens, "printed", line=capacity.tokens_line)
    elif capacity.blocks is not None and (size := ledger["block_size"].interval):
        ledger.exact(
            "tokens", "KV cache size", "tokens", capacity.blocks * size.lo, "derived", formula="blocks × block size"
        )
    if capacity.max_model_len:
        ledger.exact(
            "max_model_len", "request length", "tokens", capacity.max_model_len, "printed",
            line=capacity.concurrency_line,
        )  # fmt: skip
    else:
        config = engine.config or startup.config
        if config is not None and config.max_model_len:
            ledger.exact("max_model_len", "request length", "tokens", config.max_model_len, "printed", line=config.line)
    if capacity.concurrency is not None:
        ledger.between(
            "concurrency", "concurrency at that length", "requests", printed_range(float(capacity.concurrency)),
            "printed", line=capacity.concurrency_line,
        )  # fmt: skip
    seqs = startup.args.get("max_num_seqs")
    if isinstance(seqs, int) and not isinstance(seqs, bool):
        ledger.exact("max_num_seqs", "max_num_seqs", "requests", seqs, "printed", origin="server arguments")
    _add_bytes_per_token(ledger, ranks)
    return EngineLedger(engine, ledger, capacity, ranks)


def _add_block_size(startup: Startup, ledger: Ledger) -> None:
    size = startup.args.get("block_size")
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        ledger.exact("block_size", "block size", "tokens per block", size, "printed", origin="server arguments")
        return
    config = startup.config
    stated = config.config.get("block_size") if config is not None and isinstance(config.config, dict) else None
    if isinstance(stated, int) and stated > 0:
        ledger.exact("block_size", "block size", "tokens per block", stated, "printed", line=config and config.line)
        return
    devices = {r.device.lower() for kind in (DeviceBlocks, KVCacheCapacity) for r in startup.all(kind)}
    if devices & {"gpu", "cuda", "rocm"}:
        ledger.exact("block_size", "block size", "tokens per block", 16, "assumed", origin="vLLM's default on GPUs")


def _add_bytes_per_token(ledger: Ledger, ranks: list[RankLedger]) -> None:
    """Add available memory ÷ tokens of the tightest rank: meaningful only where every layer costs the same per token."""
    tokens = ledger["tokens"].interval
    pools = [(pool.hi, rank) for rank in ranks if (pool := rank.ledger["kv_cache"].interval) is not None]
    if tokens is None or not tokens.lo or not pools:
        return
    pool, rank = min(pools, key=lambda pair: pair[0])
    available = rank.ledger["kv_cache"]
    assert available.lo is not None
    assert available.hi is not None
    if available.hi <= 0:
        return
    # The pool is a whole number of blocks: up to one block of the memory is left over.
    size = ledger["block_size"].interval
    slack = size.hi if size else 1
    ledger.between(
        "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token",
        (Fraction(available.lo) / (tokens.hi + slack), Fraction(available.hi) / tokens.lo), "derived",
        formula="available KV cache memory ÷ tokens", line=available.line,
    )  # fmt: skip


def _observe_rank(startup: Startup, rank: Rank) -> Ledger:
    ledger = Ledger(rank.name)
    use = rank.last(MemoryUse)
    profile = rank.last(MemoryProfile)
    weights = rank.last(WeightsLoaded)
    memory = rank.last(KVCacheMemory)
    graphs = rank.last(GraphCapture)
    refusal = startup.last(FreeMemoryTooLow)
    summary = use or profile or refusal
    if summary is not None:
        ledger.printed("total", "device memory", summary.total_gib, summary.line)
    free = use or refusal
    if free is not None:
        ledger.printed("free", "free at start", free.free_gib, free.line)
    _add_utilization(startup, ledger, summary)
    if summary is not None:
        ledger.printed("requested", "requested", summary.requested_gib, summary.line, formula="total × utilization")
    if "requested" not in ledger and "total" in ledger and "utilization" in ledger:
        total, share = ledger["total"], ledger["utilization"]
        assert total.lo is not None and total.hi is not None and share.lo is not None and share.hi is not None
        ledger.between(
            "requested", "requested", "bytes", (total.lo * share.lo, total.hi * share.hi), "derived",
            formula="total × utilization",
        )  # fmt: skip
    if use is not None and use.weights_gib is not None:
        ledger.printed("weights", "weights", use.weights_gib, use.line)
    elif profile is not None and profile.weights_gib is not None:
        ledger.printed("weights", "weights", profile.weights_gib, profile.line)
    if weights is not None and ("weights" not in ledger or len(weights.gib.text) >= 7):  # four decimals beat two
        ledger.printed("weights", "weights", weights.gib, weights.line)
    for record in (use, profile):
        if record is not None:
            ledger.printed("non_torch", "non-torch memory", record.non_torch_gib, record.line)
            ledger.printed("activation", "peak activation", record.activation_gib, record.line)
            break
    if use is not None:
        ledger.printed("consumed", "weights and non-torch", use.consumed_gib, use.line)
        ledger.printed("graphs", "captured graphs", use.graphs_gib, use.line)
    elif graphs is not None:
        ledger.printed("graphs", "captured graphs", graphs.gib, graphs.line)
    if memory is not None:
        ledger.printed("kv_cache", "KV cache", memory.gib, memory.line, formula="requested − the terms above")
    elif profile is not None:
        ledger.printed(
            "kv_cache", "KV cache", profile.kv_cache_gib, profile.line, formula="requested − the terms above"
        )
    elif use is not None:
        if use.kv_cache_bytes is not None:
            ledger.exact("kv_cache", "KV cache", "bytes", use.kv_cache_bytes, "printed", line=use.line)
        else:
            ledger.printed("kv_cache", "KV cache", use.kv_cache_gib, use.line)
    return ledger


def _add_utilization(
    startup: Startup, ledger: Ledger, summary: MemoryUse | MemoryProfile | FreeMemoryTooLow | None
) -> None:
    stated = startup.args.get("gpu_memory_utilization")
    if isinstance(stated, (int, float)) and not isinstance(stated, bool):
        ledger.exact("utilization", "utilization", "ratio", _decimal(stated), "printed", origin="server arguments")
    elif summary is not None:
        ledger.between(
            "utilization", "utilization", "ratio", printed_range(summary.gpu_memory_utilization), "printed",
            line=summary.line,
        )  # fmt: skip
    elif startup.version is not None or startup.args:
        default = default_utilization(parse_release(startup.version))
        ledger.exact(
            "utilization", "utilization", "ratio", _decimal(default), "assumed", origin="the release's default"
        )
