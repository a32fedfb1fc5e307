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
            " (running requests reading from host).",
            versions=">=0.32.0",
            example="HiSparse steady-state maximum concurrency for 131,072 tokens per request: 8.52x (running requests"
            " reading from host).",
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
            example="cpu_bytes_to_use_per_rank (8.00 GB) != cpu_bytes_to_use/world_size (16.00 GB). Using per-rank"
            " value.",
        ),
    )


class OffloadTier(Record):
    """Storage of a KV offload: tiers, disks, blocks registered."""

    blocks: int | None = None
    """Blocks."""
    size_gib: GiB | None = None
    """Size. The label GB means GiB."""
    tiers: int | None = None
    """Tiers behind host memory."""
    seconds: float | None = None
    """Time taken."""

    templates = (
        Template(
            "DiskBackend: path={_}, slots={blocks}, total={size_gib} GB, buf={_}x{_} bytes (page_cache={_})",
            versions=">=0.28.0",
            example="DiskBackend: path=/mnt/nvme/kv_offload, slots=32768, total=64.00 GB, buf=64x2097152 bytes"
            " (page_cache=False)",
        ),
        Template(
            "Created TieringOffloadingManager with primary tier ({_}, {blocks} blocks) and {tiers} secondary tier(s)",
            versions=">=0.22.0,<0.30.0",
            example="Created TieringOffloadingManager with primary tier (lru, 8192 blocks) and 1 secondary tier(s)",
        ),
        Template(
            "MADV_POPULATE_WRITE loop: {blocks} blocks in {seconds} s",
            versions=">=0.20.0,<0.30.0",
            example="MADV_POPULATE_WRITE loop: 8192 blocks in 3.417 s",
        ),
        Template(
            "NixlTransport {_}: registered {blocks} blocks",
            versions=">=0.25.0",
            example="NixlTransport 6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23: registered 8192 blocks",
        ),
        Template(
            "EC consumer: cache full for mm_hash={_} ({blocks} blocks); deferring",
            versions=">=0.30.0",
            example="EC consumer: cache full for mm_hash=9f2c4b7a1d5e8f03 (12 blocks); deferring",
        ),
        Template(
            "Using Mooncake custom memory pool: {_}",
            versions=">=0.31.0",
            example="Using Mooncake custom memory pool: NVLINK",
        ),
        Template(
            "Registering packed KV cache: total_size={size_gib:bytes}, block_stride={_}, num_blocks={blocks},"
            " num_regions=1",
            versions=">=0.24.0,<0.29.0",
            example="Registering packed KV cache: total_size=15921577984, block_stride=2097152, num_blocks=7592,"
            " num_regions=1",
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
    block_size_tokens: int | None = None
    """Tokens of one block, as the attention kernel has it and as transfers use it."""
    configured_block_size_tokens: int | None = None
    """Tokens of one block, as configured."""
    threshold_tokens: int | None = None
    """Below so many tokens the KV cache is computed again, not fetched."""
    seconds: float | None = None
    """Time after which unused blocks are released."""

    templates = (
        Template(
            "MooncakeConnector setting KV cache layout to {layout} for heterogeneous TP-safe KV transfer.",
            versions=">=0.19.0",
            example="MooncakeConnector setting KV cache layout to HND for heterogeneous TP-safe KV transfer.",
        ),
        Template(
            "NixlConnector setting KV cache layout to {layout} for better xfer performance.",
            versions=">=0.10.1",
            example="NixlConnector setting KV cache layout to HND for better xfer performance.",
        ),
        Template(
            "NixlConnector detected. Setting KV cache layout to {layout} for better xfer performance.",
            versions=">=0.9.1,<0.10.1",
            example="NixlConnector detected. Setting KV cache layout to HND for better xfer performance.",
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
            "Unable to detect current VLLM config. Defaulting to {layout} kv cache layout.",
            versions=">=0.9.1,<0.10.1",
            example="Unable to detect current VLLM config. Defaulting to NHD kv cache layout.",
        ),
        Template(
            "Unable to detect current VLLM config. Fallback to default kv cache layout.",
            versions=">=0.10.1",
            example="Unable to detect current VLLM config. Fallback to default kv cache layout.",
        ),
        Template(
            "Mooncake Store TP sharding is using the {layout} (NHC) KV cache layout, which creates many transfer"
            " segments and may significantly reduce PUT/GET performance. Use LBHNC (HNC) when supported by the"
            " attention backend.",
            versions=">=0.30.0",
            example="Mooncake Store TP sharding is using the LBNHC (NHC) KV cache layout, which creates many transfer"
            " segments and may significantly reduce PUT/GET performance. Use LBHNC (HNC) when supported by the"
            " attention backend.",
        ),
        Template(
            "KV cache block_size={block_size_tokens} differs from config block_size={configured_block_size_tokens};"
            " using actual tensor shape (attention backend override).",
            versions=">=0.28.0",
            example="KV cache block_size=16 differs from config block_size=128; using actual tensor shape (attention"
            " backend override).",
        ),
        Template(
            "User-specified logical block size ({configured_block_size_tokens}) does not match physical kernel block"
            " size ({block_size_tokens}). Using the latter.",
            versions=">=0.11.1",
            example="User-specified logical block size (128) does not match physical kernel block size (64). Using the"
            " latter.",
        ),
        Template(
            "Post-processing device kv cache on receive by converting block_size with {_}x bigger[[ and permuting"
            " layout from HND to NHD]].",
            versions=">=0.14.0",
            example="Post-processing device kv cache on receive by converting block_size with 4x bigger and permuting"
            " layout from HND to NHD.",
        ),
        Template(
            "Post-processing device kv cache on receive by permuting layoutfrom HND to NHD.",
            versions=">=0.14.0",
            example="Post-processing device kv cache on receive by permuting layoutfrom HND to NHD.",
        ),
        Template(
            "Post-processing device kv cache on receive by zeroing untransferred blocks.",
            versions=">=0.27.0",
            example="Post-processing device kv cache on receive by zeroing untransferred blocks.",
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
            "Bidirectional KV transfer is enabled and the kv recompute threshold is set to {threshold_tokens}"
            " tokens[[.KV blocks on D are released after a TTL of {seconds} seconds.]]",
            versions=">=0.21.0",
            example="Bidirectional KV transfer is enabled and the kv recompute threshold is set to 64 tokens.KV blocks"
            " on D are released after a TTL of 480 seconds.",
        ),
        Template(
            "UMBP loads asynchronously for models with several KV cache groups, Mamba-style or sparse-attention"
            " indexer layers; load_async=false is ignored",
            versions=">=0.33.0",
            example="UMBP loads asynchronously for models with several KV cache groups, Mamba-style or"
            " sparse-attention indexer layers; load_async=false is ignored",
        ),
        Template(
            "SimpleCPU external lookup requires scheduler-block-aligned local tokens, got {_} tokens with scheduler"
            " block size {_}.",
            versions=">=0.30.0",
            example="SimpleCPU external lookup requires scheduler-block-aligned local tokens, got 2011 tokens with"
            " scheduler block size 16.",
        ),
    )
