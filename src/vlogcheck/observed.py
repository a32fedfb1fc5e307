"""The observed ledger: what a start-up's lines say about each rank's memory and each engine's KV cache.

Ranks' terms are added in `device_ledger`. This file is long because all of an engine's are added here, each by its own function.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._host_blocks import host_blocks
from vlogcheck._rank_lines import decimal, printed_range
from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import parse_release
from vlogcheck.deployment import Available, available_memory, block_size_of
from vlogcheck.device_ledger import observe_rank
from vlogcheck.ledger import Ledger
from vlogcheck.records import (
    BudgetDefault,
    DeviceBlocks,
    FreeMemoryTooLow,
    FrontEndBlocks,
    KVCacheCapacity,
    MaxConcurrency,
)
from vlogcheck.startup import Engine, Rank, Startup

if TYPE_CHECKING:
    from vlogcheck.device_rule import DeviceRule
    from vlogcheck.expect import Expectation

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
    rule: DeviceRule
    """How the terms add up in this release."""


class EngineLedger(NamedTuple):
    """One engine's KV cache terms and its ranks."""

    engine: Engine
    ledger: Ledger
    capacity: Capacity
    ranks: list[RankLedger]
    available: Available | None = None
    """Memory for the KV cache, as the log prints it or as it was fixed in bytes."""


class Observation(NamedTuple):
    """Everything a start-up's lines say about memory."""

    startup: Startup
    engines: list[EngineLedger]

    @property
    def ranks(self) -> list[RankLedger]:
        """The ranks of all engines."""
        return [rank for engine in self.engines for rank in engine.ranks]


def observe(startup: Startup, expectation: Expectation | None = None) -> Observation:
    """Return the observed ledgers; a total that is not printed is taken from the expectation, and labelled so."""
    return Observation(startup, [_observe_engine(startup, engine, expectation) for engine in startup.engines])


def capacity_of(engine: Engine, startup: Startup | None = None) -> Capacity:
    """Return the engine's printed capacity; `startup` lets it use what the front end was told, too."""
    sizes = engine.all(KVCacheCapacity)
    tightest = min(sizes, key=lambda r: r.tokens, default=None)
    printed: list[tuple[Fraction, int, int]] = [
        (decimal(r.max_concurrency), r.max_model_len, r.line) for r in engine.all(MaxConcurrency) if r.max_model_len > 0
    ]
    printed += [
        (decimal(r.max_concurrency), r.max_model_len, r.line)
        for r in sizes
        if r.max_concurrency is not None and r.max_model_len is not None and r.max_model_len > 0
    ]
    if printed:  # a later line (after an override or another length) replaces the earlier ones of its rank
        length = printed[-1][1]
        concurrency = min(p for p in printed if p[1] == length)
    else:
        concurrency = None
    count, blocks_line = _blocks(engine, startup)
    return Capacity(
        tokens=tightest.tokens if tightest else None,
        tokens_line=tightest.line if tightest else None,
        max_model_len=concurrency[1] if concurrency else None,
        concurrency=concurrency[0] if concurrency else None,
        concurrency_line=concurrency[2] if concurrency else None,
        blocks=count,
        blocks_line=blocks_line,
    )


def _blocks(engine: Engine, startup: Startup | None) -> tuple[int | None, int | None]:
    """Return the printed number of blocks and its line."""
    blocks = min(engine.all(DeviceBlocks), key=lambda r: r.device_blocks, default=None)
    if blocks is not None:
        on_host = blocks.device.lower() == "cpu" and blocks.device_blocks == 0
        return (blocks.cpu_blocks if on_host else blocks.device_blocks), blocks.line
    # What the front end is told is a sum over data-parallel engines: it says something about one engine only where there is one.
    if startup is None or len(startup.engines) > 1 or (startup.config and (startup.config.data_parallel_size or 1) > 1):
        return None, None
    told = [r for r in startup.all(FrontEndBlocks) if (r.engine or 0) == engine.index and (r.engine_count or 1) == 1]
    return (told[-1].device_blocks, told[-1].line) if told else (None, None)


