"""KV capacity set or changed by rule: auto-fit, overrides, multipliers, and what the front end is told."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["AttentionFreeBlocks", "AutoFit", "BlocksOverride", "ContextParallelCapacity", "FrontEndBlocks"]


class AutoFit(Record):
    """`--max-model-len auto`: the context chosen to fit the KV cache (v1/core/kv_cache_utils.py)."""

    original_max_model_len: int
    """The model's own longest context in tokens."""
    max_model_len: int | None = None
    """The context from now on in tokens; None where the original one fits."""
    available_gib: GiB | None = None
    """Device memory there is for the KV cache."""
    host_gib: GiB | None = None
    """Host memory there is for it, where it is used."""

    templates = (
        Template(
            "Auto-fit max_model_len: attention-free model, using derived max_model_len={original_max_model_len}",
            versions=">=0.14.0",
            example="Auto-fit max_model_len: attention-free model, using derived max_model_len=8192",
        ),
        Template(
            "Auto-fit max_model_len: full model context length {original_max_model_len} fits in available GPU memory",
            versions=">=0.14.0,<0.32.0",
            example="Auto-fit max_model_len: full model context length 131072 fits in available GPU memory",
        ),
        Template(
            "Auto-fit max_model_len: reduced from {original_max_model_len} to {max_model_len} to fit in available"
            " GPU memory"
            " ({available_gib} GiB available for KV cache)",
            versions=">=0.14.0,<0.32.0",
            example="Auto-fit max_model_len: reduced from 131072 to 44224 to fit in available GPU memory (5.40 GiB"
            " available"
            " for KV cache)",
        ),
        Template(
            "Auto-fit max_model_len: full model context length {original_max_model_len} fits in available KV cache"
            " memory"
            " ({available_gib} GiB {_}[[ + {host_gib} GiB host]])",
            versions=">=0.32.0",
            example="Auto-fit max_model_len: full model context length 131072 fits in available KV cache memory"
            " (40.2 GiB GPU"
            " + 64.0 GiB host)",
        ),
        Template(
            "Auto-fit max_model_len: reduced from {original_max_model_len} to {max_model_len} to fit in available KV"
            " cache"
            " memory ({available_gib} GiB {_}[[ + {host_gib} GiB host]])",
            versions=">=0.32.0",
            example="Auto-fit max_model_len: reduced from 131072 to 44224 to fit in available KV cache memory (5.4"
            " GiB GPU)",
        ),
    )


class BlocksOverride(Record):
    """The number of blocks was set by hand: the profiled memory does not describe the pool."""

    profiled_blocks: int
    """Blocks the profile gave."""
    blocks: int
    """Blocks there will be."""

    templates = (
        Template(
            "Overriding num_gpu_blocks={profiled_blocks} with num_gpu_blocks_override={blocks}",
            versions=">=0.4.1",
            example="Overriding num_gpu_blocks=27896 with num_gpu_blocks_override=512",
        ),
        Template(
            "Replacing profiled num_gpu_blocks={profiled_blocks} with forced_num_gpu_blocks={blocks}",
            versions=">=0.4.0,<0.4.1",
            example="Replacing profiled num_gpu_blocks=27896 with forced_num_gpu_blocks=512",
        ),
    )


class ContextParallelCapacity(Record):
    """Tokens are spread over context-parallel ranks: the KV cache size line counts them all already."""

    cp_world_size: int
    """Ranks they are spread over."""
    pcp_size: int | None = None
    """Prefill context parallel ranks."""
    dcp_size: int | None = None
    """Decode context parallel ranks."""

    templates = (
        Template(
            "Multiplying the GPU KV cache size by the dcp_world_size {cp_world_size}.",
            versions=">=0.10.2,<0.12.0",
            example="Multiplying the GPU KV cache size by the dcp_world_size 2.",
        ),
        Template(
            "Multiplying the GPU KV cache size by the cp_world_size {cp_world_size} (pcp_world_size {pcp_size} *"
            " dcp_world_size {dcp_size}).",
            versions=">=0.12.0,<0.20.1",
            example="Multiplying the GPU KV cache size by the cp_world_size 4 (pcp_world_size 2 * dcp_world_size 2).",
        ),
    )


class FrontEndBlocks(Record):
    """Blocks of one engine as the API server sees them (v1/metrics/loggers.py)."""

    device_blocks: int
    """Blocks of one engine, not the sum."""
    engine: int | None = None
    """Engine index."""
    engine_count: int | None = None
    """Engines the line speaks for."""

    templates = (
        Template(
            "vllm cache_config_info with initialization after num_gpu_blocks is: {device_blocks}",
            versions=">=0.9.0,<0.9.1",
            example="vllm cache_config_info with initialization after num_gpu_blocks is: 27896",
        ),
        Template(
            "Engine {engine}: vllm cache_config_info with initialization after num_gpu_blocks is: {device_blocks}",
            versions=">=0.9.1",
            example="Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 27896",
        ),
        Template(
            "{engine_count} Engines: vllm cache_config_info with initialization after num_gpu_blocks is:"
            " {device_blocks}",
            versions=">=0.11.1",
            example="4 Engines: vllm cache_config_info with initialization after num_gpu_blocks is: 27896",
        ),
    )


class AttentionFreeBlocks(Record):
    """Refused to start: a model without attention needs no KV cache and got blocks (worker/worker.py)."""

    blocks: int
    """Blocks it got."""

    templates = (
        Template(
            "No memory should be allocated for the cache blocks for an attention-free model, but {blocks} blocks are"
            " allocated.",
            versions=">=0.6.3,<0.11.0",
            example="No memory should be allocated for the cache blocks for an attention-free model, but 512 blocks are"
            " allocated.",
        ),
    )
