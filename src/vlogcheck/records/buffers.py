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

    templates = (
        Template(
            "[WORKSPACE DEBUG] Resized workspace from '{_}': {before_gib:MiB} MB -> {size_gib:MiB} MB ({_})",
            versions=">=0.13.0",
            example="[WORKSPACE DEBUG] Resized workspace from '16': 512 MB -> 512 MB (16)",
        ),
        Template(
            "TokenSpeed MLA decode workspace: {size_gib} GiB",
            versions=">=0.32.0",
            example="TokenSpeed MLA decode workspace: 8.5 GiB",
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
            "cudaHostRegister {size_gib:MiB} MB",
            versions=">=0.26.0",
            example="cudaHostRegister 512 MB",
            values={"purpose": "encoder outputs"},
        ),
        Template(
            "FlyDSL {_}uf{_}allocated {_} VRAM = {size_gib:MiB} MiB / shape.",
            versions=">=0.28.0",
            example="FlyDSL UltraQuant buffer pool allocated shape=(Hk=8, Hq=64, P=16, QG=4, D=128, dtype=bf16)"
            " B_bucket=256. VRAM = 96 MiB / shape.",
            values={"purpose": "attention decode"},
        ),
        Template(
            "Allocated the KDA RecoverSSM verify records: {size_gib} GiB in total for {_} requests ({_} MiB per"
            " request).",
            versions=">=0.33.0",
            example="Allocated the KDA RecoverSSM verify records: 8.5 GiB in total for 16 requests (16 MiB per"
            " request).",
            values={"purpose": "state of speculative steps"},
        ),
        Template(
            "MiniMax M3 indexer CP: {_} KiB candidate buffer per rank mapped over {_} ranks [{_}]",
            versions=">=0.33.0",
            example="MiniMax M3 indexer CP: 16 KiB candidate buffer per rank mapped over 16 ranks [16]",
            values={"purpose": "sparse attention candidates"},
        ),
        Template(
            "Allocating {size_mb} MB of device memory to buffers to load {_} layers. {_}",
            versions=">=0.21.0",
            example="Allocating 8.5 MB of device memory to buffers to load 16 layers. 16",
            values={"purpose": "reloading weights"},
        ),
        Template(
            "RoutedExpertsManager CPU buffer: {size_gb} GB ({_})",
            versions=">=0.22.0,<0.31.0",
            example="RoutedExpertsManager CPU buffer: 8.5 GB (16)",
            values={"purpose": "routed experts"},
        ),
        Template(
            "Routing experts {purpose} allocated. shape={_}, size={_} MB",
            versions=">=0.21.0,<0.22.0",
            example="Routing experts device buffer allocated. shape=16, size=16 MB",
        ),
        Template(
            "[StaticBufferPool] Allocated {_} unique (name, shape, stride, dtype), {_} slots each, total {size_gb} GB",
            versions=">=0.17.0",
            example="[StaticBufferPool] Allocated 16 unique (name, shape, stride, dtype), 16 slots each, total 8.5 GB",
            values={"purpose": "weights fetched from the host"},
        ),
        Template(
            "Created EC mmap file {_} ({size_gib:MiB} MiB)",
            versions=">=0.26.0",
            example="Created EC mmap file 16 (512 MiB)",
            values={"purpose": "encoder outputs"},
        ),
        Template(
            "ROCm segmented attention tuning plan: {_} scratch_budget={size_gib:MiB} MiB {_}",
            versions=">=0.32.0",
            example="ROCm segmented attention tuning plan: 16 scratch_budget=512 MiB 16",
            values={"purpose": "attention tuning"},
        ),
        Template(
            "[RDT-PLAN] pre-registered {_} receive slots ({_} MiB each) + serve rings on {_}",
            versions=">=0.29.0",
            example="[RDT-PLAN] pre-registered 16 receive slots (16 MiB each) + serve rings on 16",
            values={"purpose": "weight transfer"},
        ),
        Template(
            "[RDT-RING] active_pulls={_} slots={_} presize={size_gib}GiB",
            versions=">=0.29.0",
            example="[RDT-RING] active_pulls=16 slots=16 presize=8.5GiB",
            values={"purpose": "weight transfer"},
        ),
        Template(
            "Sparse MLA top-k mask workspace ({size_gib:MiB} MiB) is too small for some prefill batches; those fall"
            " back to slower sparse MQA.",
            versions=">=0.28.0",
            example="Sparse MLA top-k mask workspace (512 MiB) is too small for some prefill batches; those fall"
            " back to slower sparse MQA.",
            values={"purpose": "sparse attention mask"},
        ),
        Template(
            "Media cache enabled at {_} (max {_} MB, TTL {_} hours)",
            versions=">=0.20.0",
            example="Media cache enabled at 16 (max 16 MB, TTL 16 hours)",
            values={"purpose": "downloaded media"},
        ),
        Template(
            "Flashinfer max size: {size_gib:MiB} MB,Maximal number of tokens used by Flashinfer Allreduce Fusion: {_}",
            versions=">=0.11.1",
            example="Flashinfer max size: 512 MB,Maximal number of tokens used by Flashinfer Allreduce Fusion: 16",
            values={"purpose": "all-reduce"},
        ),
        Template(
            "Custom quick allreduce: min size override = {size_gib:MiB} MB",
            versions=">=0.22.0",
            example="Custom quick allreduce: min size override = 512 MB",
            values={"purpose": "all-reduce"},
        ),
        Template(
            "Created shared memory buffer '{_}' with shape {_}",
            versions=">=0.14.0,<0.21.0",
            example="Created shared memory buffer '16' with shape 16",
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
            example="Released 8.5 GiB of checkpoint page cache in 16",
        ),
        Template(
            "Released {gib}GiB of cached device memory under memory pressure",
            versions=">=0.24.0",
            example="Released 8.5GiB of cached device memory under memory pressure",
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
            example="Weight cache 16 daemon rank 16 loaded model (8.5 GiB allocated, 8.5 GiB reserved)",
        ),
        Template(
            "Weight cache {_} daemon rank {_} released startup resources ({freed_gib} GiB freed)",
            versions=">=0.33.0",
            example="Weight cache 16 daemon rank 16 released startup resources (8.5 GiB freed)",
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
            example="Allocated: 8.5 GiB",
        ),
        Template(
            "Reserved: {reserved_gib} GiB",
            versions=">=0.11.0,<0.11.1",
            example="Reserved: 8.5 GiB",
        ),
        Template(
            "torch reserved memory: {reserved_gib} GiB, torch allocated memory: {allocated_gib} GiB",
            versions=">=0.23.0",
            source="vllm-ascend",
            example="torch reserved memory: 8.5 GiB, torch allocated memory: 8.5 GiB",
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
            "max_num_seqs ({max_num_seqs}) exceeds available Mamba cache blocks ({mamba_blocks}). {_}",
            versions=">=0.20.0",
            example="max_num_seqs (4096) exceeds available Mamba cache blocks (4096). 16",
        ),
        Template(
            "Capping cudagraph capture sizes from max {_} to {max_capture_size} to fit Mamba cache blocks"
            " ({mamba_blocks} blocks available). {_}",
            versions=">=0.18.0,<0.20.0",
            example="Capping cudagraph capture sizes from max 16 to 4096 to fit Mamba cache blocks (4096 blocks"
            " available). 16",
        ),
        Template(
            "No valid cudagraph capture sizes remain after capping to Mamba cache blocks ({mamba_blocks}). {_}",
            versions=">=0.18.0,<0.20.0",
            example="No valid cudagraph capture sizes remain after capping to Mamba cache blocks (4096). 16",
        ),
    )
