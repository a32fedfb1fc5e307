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
            " semaphore budget, {decoder_gib} GiB decoder+CUDA-context across {_} API server(s) @ {_} GiB/server); KV"
            " cache memory reduced to {kv_cache_gib} GiB.",
            versions=">=0.25.0",
            example="Reserving 3.0 GiB of GPU memory for frontend multimodal decoding (2.0 GiB raw-frame semaphore"
            " budget, 1.0 GiB decoder+CUDA-context across 2 API server(s) @ 0.5 GiB/server); KV cache memory reduced"
            " to 52.41 GiB.",
        ),
        Template(
            "Initialized multimodal GPU IPC memory pool with {_} bytes for this API process ({reserved_gib} GiB total"
            " budget across {_} API process(es)).",
            versions=">=0.25.0",
            example="Initialized multimodal GPU IPC memory pool with 1073741824 bytes for this API process (2.00 GiB"
            " total budget across 2 API process(es)).",
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
            " cache budget), but only {available_gib} GiB is available for the KV cache. Reduce mm_ipc_gpu_memory_gb[["
            " or hw_decoders]], use a different video backend, or increase gpu_memory_utilization.",
            versions=">=0.25.0",
            example="frontend multimodal GPU decoding reserves 9.0 GiB (8.0 GiB raw-frame budget, 1.0 GiB decoder"
            " cache budget), but only 6.42 GiB is available for the KV cache. Reduce mm_ipc_gpu_memory_gb or"
            " hw_decoders, use a different video backend, or increase gpu_memory_utilization.",
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
            "Insufficient space in {directory}[[ for {_}]]: {needed_gib:.0MiB} MiB required, {free_gib:.0MiB} MiB"
            " free. Increase {_} (e.g. --shm-size or --ipc=host).",
            versions=">=0.27.0",
            example="Insufficient space in /dev/shm for shared-memory allocation: 240 MiB required, 64 MiB free."
            " Increase /dev/shm (e.g. --shm-size or --ipc=host).",
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
    needed_blocks: int | None = None
    """Blocks one request of the longest length needs."""

    templates = (
        Template(
            "HiSparse has no allocatable host blocks.",
            versions=">=0.30.0",
            example="HiSparse has no allocatable host blocks.",
            values={"host_blocks": 0},
        ),
        Template(
            "HiSparse pinned host pool needs ~{needed_gib:.0f} GiB but only {available_gib:.0f} GiB of RAM is"
            " available. Lower the HiSparseConnector host_pool_gib or leave headroom for co-tenants.",
            versions=">=0.30.0",
            example="HiSparse pinned host pool needs ~512 GiB but only 431 GiB of RAM is available. Lower the"
            " HiSparseConnector host_pool_gib or leave headroom for co-tenants.",
        ),
        Template(
            "HiSparse host pool has {host_blocks} blocks but max_model_len needs {needed_blocks}; increase"
            " host_pool_gib.",
            versions=">=0.31.0",
            example="HiSparse host pool has 2048 blocks but max_model_len needs 2050; increase host_pool_gib.",
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
            example="HiSparse: unpinned 128.0 GiB of host pool in 4.2s.",
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
            example="ProcessingCache: size = 0.37 / 8.00 GiB",
        ),
        Template(
            "Calculated size of {_} to be {size_gib} GiB[[ ({_} leaves)]]",
            versions=">=0.8.1",
            example="Calculated size of <class 'vllm.multimodal.inputs.MultiModalKwargsItem'> to be 0.02 GiB (3"
            " leaves)",
        ),
        Template(
            "Skipping multi-modal processor cache insert for an item of {size_gib} GiB because it exceeds"
            " --mm-processor-cache-gb={limit_gib}. The item will be processed uncached; increase"
            " --mm-processor-cache-gb to cache items of this size.",
            versions=">=0.29.0",
            example="Skipping multi-modal processor cache insert for an item of 5.12 GiB because it exceeds"
            " --mm-processor-cache-gb=4.0. The item will be processed uncached; increase --mm-processor-cache-gb to"
            " cache items of this size.",
        ),
    )
