"""What a log says about how the server was set up, as far as the KV cache depends on it: platform, block size, memory.

Used for the expected ledger (what the plan is to follow) and for the observed one (what one block is). Nothing is guessed: where
the log does not say, the release's default is named as such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck._tuples import NamedTuple
from vlogcheck.records import (
    AttentionBackend,
    BlockSizeSet,
    CPUKVCache,
    DeviceBlocks,
    HybridBlockSize,
    KVCacheCapacity,
    OutOfMemory,
    Platform,
    StartupPlanApplied,
)
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.observed import RankLedger
    from vlogcheck.startup import Engine, Startup

__all__ = [
    "Available",
    "BlockSize",
    "available_memory",
    "backend_of",
    "block_size_of",
    "not_modelled",
    "platform_of",
    "stated",
    "world_size",
]

_MODELLED = frozenset({"cuda", "rocm", "cpu"})
_NAMES = {"ascend": "npu", "gpu": "cuda", "neuron": "neuron"}
_NODE = "Available memory on node {"
"""How refusals of the CPU back end begin."""
_BACKENDS = {"HIP": "rocm", "XPU": "xpu", "NPU": "npu", "HPU": "hpu", "TPU": "tpu"}
_FILES = {name: name for name in ("cpu", "xpu", "hpu", "tpu")} | {"worker_v1.py": "npu", "model_runner_v1.py": "npu"}
_FILES_OF = tuple(
    f"{name}_{part}" for name in ("cpu", "xpu", "hpu", "tpu") for part in ("worker.", "model_runner.", "runner.")
)
"""Files of one platform alone: `cpu_worker.py`, `tpu_runner.py`; vllm-ascend's until 0.13 are named after the engine."""
_BACKEND_BLOCKS = {"FLASHMLA": 64, "CUTLASS_MLA": 128}
"""Tokens per block that a back end needs whatever was asked for (vllm/platforms/cuda.py)."""


class BlockSize(NamedTuple):
    """Tokens per block of the attention layers, and how it is known."""

    tokens: int
    printed: bool
    origin: str
    line: int | None = None


class Available(NamedTuple):
    """Memory for the KV cache: one interval of bytes per pipeline stage, the tightest rank of each."""

    stages: list[Interval]
    origin: str
    line: int | None
    complete: bool
    """Whether every rank's figure is there; else a rank that printed nothing may have less."""

    @property
    def tightest(self) -> Interval:
        """The stage with the least memory."""
        return min(self.stages, key=lambda interval: interval.hi)


def platform_of(startup: Startup) -> str | None:
    """Return `cuda`, `rocm`, `cpu`, `npu`, `tpu`, `xpu`, `hpu` or a plug-in's name; None where no line says it.

    "GPU KV cache size" proves nothing: releases before 0.30 print it on every platform.
    """
    platform = startup.last(Platform)
    if platform is not None:
        name = platform.platform.lower()
        return _NAMES.get(name, name)
    config = startup.config
    said = config.config.get("device_config") if config is not None and isinstance(config.config, dict) else None
    devices = [str(said)] if said else [told] if (told := _told_by_files(startup)) else []
    devices += [r.device for r in startup.all(DeviceBlocks)] + [r.device for r in startup.all(KVCacheCapacity)]
    for device in devices:
        name = device.lower().partition(":")[0]
        if name in ("cpu", "cuda", "rocm", "npu", "xpu", "hpu", "tpu"):
            return name
    return None


def _told_by_files(startup: Startup) -> str | None:
    """Return the platform whose own source file or own message a line is of, or whose allocator failed."""
    for record in startup.records:
        file = (record.source or "").partition(":")[0].rpartition("/")[2]
        name = _FILES.get(file) or (_FILES.get(file.partition("_")[0]) if file.startswith(_FILES_OF) else None)
        if name is not None:
            return name
        if isinstance(record, CPUKVCache) or (record.template is not None and record.template.text.startswith(_NODE)):
            return "cpu"
        if file.endswith("_npu.py") or (
            record.template is not None and record.template.source in ("cann", "torch_npu")
        ):
            return "npu"
        if isinstance(record, OutOfMemory) and record.backend in _BACKENDS:
            return _BACKENDS[record.backend]
    return None


def not_modelled(startup: Startup) -> str | None:
    """Return why the rules of the KV cache do not apply to the start-up's platform, or None where they do."""
    platform = platform_of(startup)
    if platform is None or platform in _MODELLED:
        return None
    return f"platform {platform} sizes its KV cache by its own rules, which are not modelled"


