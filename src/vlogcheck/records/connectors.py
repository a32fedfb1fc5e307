"""KV connectors and offload tiers at start: pools, tiers, layouts."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["HiSparseConcurrency", "OffloadPoolOverridden", "OffloadTier", "TransferLayout"]


class HiSparseConcurrency(Record):
    """Requests that fit when running ones read their KV cache from the host (HiSparse)."""

    max_model_len: int
    """Request length in tokens."""
    max_concurrency: float
    """Requests of that length that fit."""

    templates = (
        Template(
            "HiSparse steady-state maximum concurrency for {max_model_len:,} tokens per request: {max_concurrency}x"
            " ({_}).",
            versions=">=0.32.0",
            example="HiSparse steady-state maximum concurrency for 131,072 tokens per request: 8.5x (16).",
        ),
    )


class OffloadPoolOverridden(Record):
    """The size set per rank disagrees with the total divided by the ranks: the one per rank is used."""

    per_rank_gib: GiB
    """Set per rank. The label GB means GiB."""
    share_gib: GiB
    """Total divided by the ranks."""

    templates = (
        Template(
            "cpu_bytes_to_use_per_rank ({per_rank_gib} GB) != cpu_bytes_to_use/world_size ({share_gib} GB). Using"
            " per-rank value.",
            versions=">=0.19.0",
            example="cpu_bytes_to_use_per_rank (8.5 GB) != cpu_bytes_to_use/world_size (8.5 GB). Using per-rank value.",
        ),
    )


class OffloadTier(Record):
    """Storage of a KV offload: tiers, disks, blocks registered."""

    blocks: int | None = None
    """Blocks."""
    size_gib: GiB | None = None
    """Size. The label GB means GiB."""

    templates = (
        Template(
            "DiskBackend: path={_}, slots={blocks}, total={size_gib} GB, {_}",
            versions=">=0.28.0",
            example="DiskBackend: path=16, slots=4096, total=8.5 GB, 16",
        ),
        Template(
            "Created TieringOffloadingManager with primary tier ({_}, {blocks} blocks) and {_} secondary tier(s)",
            versions=">=0.22.0,<0.30.0",
            example="Created TieringOffloadingManager with primary tier (16, 4096 blocks) and 16 secondary tier(s)",
        ),
        Template(
            "NixlTransport {_}: registered {blocks} blocks",
            versions=">=0.25.0",
            example="NixlTransport 16: registered 4096 blocks",
        ),
        Template(
            "EC consumer: cache full for mm_hash={_} ({blocks} blocks); deferring",
            versions=">=0.30.0",
            example="EC consumer: cache full for mm_hash=16 (4096 blocks); deferring",
        ),
        Template(
            "Using Mooncake custom memory pool: {_}",
            versions=">=0.31.0",
            example="Using Mooncake custom memory pool: 16",
        ),
        Template(
            "Registering packed KV cache: total_size={_}, block_stride={_}, num_blocks={blocks}, num_regions=1",
            versions=">=0.24.0,<0.29.0",
            example="Registering packed KV cache: total_size=16, block_stride=16, num_blocks=4096, num_regions=1",
        ),
        Template(
            "Detected prefix caching disabled, disabling CPU offload since it requires prefix caching.",
            versions=">=0.19.0",
            example="Detected prefix caching disabled, disabling CPU offload since it requires prefix caching.",
        ),
    )


class TransferLayout(Record):
    """A KV connector sets or reports the layout of the KV cache."""

    layout: Word | None = None
    """NHD, HND, LBHNC and the like."""

    templates = (
        Template(
            "{_} setting KV cache layout to {layout} for {_} KV transfer.",
            versions=">=0.19.0",
            example="MooncakeConnector setting KV cache layout to HND for MooncakeConnector KV transfer.",
        ),
        Template(
            "{_}etting KV cache layout to {layout} for better xfer performance.",
            versions=">=0.9.1",
            example="NixlConnector setting KV cache layout to HND for better xfer performance.",
        ),
        Template(
            "Detected kv cache layout {layout}",
            versions=">=0.10.1",
            example="Detected kv cache layout HND",
        ),
        Template(
            "Connectors do not specify a kv cache layout, defaulting to {layout}.",
            versions=">=0.10.1,<0.29.0",
            example="Connectors do not specify a kv cache layout, defaulting to NHD.",
        ),
        Template(
            "Unable to detect current VLLM config. Default{_} kv cache layout.",
            versions=">=0.9.1,<0.10.1",
            example="Unable to detect current VLLM config. Defaulting to NHD kv cache layout.",
        ),
        Template(
            "Unable to detect current VLLM config. Fallback to default kv cache layout.",
            versions=">=0.10.1",
            example="Unable to detect current VLLM config. Fallback to default kv cache layout.",
        ),
        Template(
            "Mooncake Store TP sharding is using the {layout} (NHC) KV cache layout, {_}",
            versions=">=0.30.0",
            example="Mooncake Store TP sharding is using the LBNHC (NHC) KV cache layout, 16",
        ),
        Template(
            "KV cache block_size={_} differs from config block_size={_}; using actual tensor shape (attention"
            " backend override).",
            versions=">=0.28.0",
            example="KV cache block_size=16 differs from config block_size=16; using actual tensor shape (attention"
            " backend override).",
        ),
        Template(
            "User-specified logical block size ({_}) does not match physical kernel block size ({_}). Using the"
            " latter.",
            versions=">=0.11.1",
            example="User-specified logical block size (16) does not match physical kernel block size (16). Using"
            " the latter.",
        ),
        Template(
            "Post-processing device kv cache on receive by {_}",
            versions=">=0.14.0",
            example="Post-processing device kv cache on receive by 16",
        ),
        Template(
            "Hybrid Memory Allocator is enabled with NIXL",
            versions=">=0.18.0",
            example="Hybrid Memory Allocator is enabled with NIXL",
        ),
        Template(
            "Setting UCX_RCACHE_MAX_UNRELEASED to '1024' to avoid a rare memory leak in UCX when using NIXL.",
            versions=">=0.15.0",
            example="Setting UCX_RCACHE_MAX_UNRELEASED to '1024' to avoid a rare memory leak in UCX when using NIXL.",
        ),
        Template(
            "Bidirectional KV transfer is enabled and the kv recompute threshold is set to {_} tokens{_}",
            versions=">=0.21.0",
            example="Bidirectional KV transfer is enabled and the kv recompute threshold is set to 16 tokens16",
        ),
        Template(
            "UMBP loads asynchronously for models with several KV cache groups, {_}",
            versions=">=0.33.0",
            example="UMBP loads asynchronously for models with several KV cache groups, 16",
        ),
        Template(
            "SimpleCPU external lookup requires scheduler-block-aligned local tokens, got {_} tokens with scheduler"
            " block size {_}.",
            versions=">=0.30.0",
            example="SimpleCPU external lookup requires scheduler-block-aligned local tokens, got 16 tokens with"
            " scheduler block size 16.",
        ),
    )
