"""Platforms with plug-ins of their own: Metal, Ascend, Gaudi, Rebellions, MLX."""

from __future__ import annotations

from vlogcheck.template import Record, Size, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "AllocatedCache",
    "AvailableEstimate",
    "FreeAfterGraphs",
    "HPUBlocks",
    "HPUBucketTooLarge",
    "HPUGraphs",
    "HPUWarmup",
    "HPUWarmupStep",
    "MetalBudget",
    "MetalFraction",
    "MetalKVCache",
    "MetalMemory",
    "MetalWiredLimit",
    "ModelBytes",
]


class MetalMemory(Record):
    """Unified memory of the machine; GB is 1e9 bytes (vllm-metal, platform.py)."""

    total_gb: float
    """In all."""
    available_gb: float
    """Free."""

    templates = (
        Template(
            "Metal memory: {total_gb}GB total, {available_gb}GB available",
            versions="",
            source="vllm-metal",
            example="Metal memory: 68.7GB total, 41.2GB available",
        ),
    )


class MetalBudget(Record):
    """How vllm-metal divides memory by itself; GB is 1e9 bytes (v1/worker.py)."""

    model_gb: float
    """Weights."""
    kv_cache_gb: float | None = None
    """KV cache, at least where `total_gb` is stated."""
    total_gb: float
    """Memory set aside or set as limit."""
    max_model_len: int | None = None
    """Request length it reckons with."""
    min_blocks: int | None = None
    """Blocks it needs at least."""

    templates = (
        Template(
            "Auto memory mode: model={model_gb}GB, max_model_len={max_model_len}, min_blocks={min_blocks},"
            " min_cache={kv_cache_gb}GB, total_needed={total_gb}GB, effective_fraction={_}",
            versions="",
            source="vllm-metal",
            example="Auto memory mode: model=8.05GB, max_model_len=8192, min_blocks=512, min_cache=1.07GB,"
            " total_needed=9.62GB,"
            " effective_fraction=0.140",
        ),
        Template(
            "Auto mode: set MLX memory limit to {total_gb}GB (model={model_gb}GB, kv_cache={kv_cache_gb}GB)",
            versions="",
            source="vllm-metal",
            example="Auto mode: set MLX memory limit to 10.20GB (model=8.05GB, kv_cache=1.07GB)",
        ),
    )


class MetalKVCache(Record):
    """Memory for the KV cache on Metal."""

    size_gb: float | None = None
    """Memory in units of 1e9 bytes."""
    gib: GiB | None = None
    """Memory in GiB, where the text says GB and means GiB (vllm-mlx)."""
    blocks: int | None = None
    """Blocks."""
    block_bytes: int | None = None
    """Bytes of one block."""
    tokens: int | None = None
    """Tokens the blocks hold."""

    templates = (
        Template(
            "Metal available memory for KV cache: {size_gb} GB",
            versions="",
            source="vllm-metal",
            example="Metal available memory for KV cache: 24.61 GB",
        ),
        Template(
            "Paged attention: reporting MPS cache capacity ({blocks:,} blocks × {block_bytes:,} bytes = {size_gb} GB)",
            versions=">0.1.0",
            source="vllm-metal",
            example="Paged attention: reporting MPS cache capacity (11,734 blocks × 2,097,152 bytes = 24.61 GB)",
        ),
        Template(
            "Paged attention memory breakdown: {_}, kv_budget={size_gb}GB, per_block_bytes={block_bytes}, num_blocks={blocks},"
            " max_tokens_cached={tokens}",
            versions=">0.1.0",
            source="vllm-metal",
            example="Paged attention memory breakdown: metal_limit=51.54GB, fraction=0.9, usable_metal=46.39GB,"
            " model_memory=8.05GB, overhead=0.80GB, kv_budget=24.61GB, per_block_bytes=2097152, num_blocks=11734,"
            " max_tokens_cached=187744",
        ),
        Template(
            "Paged attention memory breakdown: {_}, per_block_bytes={block_bytes}, num_blocks={blocks},"
            " max_tokens_cached={tokens}",
            versions=">0.1.0",
            source="vllm-metal",
            example="Paged attention memory breakdown: metal_limit=51.54GB, per_block_bytes=2097152, num_blocks=11734,"
            " max_tokens_cached=187744",
        ),
        Template(
            "KV cache: {_} MB ({_} layers, {blocks} blocks, {_} tokens/block)",
            versions=">0.1.0",
            source="vllm-metal",
            example="KV cache: 24608.0 MB (32 layers, 11734 blocks, 16 tokens/block)",
        ),
        *(
            Template(
                f"{kernel}aged attention enabled: {{_}} layers patched, {{blocks}} blocks allocated (block_size={{_}})",
                versions="",
                source="vllm-metal",
                example=f"{kernel}aged attention enabled: 32 layers patched, 11734 blocks allocated (block_size=16, mla=False)",
            )
            for kernel in ("P", "Metal kernel p")
        ),
        Template(
            "KV cache config received: {blocks} blocks ({_})",
            versions="",
            source="vllm-metal",
            example="KV cache config received: 11734 blocks (MLX manages cache internally)",
        ),
        Template(
            "KV cache initialized with {blocks} blocks",
            versions="",
            source="vllm-metal",
            example="KV cache initialized with 11734 blocks",
        ),
        Template(
            "KV cache initialized: {blocks} blocks, {_} layers, {_} kv_heads",
            versions="",
            source="vllm-metal",
            example="KV cache initialized: 11734 blocks, 32 layers, 8 kv_heads",
        ),
        Template(
            "Available memory for KV cache: {gib}GB (utilization: {_})",
            versions="",
            source="vllm-mlx",
            example="Available memory for KV cache: 22.9GB (utilization: 0.9)",
        ),
    )


