"""Memory beside weights and KV cache: work spaces, staging buffers, state slots, what the allocator holds."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = [
    "AllocatorReading",
    "CheckpointCacheReleased",
    "ExtraBuffer",
    "MambaBlocksTooFew",
    "WeightCacheMemory",
    "WorkspaceResized",
]


class WorkspaceResized(Record):
    """A scratch buffer shared by kernels grew after the profile (v1/worker/workspace.py, VLLM_DEBUG_WORKSPACE)."""

    size_gib: GiB
    """Its size now. The label MB means MiB."""
    before_gib: GiB | None = None
    """Its size before."""
    total_gib: GiB | None = None
    """Its size for all micro-batches together."""

    templates = (
        Template(
            "[WORKSPACE DEBUG] Resized workspace from '{_}': {before_gib:MiB} MB -> {size_gib:MiB} MB ({_} ubatches,"
            " total memory {total_gib:MiB} MB)",
            versions=">=0.13.0,<0.20.0",
            example="[WORKSPACE DEBUG] Resized workspace from 'flashmla_sparse.py:612:_forward_bf16_kv': 320.00 MB ->"
            " 512.00 MB (2 ubatches, total memory 1024.00 MB)",
        ),
        Template(
            "[WORKSPACE DEBUG] Resized workspace from '{_}': {before_gib:MiB} MB -> {size_gib:MiB} MB (ubatch {_}[[,"
            " lane {_}]])",
            versions=">=0.20.0",
            example="[WORKSPACE DEBUG] Resized workspace from 'flashmla_sparse.py:612:_forward_bf16_kv': 320.00 MB ->"
            " 512.00 MB (ubatch 0, lane 0)",
        ),
        Template(
            "TokenSpeed MLA decode workspace: {size_gib} GiB",
            versions=">=0.32.0",
            example="TokenSpeed MLA decode workspace: 0.50 GiB",
        ),
    )


class ExtraBuffer(Record):
    """A buffer of device or host memory beside weights and KV cache."""

    size_gib: GiB | None = None
    """Its size, where the unit is binary."""
    size_mb: float | None = None
    """Its size in units of 1e6 bytes."""
    size_gb: float | None = None
    """Its size in units of 1e9 bytes."""
    purpose: str
    """What it is for."""

    templates = (
        Template(
            "cudaHostRegister {size_mb} MB",
            versions=">=0.26.0",
            example="cudaHostRegister 536.87 MB",
            values={"purpose": "encoder outputs"},
        ),
        Template(
            "FlyDSL _SegmBufPool: allocated single-bucket shape=(Hk={_}, Hq={_}, P={_}, QG={_}, D={_}, dtype={_})"
            " B_bucket={_} (covers all captured + eager B's). VRAM = {size_gib:.1MiB} MiB / shape.",
            versions=">=0.28.0",
            example="FlyDSL _SegmBufPool: allocated single-bucket shape=(Hk=8, Hq=64, P=16, QG=8, D=128,"
            " dtype=torch.bfloat16) B_bucket=256 (covers all captured + eager B's). VRAM = 132.0 MiB / shape.",
            values={"purpose": "attention decode"},
        ),
        Template(
            "FlyDSL UltraQuant buffer pool allocated shape=(Hk={_}, Hq={_}, P={_}, QG={_}, D={_}, dtype={_})"
            " B_bucket={_}. VRAM = {size_gib:.1MiB} MiB / shape.",
            versions=">=0.32.0",
            example="FlyDSL UltraQuant buffer pool allocated shape=(Hk=8, Hq=64, P=16, QG=8, D=128,"
            " dtype=torch.bfloat16) B_bucket=256. VRAM = 132.0 MiB / shape.",
            values={"purpose": "attention decode"},
        ),
        Template(
            "Allocated the KDA RecoverSSM verify records: {size_gib} GiB in total for {_} requests ({_} MiB per"
            " request).",
            versions=">=0.33.0",
            example="Allocated the KDA RecoverSSM verify records: 1.50 GiB in total for 256 requests (6.00 MiB per"
            " request).",
            values={"purpose": "state of speculative steps"},
        ),
        Template(
            "MiniMax M3 indexer CP: {size_gib:.0KiB} KiB candidate buffer per rank mapped over {_} ranks"
            " [owned_heads={_}, rows={_}, topk={_}, generations=2]",
            versions=">=0.33.0",
            example="MiniMax M3 indexer CP: 2048 KiB candidate buffer per rank mapped over 4 ranks [owned_heads=1,"
            " rows=1024, topk=16, generations=2]",
            values={"purpose": "sparse attention candidates"},
        ),
        Template(
            "Allocating {size_mb} MB of device memory to buffers to load {_} layers. This extra memory usage can be"
            " avoided by ordering weights by their parent layer when reloading.",
            versions=">=0.21.0",
            example="Allocating 469.8 MB of device memory to buffers to load ['MergedColumnParallelLinear',"
            " 'QKVParallelLinear'] layers. This extra memory usage can be avoided by ordering weights by their parent"
            " layer when reloading.",
            values={"purpose": "reloading weights"},
        ),
        Template(
            "RoutedExpertsManager CPU buffer: {size_gb} GB (slots={_}, layers={_}, top_k={_}, dtype={_})",
            versions=">=0.22.0,<0.31.0",
            example="RoutedExpertsManager CPU buffer: 0.40 GB (slots=524288, layers=48, top_k=8, dtype=uint16)",
            values={"purpose": "routed experts"},
        ),
        Template(
            "Routing experts {purpose} allocated. shape={_}, size={size_gib:MiB} MB",
            versions=">=0.21.0,<0.22.0",
            example="Routing experts device buffer allocated. shape=(48, 8192, 8), size=12.00 MB",
        ),
        Template(
            "[StaticBufferPool] Allocated {_} unique (name, shape, stride, dtype), {_} slots each, total {size_gb} GB",
            versions=">=0.17.0",
            example="[StaticBufferPool] Allocated 4 unique (name, shape, stride, dtype), 1 slots each, total 0.8724 GB",
            values={"purpose": "weights fetched from the host"},
        ),
        Template(
            "Created EC mmap file {_} ({size_gib:MiB} MiB)",
            versions=">=0.26.0",
            example="Created EC mmap file /dev/shm/vllm_ec_6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23.mmap (512.00 MiB)",
            values={"purpose": "encoder outputs"},
        ),
        Template(
            "ROCm segmented attention tuning plan: workloads={_} missing={_} pruned={_} tp_rank={_}/{_} assigned={_}"
            " scratch_budget={size_gib:.0MiB} MiB cache_budget={_}",
            versions=">=0.32.0",
            example="ROCm segmented attention tuning plan: workloads=96 missing=24 pruned=8 tp_rank=0/8 assigned=3"
            " scratch_budget=4096 MiB cache_budget=268435456",
            values={"purpose": "attention tuning"},
        ),
        Template(
            "[RDT-PLAN] pre-registered {_} receive slots ({_} MiB each) + serve rings on {_} producer(s) {_}",
            versions=">=0.29.0",
            example="[RDT-PLAN] pre-registered 2 receive slots (1024 MiB each) + serve rings on 2 producer(s) [1024,"
            " 1024]",
            values={"purpose": "weight transfer"},
        ),
        Template(
            "[RDT-RING] active_pulls={_} slots={_} presize={size_gib}GiB",
            versions=">=0.29.0",
            example="[RDT-RING] active_pulls=2 slots=2 presize=1.00GiB",
            values={"purpose": "weight transfer"},
        ),
        Template(
            "Sparse MLA top-k mask workspace ({size_gib:.0MiB} MiB) is too small for some prefill batches; those fall"
            " back to slower sparse MQA.",
            versions=">=0.28.0",
            example="Sparse MLA top-k mask workspace (256 MiB) is too small for some prefill batches; those fall back"
            " to slower sparse MQA.",
            values={"purpose": "sparse attention mask"},
        ),
        Template(
            "Media cache enabled at {_} (max {size_gib:.0MiB} MB, TTL {_} hours)",
            versions=">=0.20.0",
            example="Media cache enabled at /var/cache/vllm/media (max 5120 MB, TTL 24.0 hours)",
            values={"purpose": "downloaded media"},
        ),
        Template(
            "Flashinfer max size: {size_gib:.0MiB} MB,Maximal number of tokens used by Flashinfer Allreduce Fusion:"
            " {_}",
            versions=">=0.11.1",
            example="Flashinfer max size: 64 MB,Maximal number of tokens used by Flashinfer Allreduce Fusion: 8192",
            values={"purpose": "all-reduce"},
        ),
        Template(
            "Custom quick allreduce: min size override = {size_gib:.0MiB} MB",
            versions=">=0.22.0",
            example="Custom quick allreduce: min size override = 16 MB",
            values={"purpose": "all-reduce"},
        ),
        Template(
            "Created shared memory buffer '{_}' with shape {_}",
            versions=">=0.14.0,<0.21.0",
            example="Created shared memory buffer 'vllm_routed_experts_buffer_af31b2_0' with shape (524288, 48, 8)",
            values={"purpose": "routed experts"},
        ),
    )


class CheckpointCacheReleased(Record):
    """Memory of the host's page cache that held checkpoint files was given back."""

    gib: GiB
    """Given back."""

    templates = (
        Template(
            "Released {gib} GiB of checkpoint page cache in {_}",
            versions=">=0.33.0",
            example="Released 14.99 GiB of checkpoint page cache in /models/Qwen3-8B",
        ),
        Template(
            "Released {gib}GiB of cached device memory under memory pressure",
            versions=">=0.24.0",
            example="Released 1.25GiB of cached device memory under memory pressure",
        ),
    )


