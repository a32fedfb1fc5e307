"""What vLLM says about host and peer memory: pinned, symmetric, bound to nodes; contexts that may not fit."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["LongContextWarning", "MemoryNodes", "PinnedMemoryOff", "SymmetricMemory"]


class PinnedMemoryOff(Record):
    """Host memory cannot be pinned here: offloading and transfers are slower, or use device memory."""

    platform: Word | None = None
    """The platform."""

    templates = (
        Template(
            "Pin memory is not supported on {platform}.",
            versions=">=0.4.0,<0.14.0",
            example="Pin memory is not supported on CPU.",
        ),
        Template(
            "Pinned memory not available. CPU offload performance may be degraded.",
            versions=">=0.19.0",
            example="Pinned memory not available. CPU offload performance may be degraded.",
        ),
        Template(
            "Pinned memory is not available on this platform; falling back to device memory for UVA buffers.",
            versions=">=0.30.0",
            example="Pinned memory is not available on this platform; falling back to device memory for UVA buffers.",
        ),
        Template(
            "--cpu-offload-gb is enabled with CUDA graphs on WSL2. {_}",
            versions=">=0.24.0",
            example="--cpu-offload-gb is enabled with CUDA graphs on WSL2. 16",
        ),
        Template(
            "Host registration is not implemented on {platform}; KV offload transfers will use unpinned host memory.",
            versions=">=0.32.0",
            example="Host registration is not implemented on xpu; KV offload transfers will use unpinned host memory.",
        ),
        Template(
            "{_} failed for rank={_} at {_} of {_} GB{_} the offload region stays pageable",
            versions=">=0.31.0",
            example="host_register failed for rank=0 at 4.29 of 17.18 GB; the offload region stays pageable",
        ),
        Template(
            "CUDA did not recognize Engram registration; using pinned memory.",
            versions=">=0.31.0",
            example="CUDA did not recognize Engram registration; using pinned memory.",
        ),
        Template(
            "Engram {_} failed ({_}); using pinned memory.",
            versions=">=0.31.0",
            example="Engram 16 failed (16); using pinned memory.",
        ),
        Template(
            "Sharing Engram tables across DP replicas needs {_} GiB of {_} (--shm-size or --ipc=host); sharding them"
            " across replicas instead.",
            versions=">=0.31.0,<0.32.0",
            example="Sharing Engram tables across DP replicas needs 16 GiB of 16 (--shm-size or --ipc=host);"
            " sharding them across replicas instead.",
        ),
        Template(
            "ShmTensorArena: cudaHostRegister({_} MB) -> {_}",
            versions=">=0.32.0",
            example="ShmTensorArena: cudaHostRegister(16 MB) -> 16",
        ),
        Template(
            "Registering full CPU offload region rank={_} (row={_}, slot={_} bytes): {_}",
            versions=">=0.33.0",
            example="Registering full CPU offload region rank=16 (row=16, slot=16 bytes): 16",
        ),
    )


class SymmetricMemory(Record):
    """Memory shared between devices for collectives is missing or stays resident."""

    templates = (
        Template(
            "SymmMemCommunicator: symmetric memory {_}",
            versions=">=0.10.2",
            example="SymmMemCommunicator: symmetric memory 16",
        ),
        Template(
            "Failed to compile NCCL memory allocator. Symmetric memory will be disabled. {_}",
            versions=">=0.11.0",
            example="Failed to compile NCCL memory allocator. Symmetric memory will be disabled. 16",
        ),
        Template(
            "MNNVL multimem reduce-scatter symmetric-memory {_} failed on at least one rank; falling back to NCCL.",
            versions=">=0.31.0",
            example="MNNVL multimem reduce-scatter symmetric-memory 16 failed on at least one rank; falling back to"
            " NCCL.",
        ),
        Template(
            "FlashInfer all-reduce workspace backed by torch symmetric memory stays resident during suspend.",
            versions=">=0.32.0",
            example="FlashInfer all-reduce workspace backed by torch symmetric memory stays resident during suspend.",
        ),
        Template(
            "ncclCommSuspend is not available in the loaded NCCL/RCCL library (requires NCCL >= {_}); skipping"
            " communicator memory suspension.",
            versions=">=0.30.0",
            example="ncclCommSuspend is not available in the loaded NCCL/RCCL library (requires NCCL >= 16);"
            " skipping communicator memory suspension.",
        ),
        Template(
            "NCCL_CUMEM_ENABLE is set to {_}, skipping override. This may increase memory overhead with"
            " cudagraph+allreduce: {_}",
            versions=">=0.9.1,<0.10.2",
            example="NCCL_CUMEM_ENABLE is set to 16, skipping override. This may increase memory overhead with"
            " cudagraph+allreduce: 16",
        ),
    )


class MemoryNodes(Record):
    """NUMA nodes a CPU worker takes memory from."""

    nodes: str | None = None
    """The nodes, as printed."""

    templates = (
        Template(
            "Warning: NUMA binding: Using MEMBIND policy for memory allocation on the NUMA nodes ({nodes}). {_}",
            versions="",
            source="vllm-csrc",
            embedded=True,
            example="Warning: NUMA binding: Using MEMBIND policy for memory allocation on the NUMA nodes (0). 16",
        ),
        Template(
            "Warning: NUMA binding: Using INTERLEAVE policy for memory allocation across multiple NUMA nodes (nodes:"
            " {nodes}). {_}",
            versions="",
            source="vllm-csrc",
            embedded=True,
            example="Warning: NUMA binding: Using INTERLEAVE policy for memory allocation across multiple NUMA nodes"
            " (nodes: 0,1). 16",
        ),
        Template(
            "Node {_} is not in available memory nodes {nodes}.",
            versions=">=0.20.0",
            example="Node 16 is not in available memory nodes [0, 1].",
        ),
        Template(
            "CPU group key {_} is not a valid memory node. Falling back to memory node {nodes}.",
            versions=">=0.26.0",
            example="CPU group key 16 is not a valid memory node. Falling back to memory node layer 3.",
        ),
        Template(
            "User lacks permission to set NUMA memory policy. {_}",
            versions=">=0.20.0",
            example="User lacks permission to set NUMA memory policy. 16",
        ),
    )


class LongContextWarning(Record):
    """A long context may not fit (engine/arg_utils.py) or changes how positions are scaled."""

    max_model_len: int
    """The length in tokens."""

    templates = (
        Template(
            "The model has a long context length ({max_model_len}). This may cause{_}OOM[[ errors]] during the initial memory"
            " profiling phase, {_}",
            versions=">=0.5.3,<0.11.0",
            example="The model has a long context length (4096). This may cause16OOM during the initial memory"
            " profiling phase, 16",
        ),
        Template(
            "Using LongRoPE scaling factors. This enables longer contexts ({max_model_len} tokens vs original {_}"
            " tokens) {_}",
            versions=">=0.11.1",
            example="Using LongRoPE scaling factors. This enables longer contexts (4096 tokens vs original 16"
            " tokens) 16",
        ),
        Template(
            "Overriding draft model max model len from {_} to {max_model_len}",
            versions=">=0.21.0",
            example="Overriding draft model max model len from 16 to 4096",
        ),
        Template(
            "Overriding draft model max_position_embeddings from {_} to the target model's max_model_len"
            " ({max_model_len}); {_}",
            versions=">=0.27.0",
            example="Overriding draft model max_position_embeddings from 16 to the target model's max_model_len"
            " (4096); 16",
        ),
    )