def stated(startup: Startup, name: str) -> Any:
    """Return the value of an option as the server's arguments or the engine's banner print it, or None."""
    value = startup.args.get(name)
    if value is None and (config := startup.config) is not None and isinstance(config.config, dict):
        value = config.config.get(name)
    return value


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62 else None


def block_size_of(startup: Startup) -> BlockSize | None:
    """Return the tokens per block of the attention layers, or None where neither a line nor a default says it."""
    if (hybrid := startup.last(HybridBlockSize)) is not None and _count(hybrid.block_size_tokens):
        return BlockSize(hybrid.block_size_tokens, True, "aligned with the state pages", hybrid.line)
    if (forced := startup.last(BlockSizeSet)) is not None and _count(forced.block_size_tokens):
        return BlockSize(forced.block_size_tokens, True, f"the {forced.backend or 'attention'} back end's", forced.line)
    size = _count(startup.args.get("block_size"))
    if size is not None:
        return BlockSize(size, True, "server arguments")
    config = startup.config
    written = config.config.get("block_size") if config is not None and isinstance(config.config, dict) else None
    if config is not None and (size := _count(written)) is not None:
        return BlockSize(size, True, "engine banner", config.line)
    return _default_block_size(startup)


def _default_block_size(startup: Startup) -> BlockSize | None:
    backend = backend_of(startup)
    if backend in _BACKEND_BLOCKS:
        return BlockSize(_BACKEND_BLOCKS[backend], False, f"what {backend} needs")
    platform = platform_of(startup)
    if platform == "cpu":
        from vlogcheck.budget.releases import parse_release

        size = 128 if parse_release(startup.version).since("0.11.1") else 16
        return BlockSize(size, False, "the release's default on CPUs")
    if platform == "npu":
        return BlockSize(128, False, "vllm-ascend's default")
    devices = {r.device.lower() for r in startup.all(DeviceBlocks)}
    devices |= {r.device.lower() for r in startup.all(KVCacheCapacity)}
    if platform in ("cuda", "rocm") or (platform is None and devices & {"gpu", "cuda", "rocm"}):
        return BlockSize(16, False, "vLLM's default on GPUs")
    return None


def backend_of(startup: Startup) -> str | None:
    """Return the attention back end as vLLM's options spell it, or None where no line names it."""
    record = startup.last(AttentionBackend)
    return record.backend.upper().replace(" ", "_") if record is not None else None


def world_size(engine: Engine, startup: Startup) -> int:
    """Return how many ranks (tensor × pipeline) an engine has by its banner; 1 where it does not say."""
    config = engine.config or startup.config
    if config is None:
        return 1
    return (config.tensor_parallel_size or 1) * (config.pipeline_parallel_size or 1)


def available_memory(startup: Startup, engine: Engine, ranks: Sequence[RankLedger]) -> Available | None:
    """Return the memory for the KV cache, or None where the log does not print it.

    `ranks` are those that printed something. A fixed size in bytes is exact; a printed figure is the interval of its rounding.
    """
    fixed = _count(stated(startup, "kv_cache_memory_bytes")) or _count(startup.args.get("kv_cache_memory"))
    if fixed is not None:
        return Available([Interval.exactly(fixed)], "--kv-cache-memory-bytes", None, True)
    if (plan := startup.last(StartupPlanApplied)) is not None:
        return Available([Interval.exactly(plan.kv_cache_bytes)], "a stored start-up plan", plan.line, True)
    stages: dict[int, tuple[Interval, int | None]] = {}
    printed = 0
    for rank in ranks:
        term = rank.ledger["kv_cache"]
        pool = term.interval
        if pool is None or term.status != "printed":
            continue
        printed += 1
        known = stages.get(rank.rank.stage)
        if known is None or pool.hi < known[0].hi:
            stages[rank.rank.stage] = (pool, term.line)
    if stages:
        line = min(stages.values(), key=lambda pair: pair[0].hi)[1]
        complete = printed >= world_size(engine, startup)
        return Available([stages[s][0] for s in sorted(stages)], "the memory the log prints", line, complete)
    spaces = engine.all(CPUKVCache) or startup.all(CPUKVCache)
    if spaces and platform_of(startup) in (None, "cpu"):
        least = min(spaces, key=lambda r: r.gib)
        whole = re.fullmatch(r"\d+", least.gib.text)
        size = Interval.exactly(int(Fraction(least.gib.text) * (1 << 30))) if whole else least.gib.bytes
        return Available([size], "the CPU back end's KV cache space", least.line, True)
    return None
