"""Host memory: the CPU back end's KV cache, KV offload pools, weights kept on the host, sleep mode."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "CPUKVCache",
    "HiSparsePools",
    "MappedOffloadFile",
    "OffloadPool",
    "OffloadReserve",
    "OffloadTensors",
    "OffloadedWeights",
]


class CPUKVCache(Record):
    """The CPU back end's KV cache: by a variable, by default, or from the node's memory (v1/worker/cpu_worker.py)."""

    gib: GiB
    """Memory for the KV cache. The old label GB is GiB too."""
    total_gib: GiB | None = None
    """Memory of the node."""
    node: Word | None = None
    """NUMA node."""
    requested_gib: GiB | None = None
    """Memory the worker may take in all."""
    consumed_gib: GiB | None = None
    """Memory other things than the KV cache take."""

    templates = (
        Template(
            "Environment variable VLLM_CPU_KVCACHE_SPACE (G[[i]]B) for CPU backend is not set, using {gib} by default.",
            versions=">=0.4.0.post1,<0.13.0",
            example="Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU backend is not set, using 4 by default.",
        ),
        Template(
            "Environment variable VLLM_OPENVINO_KVCACHE_SPACE (GB) for OpenVINO backend is not set, using {gib} by"
            " default.",
            versions=">=0.5.1,<0.8.2",
            example="Environment variable VLLM_OPENVINO_KVCACHE_SPACE (GB) for OpenVINO backend is not set, using 4 by"
            " default.",
        ),
        Template(
            "VLLM_CPU_KVCACHE_SPACE not set. Using {gib} GiB for KV cache.",
            versions=">=0.13.0,<0.20.0",
            example="VLLM_CPU_KVCACHE_SPACE not set. Using 31.25 GiB for KV cache.",
        ),
        Template(
            "Auto set ({gib}/{total_gib}) GiB for KV cache on node {node}, with {requested_gib} GiB requested memory"
            " for the"
            " worker. {consumed_gib} GiB memory was consumed by non-kv usages.",
            versions=">=0.20.0",
            example="Auto set (20.11/62.5) GiB for KV cache on node 0, with 31.25 GiB requested memory for the"
            " worker. 11.14"
            " GiB memory was consumed by non-kv usages.",
        ),
        Template(
            "Explicitly set ({gib}/{total_gib}) GiB for KV cache on node {node}.",
            versions=">=0.20.0",
            example="Explicitly set (4.0/62.5) GiB for KV cache on node 0.",
        ),
    )


class OffloadPool(Record):
    """A pool of KV blocks outside the device. The label says GB; the value is GiB (v1/simple_kv_offload/*)."""

    gib: GiB
    """Size of the pool of this rank."""
    blocks: int | None = None
    """Blocks it holds."""
    medium: Word
    """`cpu` or `disk`."""
    unit_label: Word
    """The unit the line claims."""

    templates = (
        Template(
            "SimpleCPUOffloadConnector: role={_}, per_rank={gib} GB, world_size={_}, mode=[[eager]][[lazy]][[,"
            " backend={_}, disk={_}]]",
            versions=">=0.19.0",
            example="SimpleCPUOffloadConnector: role=WORKER, per_rank=8.00 GB, world_size=2, mode=eager, backend=cpu,"
            " disk=none",
            values={"medium": "cpu", "unit_label": "GB"},
        ),
        Template(
            "SimpleCPUOffloadScheduler: Allocating {blocks} CPU blocks ({gib} GB, mode=[[eager]][[lazy]])",
            versions=">=0.19.0,<0.28.0",
            example="SimpleCPUOffloadScheduler: Allocating 4096 CPU blocks (8.00 GB, mode=lazy)",
            values={"medium": "cpu", "unit_label": "GB"},
        ),
        Template(
            "SimpleCPUOffloadScheduler: Allocating {blocks} offload blocks ({gib} GB, mode=[[eager]][[lazy]],"
            " backend={medium})",
            versions=">=0.28.0",
            example="SimpleCPUOffloadScheduler: Allocating 4096 offload blocks (8.00 GB, mode=eager, backend=disk)",
            values={"unit_label": "GB"},
        ),
        Template(
            "SimpleCPUOffloadWorker: {_} unique GPU KV tensors, allocating {blocks} CPU blocks ({gib} GB)",
            versions=">=0.19.0,<0.28.0",
            example="SimpleCPUOffloadWorker: 32 unique GPU KV tensors, allocating 4096 CPU blocks (8.00 GB)",
            values={"medium": "cpu", "unit_label": "GB"},
        ),
        Template(
            "SimpleCPUOffloadWorker [CPU]: {_} tensors, {blocks} CPU blocks ({gib} GB)",
            versions=">=0.28.0",
            example="SimpleCPUOffloadWorker [CPU]: 32 tensors, 4096 CPU blocks (8.00 GB)",
            values={"medium": "cpu", "unit_label": "GB"},
        ),
        Template(
            "SimpleCPUOffloadWorker [DISK]: {_} tensors, {blocks} disk slots ({gib} GB)",
            versions=">=0.28.0",
            example="SimpleCPUOffloadWorker [DISK]: 32 tensors, 65536 disk slots (128.00 GB)",
            values={"medium": "disk", "unit_label": "GB"},
        ),
    )


class MappedOffloadFile(Record):
    """A file mapped into memory as offload space; really 1e9 bytes per GB (v1/kv_offload/cpu/*)."""

    size_gb: float
    """Size in units of 1e9 bytes."""
    file: Word | None = None
    """Path of the file."""

    templates = (
        Template(
            "Created mmap file {file} ({size_gb} GB)",
            versions=">=0.20.0",
            example="Created mmap file /dev/shm/vllm_offload_1a2b.mmap (17.18 GB)",
        ),
        Template(
            "Host-registered mmap region rank={_} {size_gb} GB in {_} chunk(s)",
            versions=">=0.32.0",
            example="Host-registered mmap region rank=0 17.18 GB in 1 chunk(s)",
        ),
        Template(
            "cudaHostRegister rank={_} {size_gb} GB[[ in {_} chunk(s)]]",
            versions=">=0.20.0,<0.32.0",
            example="cudaHostRegister rank=0 17.18 GB in 1 chunk(s)",
        ),
        Template(
            "torch.zeros pinned tensor {_} ({size_gb} GB): {_} s",
            versions=">=0.20.0",
            example="torch.zeros pinned tensor 4096×2097152 (8.59 GB): 3.120 s",
        ),
    )


class OffloadReserve(Record):
    """Device memory kept free while experts move between host and device (a fork with tiered experts)."""

    free_gib: GiB
    """Free memory."""
    minimum_gib: GiB
    """What must stay free."""

    templates = (
        Template(
            "Tiered MoE observed HBM reserve: {free_gib} GiB free (minimum {minimum_gib} GiB)",
            versions="",
            source="fork",
            example="Tiered MoE observed HBM reserve: 4.25 GiB free (minimum 3.50 GiB)",
        ),
    )


class OffloadTensors(Record):
    """Tensors the offload worker allocates on the host (v1/kv_offload/worker/cpu_gpu.py)."""

    tensors: int
    """How many."""

    templates = (
        Template("Allocating {tensors} CPU tensors...", versions=">=0.11.0", example="Allocating 32 CPU tensors..."),
    )


class HiSparsePools(Record):
    """Sparse attention with its KV cache on the host: host pool and device pool (v1/hisparse/*)."""

    host_gib: GiB | None = None
    """Host pool."""
    host_blocks: int | None = None
    """Blocks of the host pool."""
    device_gib: GiB | None = None
    """Pool on the device."""
    device_blocks: int | None = None
    """Blocks of the device pool."""
    max_num_seqs: int | None = None
    """Requests the hot cache is laid out for."""

    templates = (
        Template(
            "HiSparse HMA: {host_gib:.1f} GiB host source ({host_blocks} blocks), {device_gib:.1f} GiB shared GPU"
            " indexer/resident/hot pool ({device_blocks} blocks).",
            versions=">=0.30.0",
            example="HiSparse HMA: 128.0 GiB host source (65536 blocks), 22.5 GiB shared GPU indexer/resident/hot pool"
            " (8192 blocks).",
        ),
        Template(
            "Enabled experimental HiSparse HMA hot cache: top_k={_}, device_buffer_size={_} ({_} LRU rows),"
            " max_num_seqs={max_num_seqs}.",
            versions=">=0.30.0",
            example="Enabled experimental HiSparse HMA hot cache: top_k=2048, device_buffer_size=4096 (4096 LRU rows),"
            " max_num_seqs=64.",
        ),
    )


class OffloadedWeights(Record):
    """Weights kept on the host: the weights line does not count them (model_executor/offloader/*)."""

    gib: GiB | None = None
    """Memory on the host. Printed without a unit; it is GiB."""
    saved_gb: float | None = None
    """Device memory saved, in units of 1e9 bytes."""
    buffer_gb: float | None = None
    """Device memory of the buffers weights are fetched into, in units of 1e9 bytes."""

    templates = (
        Template(
            "Total CPU offloaded parameters: {gib}", versions=">=0.17.0", example="Total CPU offloaded parameters: 12.5"
        ),
        Template(
            "[PrefetchOffloader] Initialized {_} modules. Total GPU memory saved: {saved_gb} GB, Static buffer pool:"
            " {buffer_gb} GB (group_size={_}, num_in_group={_}, prefetch_step={_}, mode={_})",
            versions=">=0.17.0",
            example="[PrefetchOffloader] Initialized 16 modules. Total GPU memory saved: 13.9581 GB, Static buffer"
            " pool: 0.8724 GB (group_size=2, num_in_group=1, prefetch_step=1, mode=cpu)",
        ),
        Template(
            "Engram table offloaded to pinned host memory: {_} rows x {_}, {gib} GiB [[per rank]][[shared across DP"
            " replicas]]",
            versions=">=0.30.0",
            example="Engram table offloaded to pinned host memory: 2097152 rows x 512, 1.02 GiB per rank",
        ),
    )