class MetalFraction(Record):
    """Share of the limit that paged attention may use, where the environment leaves it open (vllm-metal, cache_policy.py)."""

    fraction: float
    """The share."""

    templates = (
        Template(
            "Paged attention: VLLM_METAL_MEMORY_FRACTION=auto, using --gpu-memory-utilization={fraction}",
            versions="",
            source="vllm-metal",
            example="Paged attention: VLLM_METAL_MEMORY_FRACTION=auto, using --gpu-memory-utilization=0.15",
        ),
        Template(
            "Paged attention: VLLM_METAL_MEMORY_FRACTION=auto, defaulting to {fraction} for paged path",
            versions="",
            source="vllm-metal",
            example="Paged attention: VLLM_METAL_MEMORY_FRACTION=auto, defaulting to 0.90 for paged path",
        ),
    )


class MetalWiredLimit(Record):
    """Memory the system may not page out. The text says GB and means GiB (vllm-metal, utils.py)."""

    gib: GiB
    """The limit."""

    templates = (
        Template(
            "Set Metal wired_limit to {gib} GB",
            versions=">0.1.0",
            source="vllm-metal",
            example="Set Metal wired_limit to 48.0 GB",
        ),
    )


class FreeAfterGraphs(Record):
    """Little memory is left on each device after capture; the label says GB (vllm-ascend 0.9)."""

    free_gib: GiB
    """Free memory."""

    templates = (
        Template(
            "Post graph compilation, the available memory on each NPU is reduced to merely {free_gib} GB. {_}",
            versions="<0.11.0",
            source="vllm-ascend",
            example="Post graph compilation, the available memory on each NPU is reduced to merely 0.42 GB. During"
            " inference"
            " operations, subsequent memory allocations may potentially trigger Out-of-Memory(OOM) conditions.",
        ),
    )


class HPUBlocks(Record):
    """Blocks on Gaudi: usable ones and those allocated with padding (vllm-gaudi, v1/worker/hpu_worker.py)."""

    usable_blocks: int
    """Blocks the scheduler may use."""
    allocated_blocks: int
    """Blocks allocated."""

    templates = (
        Template(
            "Usable num_blocks: {usable_blocks}, actual allocated num_blocks{_}: {allocated_blocks} (_PAD_BLOCK_ID={_},"
            " _PAD_SLOT_ID={_})",
            versions="",
            source="vllm-gaudi",
            example="Usable num_blocks: 4096, actual allocated num_blocks (max across layers): 4097 (_PAD_BLOCK_ID=0,"
            " _PAD_SLOT_ID=-1)",
        ),
    )


