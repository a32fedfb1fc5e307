"""Memory the front end and the host share: media decoding, shared memory, pinned pools, caches of media."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "EmbeddingCacheSize",
    "FrontEndDecoding",
    "FrontEndDecodingTooLarge",
    "HostPoolReleased",
    "HostPoolTooLarge",
    "SharedMemoryTooSmall",
]


class FrontEndDecoding(Record):
    """API servers decode media on the device: memory taken from the KV cache (multimodal/gpu_ipc_memory.py)."""

    reserved_gib: GiB
    """Taken."""
    frames_gib: GiB | None = None
    """For raw frames."""
    decoder_gib: GiB | None = None
    """For decoders and contexts."""
    kv_cache_gib: GiB | None = None
    """Left for the KV cache."""

    templates = (
        Template(
            "Reserving {reserved_gib} GiB of GPU memory for frontend multimodal decoding ({frames_gib} GiB raw-frame"
            " semaphore budget, {decoder_gib} GiB decoder+CUDA-context across {_} API server(s) @ {_} GiB/server);"
            " KV cache memory reduced to {kv_cache_gib} GiB.",
            versions=">=0.25.0",
            example="Reserving 8.5 GiB of GPU memory for frontend multimodal decoding (8.5 GiB raw-frame semaphore"
            " budget, 8.5 GiB decoder+CUDA-context across 16 API server(s) @ 16 GiB/server); KV cache memory reduced"
            " to 8.5 GiB.",
        ),
        Template(
            "Initialized multimodal GPU IPC memory pool with {_} bytes for this API process ({reserved_gib} GiB"
            " total budget across {_} API process(es)).",
            versions=">=0.25.0",
            example="Initialized multimodal GPU IPC memory pool with 16 bytes for this API process (8.5 GiB total"
            " budget across 16 API process(es)).",
        ),
    )


class FrontEndDecodingTooLarge(Record):
    """Refused to start: media decoding would take all memory of the KV cache (v1/worker/gpu_worker.py)."""

    reserved_gib: GiB
    """Asked for."""
    available_gib: GiB
    """There is for the KV cache."""

    templates = (
        Template(
            "frontend multimodal GPU decoding reserves {reserved_gib} GiB ({_} GiB raw-frame budget, {_} GiB decoder"
            " cache budget), but only {available_gib} GiB is available for the KV cache. {_}",
            versions=">=0.25.0",
            example="frontend multimodal GPU decoding reserves 8.5 GiB (16 GiB raw-frame budget, 16 GiB decoder"
            " cache budget), but only 8.5 GiB is available for the KV cache. 16",
        ),
    )


class SharedMemoryTooSmall(Record):
    """Refused to start: /dev/shm of the container is too small (device_communicators/shm_broadcast.py)."""

    directory: Word
    """The file system."""
    needed_gib: GiB
    """Needed."""
    free_gib: GiB
    """Free."""

    templates = (
        Template(
            "Insufficient space in {directory}[[ for {_}]]: {needed_gib:MiB} MiB required, {free_gib:MiB} MiB free."
            " Increase {_} (e.g. --shm-size or --ipc=host).",
            versions=">=0.27.0",
            example="Insufficient space in /dev/shm for 16: 512 MiB required, 512 MiB free. Increase 16 (e.g."
            " --shm-size or --ipc=host).",
        ),
    )


class HostPoolTooLarge(Record):
    """Refused to start: the host pool for sparse attention does not fit (v1/hisparse/*)."""

    needed_gib: GiB | None = None
    """Needed."""
    available_gib: GiB | None = None
    """Free host memory."""
    host_blocks: int | None = None
    """Blocks there are."""
    needed_blocks: str | None = None
    """Blocks one request of the longest length needs, as printed."""

    templates = (
        Template(
            "HiSparse has no allocatable host blocks.",
            versions=">=0.30.0",
            example="HiSparse has no allocatable host blocks.",
            values={"host_blocks": 0},
        ),
        Template(
            "HiSparse pinned host pool needs ~{needed_gib} GiB but only {available_gib} GiB of RAM is available. {_}",
            versions=">=0.30.0",
            example="HiSparse pinned host pool needs ~8.5 GiB but only 8.5 GiB of RAM is available. 16",
        ),
        Template(
            "HiSparse host pool has {host_blocks} blocks but max_model_len needs {needed_blocks}; increase"
            " host_pool_gib.",
            versions=">=0.31.0",
            example="HiSparse host pool has 4096 blocks but max_model_len needs layer 3; increase host_pool_gib.",
        ),
    )


class HostPoolReleased(Record):
    """The host pool for sparse attention was given back (v1/hisparse/runtime.py)."""

    gib: GiB
    """Given back."""
    seconds: float
    """Time taken."""

    templates = (
        Template(
            "HiSparse: unpinned {gib} GiB of host pool in {seconds}s.",
            versions=">=0.30.0",
            example="HiSparse: unpinned 8.5 GiB of host pool in 8.5s.",
        ),
    )


class EmbeddingCacheSize(Record):
    """Host memory of the cache of processed media (multimodal/cache/base.py)."""

    size_gib: GiB
    """Size of the item or the cache."""
    limit_gib: GiB | None = None
    """Its limit."""

    templates = (
        Template(
            "ProcessingCache: size = {size_gib} / {limit_gib} GiB",
            versions=">=0.8.1,<0.10.1",
            example="ProcessingCache: size = 8.5 / 8.5 GiB",
        ),
        Template(
            "Calculated size of {_} to be {size_gib} GiB[[ ({_} leaves)]]",
            versions=">=0.8.1",
            example="Calculated size of 16 to be 8.5 GiB (16 leaves)",
        ),
        Template(
            "Skipping multi-modal processor cache insert for an item of {size_gib} GiB because it exceeds"
            " --mm-processor-cache-gb={limit_gib}. {_}",
            versions=">=0.29.0",
            example="Skipping multi-modal processor cache insert for an item of 8.5 GiB because it exceeds"
            " --mm-processor-cache-gb=8.5. 16",
        ),
    )