class WeightCacheMemory(Record):
    """A daemon that keeps weights between starts: its device memory (model_loader/weight_cache/daemon.py)."""

    allocated_gib: GiB | None = None
    """Allocated."""
    reserved_gib: GiB | None = None
    """Reserved by the allocator."""
    freed_gib: GiB | None = None
    """Given back."""

    templates = (
        Template(
            "Weight cache {_} daemon rank {_} loaded model ({allocated_gib} GiB allocated, {reserved_gib} GiB"
            " reserved)",
            versions=">=0.32.0",
            example="Weight cache target daemon rank 0 loaded model (15.27 GiB allocated, 15.41 GiB reserved)",
        ),
        Template(
            "Weight cache {_} daemon rank {_} released startup resources ({freed_gib} GiB freed)",
            versions=">=0.33.0",
            example="Weight cache target daemon rank 0 released startup resources (1.32 GiB freed)",
        ),
    )


class AllocatorReading(Record):
    """What torch's allocator holds, printed before an error (0.11) or by a plug-in."""

    allocated_gib: GiB | None = None
    """Allocated."""
    reserved_gib: GiB | None = None
    """Reserved."""

    templates = (
        Template(
            "Allocated: {allocated_gib} GiB",
            versions=">=0.11.0,<0.11.1",
            example="Allocated: 70.12 GiB",
        ),
        Template(
            "Reserved: {reserved_gib} GiB",
            versions=">=0.11.0,<0.11.1",
            example="Reserved: 77.46 GiB",
        ),
        Template(
            "torch reserved memory: {reserved_gib} GiB, torch allocated memory: {allocated_gib} GiB",
            versions=">=0.23.0",
            example="torch reserved memory: 77.46 GiB, torch allocated memory: 70.12 GiB",
            source="vllm-ascend",
        ),
    )