class HPUBucketTooLarge(Record):
    """The smallest shape Gaudi is warmed up for exceeds the token budget (worker/hpu_model_runner.py)."""

    max_num_batched_tokens: int
    """The budget in tokens."""
    bucket: str
    """The smallest shape, as printed."""

    templates = (
        Template(
            "The current bucketing configuration (min, step, max_warmup): bs:{_}, seq:{_} cannot be used with"
            " specified max_num_batched_tokens ({max_num_batched_tokens}), as the smallest bucket ({bucket}) would"
            " exceed token budget. Please increase max_num_batched_tokens or decrease bucket minimum Ignoring"
            " max_num_batched_tokens at risk of out-of-memory errors.",
            versions=">=0.6.4,<0.8.5",
            example="The current bucketing configuration (min, step, max_warmup): bs:[1, 32, 64], seq:[128, 128, 1024]"
            " cannot be used with specified max_num_batched_tokens (64), as the smallest bucket (128) would exceed"
            " token budget. Please increase max_num_batched_tokens or decrease bucket minimum Ignoring"
            " max_num_batched_tokens at risk of out-of-memory errors.",
        ),
    )


class HPUWarmupStep(Record):
    """Gaudi compiles one shape, and what is free before it (worker/hpu_model_runner.py; vllm-gaudi)."""

    step: str
    """Prompt, Decode or Unified CFG; `Graph/` before it where the graph is captured."""
    done: int
    """Number of the shape."""
    total: int
    """Shapes to do."""
    free_gib: Size
    """Free device memory."""

    templates = (
        Template(
            "[Warmup][{step}][{done}/{total}] batch_size:{_} {_}:{_} free_mem:{free_gib}",
            versions=">=0.6.4,<0.10.0",
            example="[Warmup][Prompt][1/24] batch_size:4 seq_len:1024 free_mem:79.16 GiB",
        ),
        Template(
            "[Warmup][{step}][{done}/{total}] query_len:{_} shared_blocks:{_} unique_blocks:{_} ({_}) free_mem:{free_gib}",
            versions="",
            source="vllm-gaudi",
            example="[Warmup][Unified CFG][2/375] query_len:2048 shared_blocks:256 unique_blocks:2890 (causal) free_mem:11.16"
            " GiB",
        ),
    )


class HPUGraphs(Record):
    """Graphs of one kind captured on Gaudi (worker/hpu_model_runner.py)."""

    step: Word
    """Prompt or Decode."""
    graphs: int
    """Graphs captured."""
    used_gib: Size
    """Device memory they take."""

    templates = (
        Template(
            "Graph/{step} captured:{graphs} ({_}%) used_mem:{used_gib} buckets:{_}",
            versions=">=0.6.4,<0.10.0",
            example="Graph/Prompt captured:24 (100.0%) used_mem:14.98 GiB buckets:[(1, 128), (1, 256)]",
        ),
    )


class HPUWarmup(Record):
    """Warm-up of all shapes finished: Gaudi's counterpart of graph capture (worker/hpu_model_runner.py)."""

    seconds: float
    """Time taken."""
    allocated_gib: Size
    """Device memory taken."""

    templates = (
        Template(
            "Warmup finished in {seconds} secs, allocated {allocated_gib} of device memory",
            versions=">=0.6.4,<0.10.0",
            example="Warmup finished in 54 secs, allocated 5.312 GiB of device memory",
        ),
    )


class ModelBytes(Record):
    """Weights of a compiled model; the label says GB and means GiB (vllm-rbln, v1/worker/rbln_worker.py)."""

    gib: GiB
    """Weights."""

    templates = (
        Template("n_model_bytes = {gib} GB", versions="", source="vllm-rbln", example="n_model_bytes = 14.96 GB"),
    )


class AvailableEstimate(Record):
    """Memory a Rebellions device is reckoned to have left (vllm-rbln, v1/worker/rbln_worker.py)."""

    gib: GiB
    """Memory."""

    templates = (
        Template(
            "available_memory_estimate = {gib} GiB",
            versions="",
            source="vllm-rbln",
            example="available_memory_estimate = 9.41 GiB",
        ),
    )


class AllocatedCache(Record):
    """The KV cache as allocated on a Rebellions device (vllm-rbln)."""

    blocks: int
    """Blocks."""
    gib: GiB | None = None
    """Memory."""
    tokens: int | None = None
    """Tokens after the cache was resized: replaces the figure printed before."""

    templates = (
        Template(
            "KV cache initialized: blocks={blocks}, groups={_}, tensors={_}, total={gib} GiB",
            versions="",
            source="vllm-rbln",
            example="KV cache initialized: blocks=1024, groups=1, tensors=32, total=8.00 GiB",
        ),
        Template(
            "GPU KV cache size: {tokens:,} tokens (num_blocks={blocks}, after the dynamic KV resize)",
            versions="",
            source="vllm-rbln",
            example="GPU KV cache size: 1,048,576 tokens (num_blocks=1024, after the dynamic KV resize)",
        ),
    )
