"""TPU: the lines of tpu-inference and torch-tpu. `gb` and `Gb` in their text mean GiB."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["TPUCompactMamba", "TPUHybridCache", "TPUKVCache", "TPUMemory", "TPUMemoryTooSmall", "TPUMemoryUse"]

_TPU = "tpu-inference"


class TPUMemory(Record):
    """Memory of all local devices of one worker together, and what is left for the KV cache."""

    limit_gib: GiB
    """Memory of the devices in sum."""
    cap_gib: GiB
    """limit × utilization."""
    used_gib: GiB
    """In use."""
    available_gib: GiB
    """Left for the KV cache."""
    connector_reserve_gib: GiB | None = None
    """Kept for a KV connector."""

    templates = (
        Template(
            "Memory statistics | total_hbm_limit_gb={limit_gib}GiB | total_hbm_limit_cap_gb={cap_gib}GiB |"
            " total_hbm_used_gb={used_gib}GiB |[[ kv_connector_hbm_reserve_gb={connector_reserve_gib}GiB |]]"
            " total_hbm_avail_gb={available_gib}GiB",
            versions="",
            source=_TPU,
            example="Memory statistics | total_hbm_limit_gb=127.98GiB | total_hbm_limit_cap_gb=115.18GiB |"
            " total_hbm_used_gb=16.43GiB | total_hbm_avail_gb=98.75GiB",
        ),
    )


class TPUMemoryUse(Record):
    """Memory in use on each device, printed at a step of start-up: pairs of (used, limit) in GiB."""

    step: str
    """Which step."""
    devices: str
    """The pairs, as printed."""

    templates = (
        Template(
            "Init worker | {_} | hbm={devices}GiB[[ |{_}]]",
            versions="",
            source=_TPU,
            example="Init worker | rank=0 | is_first_rank=True | is_driver_worker=True | hbm=[(0.0, 31.25)]GiB"
            " |self.devices=[]",
            values={"step": "worker"},
        ),
        Template(
            "Init model | hbm={devices}GiB",
            versions="",
            source=_TPU,
            example="Init model | hbm=[(15.02, 31.25)]GiB",
            values={"step": "model"},
        ),
        Template(
            "Deleting kv-cache | num_layers={_} | hbm_before={devices}Gb",
            versions=">=0.20.0",
            source=_TPU,
            example="Deleting kv-cache | num_layers=32 | hbm_before=[(28.1, 31.25)]Gb",
            values={"step": "before deleting the KV cache"},
        ),
        Template(
            "KV cache delete complete | hbm_after={devices}Gb",
            versions=">=0.20.0",
            source=_TPU,
            example="KV cache delete complete | hbm_after=[(15.02, 31.25)]Gb",
            values={"step": "after deleting the KV cache"},
        ),
        Template(
            "Reinitializing kv-cache | hbm_before={devices}Gb",
            versions=">=0.20.0",
            source=_TPU,
            example="Reinitializing kv-cache | hbm_before=[(15.02, 31.25)]Gb",
            values={"step": "before a new KV cache"},
        ),
        Template(
            "Memory usage before applying quantization of params: hbm={devices}Gb",
            versions="",
            source=_TPU,
            example="Memory usage before applying quantization of params: hbm=[(15.02, 31.25)]Gb",
            values={"step": "before quantising"},
        ),
        Template(
            "Memory usage after loading in {_}: hbm={devices}Gb",
            versions="<0.20.0",
            source=_TPU,
            example="Memory usage after loading in model.layers.3: hbm=[(4.02, 31.25)]Gb",
            values={"step": "loading"},
        ),
    )


class TPUKVCache(Record):
    """The KV cache as allocated (runner/kv_cache_manager.py)."""

    layers: int
    """Layers."""
    blocks: str | None = None
    """Blocks of each layer group, as printed."""
    dtype: str | None = None
    """Type of an element."""
    devices: str
    """Pairs of (used, limit) in GiB, as printed."""

    templates = (
        Template(
            "Init kv-cache | num_layers={layers} | shape=(num_blocks, {_}) | num_blocks={blocks} | sharding={_} |"
            " dtype={dtype} | hbm={devices}Gb",
            versions="<0.20.0",
            source=_TPU,
            example="Init kv-cache | num_layers=32 | shape=(num_blocks, (128, 16, 128)) | num_blocks=[4096] |"
            " sharding=NamedSharding() | dtype=bfloat16 | hbm=[(28.1, 31.25)]Gb",
        ),
        Template(
            "Init kv-cache | num_total_layers={layers} | num_blocks={blocks} | {_}attn_dtype={dtype} | {_}hbm={devices}Gb",
            versions=">=0.18.0",
            source=_TPU,
            example="Init kv-cache | num_total_layers=2 | num_blocks=[4096, 4096] | regular_attn_layers=2 |"
            " regular_attn_dtype=bfloat16 | hbm=[(28.1, 31.25)]Gb",
        ),
        Template(
            "Init kv-cache | num_total_layers={layers} | num_blocks={blocks} | {_}hbm={devices}Gb",
            versions=">=0.18.0",
            source=_TPU,
            example="Init kv-cache | num_total_layers=2 | num_blocks=[4096, 4096] | mamba_layers=2 | hbm=[(28.1, 31.25)]Gb",
        ),
        Template(
            "Init kv-cache | shape={layers} * {_} | sharding={_} | dtype={dtype} | hbm={devices}Gb",
            versions="<0.11.0",
            source=_TPU,
            example="Init kv-cache | shape=32 * (4096, 128, 16, 128) | sharding=NamedSharding() | dtype=bfloat16 |"
            " hbm=[(28.1, 31.25)]Gb",
        ),
    )


class TPUCompactMamba(Record):
    """Hybrid models: attention blocks and state slots share the memory (runner/kv_cache_manager.py)."""

    attention_blocks: int
    """Attention blocks; they replace num_gpu_blocks."""
    mamba_blocks: int
    """State slots."""
    total_gib: GiB
    """Memory of both."""
    available_gib: GiB
    """Memory there is."""

    templates = (
        Template(
            "Compact-mamba KV cache{_}: num_gpu_blocks_override={attention_blocks} (attn{_}),"
            " _mamba_num_blocks={mamba_blocks}{_}. HBM split: {_} total={total_gib} GiB / avail={available_gib}"
            " GiB.{_}",
            versions=">=0.20.0",
            source=_TPU,
            example="Compact-mamba KV cache: num_gpu_blocks_override=2048 (attn), _mamba_num_blocks=257. HBM split:"
            " attn=12"
            " layers × 2048 blocks × 1048576 B = 24.00 GiB; mamba=36 layers × 257 slots × 2129920 B = 18.35 GiB;"
            " total=42.35 GiB / avail=42.90 GiB.",
        ),
    )


class TPUHybridCache(Record):
    """Hybrid models: one page for all kinds of layers, and the blocks that follow (runner/kv_cache_manager.py)."""

    blocks: int | None = None
    """Blocks; with a page only, they are not decided yet."""
    page_bytes: int | None = None
    """Bytes of one page."""

    templates = (
        Template(
            "Hybrid KV cache layout: num_kv_cache_groups={_}, num_kv_cache_tensors={_}, kv_cache_config.num_blocks={blocks},"
            " duplicate_shared_layers={_}",
            versions=">=0.20.0",
            source=_TPU,
            example="Hybrid KV cache layout: num_kv_cache_groups=4, num_kv_cache_tensors=15, kv_cache_config.num_blocks=9704,"
            " duplicate_shared_layers=True",
        ),
        Template(
            "Hybrid KV cache: padding every layer spec to {page_bytes} bytes ({_}",
            versions=">=0.20.0",
            source=_TPU,
            example="Hybrid KV cache: padding every layer spec to 23289856 bytes (num_attn_groups=1 × attn_page=10485760 +"
            " num_mamba_groups=3 × mamba_unpadded=4268032).",
        ),
        Template(
            "Pure-attention hybrid KV cache: padding every layer spec to {page_bytes} bytes ({_}",
            versions=">=0.20.0",
            source=_TPU,
            example="Pure-attention hybrid KV cache: padding every layer spec to 524288 bytes (max of native sizes [262144,"
            " 524288]).",
        ),
        Template(
            "Hybrid KV cache: setting num_gpu_blocks_override={blocks} {_}",
            versions=">=0.20.0",
            source=_TPU,
            example="Hybrid KV cache: setting num_gpu_blocks_override=945 to align the pools",
        ),
    )


class TPUMemoryTooSmall(Record):
    """Refused to start: weights and the rest take more than utilization × total (worker/tpu_worker.py)."""

    used_gib: GiB
    """In use."""
    cap_gib: GiB
    """limit × utilization."""
    excess_gib: GiB
    """used − cap."""
    gpu_memory_utilization: float
    """Share asked for."""

    templates = (
        Template(
            "total_hbm_used_gb={used_gib}GiB exceeds total_hbm_limit_cap_gb={cap_gib}GiB by {excess_gib}GiB. Please"
            " consider"
            " increasing --gpu-memory-utilization from {gpu_memory_utilization} to a larger value.",
            versions="",
            source=_TPU,
            example="total_hbm_used_gb=29.10GiB exceeds total_hbm_limit_cap_gb=28.12GiB by 0.98GiB. Please consider"
            " increasing"
            " --gpu-memory-utilization from 0.9 to a larger value.",
        ),
    )