class MambaBlocksTooFew(Record):
    """The state slots are fewer than the requests that may run at once (config/compilation.py)."""

    mamba_blocks: int
    """Slots there are."""
    max_num_seqs: int | None = None
    """Requests asked for, where that refused the start."""
    max_capture_size: int | None = None
    """The largest graph from now on."""

    templates = (
        Template(
            "max_num_seqs ({max_num_seqs}) exceeds available Mamba cache blocks ({mamba_blocks}).{_}",
            versions=">=0.20.0",
            example="max_num_seqs (1024) exceeds available Mamba cache blocks (412). Each decode sequence requires one"
            " Mamba cache block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most 412 or"
            " increase gpu_memory_utilization.",
        ),
        Template(
            "Capping cudagraph capture sizes from max {_} to {max_capture_size} to fit Mamba cache blocks"
            " ({mamba_blocks} blocks available). This limits the maximum batch size that can use CUDA graphs. To"
            " increase this limit, reduce max_num_seqs or increase available GPU memory.",
            versions=">=0.18.0,<0.20.0",
            example="Capping cudagraph capture sizes from max 512 to 408 to fit Mamba cache blocks (412 blocks"
            " available). This limits the maximum batch size that can use CUDA graphs. To increase this limit, reduce"
            " max_num_seqs or increase available GPU memory.",
        ),
        Template(
            "No valid cudagraph capture sizes remain after capping to Mamba cache blocks ({mamba_blocks}). The"
            " smallest capture size was {_}. Disabling cudagraph capture. Consider reducing max_num_seqs or increasing"
            " available GPU memory.",
            versions=">=0.18.0,<0.20.0",
            example="No valid cudagraph capture sizes remain after capping to Mamba cache blocks (3). The smallest"
            " capture size was 8. Disabling cudagraph capture. Consider reducing max_num_seqs or increasing available"
            " GPU memory.",
        ),
    )