def _ranks(engine: Engine) -> list[Rank]:
    """Return the engine's ranks; where all were refused before they loaded anything, those that said so."""
    if ranks := engine.ranks:
        return ranks
    refused: dict[tuple[str | None, int | None], Rank] = {}
    for record in engine.all(FreeMemoryTooLow):
        device = (record.device or "").rpartition(":")[2]
        number = int(device) if device.isdecimal() and len(device) < 10 else record.rank
        rank = refused.setdefault((record.process, record.pid), Rank(record.process, record.pid, number))
        rank.records.append(record)
    return sorted(refused.values(), key=lambda rank: -1 if rank.number is None else rank.number)


def _observe_engine(startup: Startup, engine: Engine, expectation: Expectation | None) -> EngineLedger:
    ledger = Ledger(f"engine {engine.index}")
    found = _ranks(engine)
    ranks = [RankLedger(rank, *observe_rank(startup, engine, rank, found, expectation)) for rank in found]
    capacity = capacity_of(engine, startup)
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
        if config is not None and config.max_model_len is not None and config.max_model_len > 0:
            ledger.exact("max_model_len", "request length", "tokens", config.max_model_len, "printed", line=config.line)
    if capacity.concurrency is not None:
        ledger.between(
            "concurrency", "maximum concurrency", "requests", printed_range(float(capacity.concurrency)),
            "printed", line=capacity.concurrency_line,
        )  # fmt: skip
    _add_max_num_seqs(startup, ledger)
    available = available_memory(startup, engine, ranks)
    if available is not None:
        _add_fixed_pool(ranks, available)
        _add_bytes_per_token(startup, ledger, available)
    elif (host := host_blocks(startup, engine)) is not None and (size := ledger["block_size"].interval) is not None:
        ledger.between(
            "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token", (host.lo / size.hi, host.hi / size.lo),
            host.status, formula="swap space ÷ CPU blocks ÷ block size", line=host.line,
        )  # fmt: skip
    return EngineLedger(engine, ledger, capacity, ranks, available)


def _add_max_num_seqs(startup: Startup, ledger: Ledger) -> None:
    seqs = startup.args.get("max_num_seqs")
    if isinstance(seqs, int) and not isinstance(seqs, bool) and 0 < seqs < 1 << 62:
        ledger.exact("max_num_seqs", "max_num_seqs", "requests", seqs, "printed", origin="server arguments")
        return
    for default in reversed(startup.all(BudgetDefault)):
        if default.max_num_seqs is not None:
            ledger.exact(
                "max_num_seqs", "max_num_seqs", "requests", default.max_num_seqs, "printed", line=default.line,
                origin=f"the default for {default.usage_context}",
            )  # fmt: skip
            return


def _add_block_size(startup: Startup, ledger: Ledger) -> None:
    size = block_size_of(startup)
    if size is not None:
        ledger.exact(
            "block_size", "block size", "tokens per block", size.tokens, "printed" if size.printed else "assumed",
            origin=size.origin, line=size.line,
        )  # fmt: skip


def _add_fixed_pool(ranks: list[RankLedger], available: Available) -> None:
    """Add the KV cache's memory to ranks that print none because it was fixed: in bytes, or on CPUs."""
    if any("kv_cache" in rank.ledger for rank in ranks):
        return
    for rank in ranks:
        bounds = available.stages[rank.rank.stage if rank.rank.stage < len(available.stages) else 0]
        rank.ledger.between(
            "kv_cache", "KV cache", "bytes", bounds, "printed", origin=available.origin, line=available.line
        )


def _add_bytes_per_token(startup: Startup, ledger: Ledger, available: Available) -> None:
    """Add available memory ÷ tokens of the tightest rank: means something where all layers cost the same per token."""
    tokens, pool = ledger["tokens"].interval, available.tightest
    if tokens is None or tokens.lo <= 0 or pool.hi <= 0:
        return
    size, length = ledger["block_size"].interval, ledger["max_model_len"].interval
    step = size.hi if size else 1
    cells = tokens.hi
    if length is not None and parse_release(startup.version).since("0.20.2"):
        # Tokens are int(concurrency × length): a length that is no whole number of blocks makes them fewer than there are.
        per_request = -(-length.lo // step)
        cells = max(cells, -(-tokens.hi * per_request // length.lo) * step)
    # The pool is a whole number of blocks: up to one block of the memory is left over.
    ledger.between(
        "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token",
        (Fraction(max(pool.lo, 0)) / (cells + step), Fraction(pool.hi) / tokens.lo), "derived",
        formula="available KV cache memory ÷ tokens", line=available.line,
    )  # fmt: skip
