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
            "--cpu-offload-gb is enabled with CUDA graphs on WSL2. This combination requires pinned (page-locked)"
            " memory allocations. WARNING: Windows (WDDM) enforces a hard system-wide cap of roughly 50%% of physical"
            " RAM on pinned memory shared across ALL processes by default (limit can changed via"
            " %%USERPROFILE%%\\.wslconfig). Excessive use of page-locked memory can prevent Windows from reclaiming"
            " memory under load, which can cause the entire host OS to become unresponsive and may require a hard"
            " reboot to recover. Proceed at your own risk. To raise the WSL2 VM memory ceiling, increase the `memory`"
            " setting in %%USERPROFILE%%\\.wslconfig and run `wsl --shutdown`.",
            versions=">=0.24.0",
            example="--cpu-offload-gb is enabled with CUDA graphs on WSL2. This combination requires pinned"
            " (page-locked) memory allocations. WARNING: Windows (WDDM) enforces a hard system-wide cap of roughly"
            " 50%% of physical RAM on pinned memory shared across ALL processes by default (limit can changed via"
            " %%USERPROFILE%%\\.wslconfig). Excessive use of page-locked memory can prevent Windows from reclaiming"
            " memory under load, which can cause the entire host OS to become unresponsive and may require a hard"
            " reboot to recover. Proceed at your own risk. To raise the WSL2 VM memory ceiling, increase the `memory`"
            " setting in %%USERPROFILE%%\\.wslconfig and run `wsl --shutdown`.",
        ),
        Template(
            "Host registration is not implemented on {platform}; KV offload transfers will use unpinned host memory.",
            versions=">=0.32.0",
            example="Host registration is not implemented on xpu; KV offload transfers will use unpinned host memory.",
        ),
        Template(
            "host_register failed for rank={_} at {_} of {_} GB; the offload region stays pageable",
            versions=">=0.32.0",
            example="host_register failed for rank=0 at 4.29 of 17.18 GB; the offload region stays pageable",
        ),
        Template(
            "cudaHostRegister failed for rank={_} at {_} of {_} GB (code={_}); the offload region stays pageable",
            versions=">=0.31.0,<0.32.0",
            example="cudaHostRegister failed for rank=0 at 4.29 of 17.18 GB (code=2); the offload region stays"
            " pageable",
        ),
        Template(
            "CUDA did not recognize Engram registration; using pinned memory.",
            versions=">=0.31.0",
            example="CUDA did not recognize Engram registration; using pinned memory.",
        ),
        Template(
            "Engram huge-page allocation failed ({_}); using pinned memory.",
            versions=">=0.31.0",
            example="Engram huge-page allocation failed ([Errno 22] Invalid argument); using pinned memory.",
        ),
        Template(
            "Engram cudaHostRegister failed ({_}); using pinned memory.",
            versions=">=0.31.0",
            example="Engram cudaHostRegister failed (cudaError.memoryAllocation); using pinned memory.",
        ),
        Template(
            "Sharing Engram tables across DP replicas needs {_} GiB of {_} (--shm-size or --ipc=host); sharding them"
            " across replicas instead.",
            versions=">=0.31.0,<0.32.0",
            example="Sharing Engram tables across DP replicas needs 96.5 GiB of /dev/shm (--shm-size or --ipc=host);"
            " sharding them across replicas instead.",
        ),
        Template(
            "ShmTensorArena: cudaHostRegister({_} MB) -> error {_}",
            versions=">=0.32.0",
            example="ShmTensorArena: cudaHostRegister(1024 MB) -> error 1",
        ),
        Template(
            "ShmTensorArena: cudaHostRegister({_} MB) -> pinned",
            versions=">=0.32.0",
            example="ShmTensorArena: cudaHostRegister(1024 MB) -> pinned",
        ),
        Template(
            "Registering full CPU offload region rank={_} (row={_}, slot={_} bytes): [[whole-region layout"
            " requested]][[no worker rank]][[less than {_} bytes saved per row]]",
            versions=">=0.33.0",
            example="Registering full CPU offload region rank=0 (row=4194304, slot=4194304 bytes): whole-region layout"
            " requested",
        ),
    )


class SymmetricMemory(Record):
    """Memory shared between devices for collectives is missing or stays resident."""

    templates = (
        Template(
            "SymmMemCommunicator: symmetric memory is not available.",
            versions=">=0.10.2",
            example="SymmMemCommunicator: symmetric memory is not available.",
        ),
        Template(
            "SymmMemCommunicator: symmetric memory multicast operations are not supported.",
            versions=">=0.10.2",
            example="SymmMemCommunicator: symmetric memory multicast operations are not supported.",
        ),
        Template(
            "SymmMemCommunicator: symmetric memory initialization failed: {_} Communicator is not available. To"
            " suppress this warning set VLLM_ALLREDUCE_USE_SYMM_MEM=0",
            versions=">=0.11.1",
            example="SymmMemCommunicator: symmetric memory initialization failed: CUDA driver error: operation not"
            " supported Communicator is not available. To suppress this warning set VLLM_ALLREDUCE_USE_SYMM_MEM=0",
        ),
        Template(
            "Failed to compile NCCL memory allocator. Symmetric memory will be disabled. This is expected if NCCL"
            " headers are not available. optionally set VLLM_NCCL_INCLUDE_PATH to point to a directory containing the"
            " NCCL header. Error: {_}",
            versions=">=0.11.0",
            example="Failed to compile NCCL memory allocator. Symmetric memory will be disabled. This is expected if"
            " NCCL headers are not available. optionally set VLLM_NCCL_INCLUDE_PATH to point to a directory containing"
            " the NCCL header. Error: Error building extension 'nccl_allocator'",
        ),
        Template(
            "MNNVL multimem reduce-scatter symmetric-memory [[allocation]][[rendezvous]] failed on at least one rank;"
            " falling back to NCCL.",
            versions=">=0.31.0",
            example="MNNVL multimem reduce-scatter symmetric-memory allocation failed on at least one rank; falling"
            " back to NCCL.",
        ),
        Template(
            "FlashInfer all-reduce workspace backed by torch symmetric memory stays resident during suspend.",
            versions=">=0.32.0",
            example="FlashInfer all-reduce workspace backed by torch symmetric memory stays resident during suspend.",
        ),
        Template(
            "ncclCommSuspend is not available in the loaded NCCL/RCCL library (requires NCCL >= 2.29.7); skipping"
            " communicator memory suspension.",
            versions=">=0.30.0",
            example="ncclCommSuspend is not available in the loaded NCCL/RCCL library (requires NCCL >= 2.29.7);"
            " skipping communicator memory suspension.",
        ),
        Template(
            "NCCL_CUMEM_ENABLE is set to {_}, skipping override. This may increase memory overhead with"
            " cudagraph+allreduce: https://github.com/NVIDIA/nccl/issues/1234",
            versions=">=0.9.1,<0.10.2",
            example="NCCL_CUMEM_ENABLE is set to 1, skipping override. This may increase memory overhead with"
            " cudagraph+allreduce: https://github.com/NVIDIA/nccl/issues/1234",
        ),
    )


class MemoryNodes(Record):
    """NUMA nodes a CPU worker takes memory from."""

    nodes: str | None = None
    """The nodes, as printed."""

    templates = (
        Template(
            "Warning: NUMA binding: Using MEMBIND policy for memory allocation on the NUMA nodes ({nodes}). Memory"
            " allocations will be strictly bound to these NUMA nodes.[[ (function {_})]]",
            versions="",
            example="Warning: NUMA binding: Using MEMBIND policy for memory allocation on the NUMA nodes (0). Memory"
            " allocations will be strictly bound to these NUMA nodes. (function init_cpu_memory_env)",
            source="vllm-csrc",
            embedded=True,
        ),
        Template(
            "Warning: NUMA binding: Using INTERLEAVE policy for memory allocation across multiple NUMA nodes (nodes:"
            " {nodes}). Memory allocations will be interleaved across the specified NUMA nodes.[[ (function {_})]]",
            versions="",
            example="Warning: NUMA binding: Using INTERLEAVE policy for memory allocation across multiple NUMA nodes"
            " (nodes: 0,1). Memory allocations will be interleaved across the specified NUMA nodes. (function"
            " init_cpu_memory_env)",
            source="vllm-csrc",
            embedded=True,
        ),
        Template(
            "Node {_} is not in available memory nodes {nodes}.",
            versions=">=0.20.0",
            example="Node 2 is not in available memory nodes [0, 1].",
        ),
        Template(
            "CPU group key {_} is not a valid memory node. Falling back to memory node {nodes}.",
            versions=">=0.26.0",
            example="CPU group key 2 is not a valid memory node. Falling back to memory node 0.",
        ),
        Template(
            "User lacks permission to set NUMA memory policy. Automatic NUMA detection may not work; if you are using"
            " Docker, try adding --cap-add SYS_NICE.",
            versions=">=0.20.0",
            example="User lacks permission to set NUMA memory policy. Automatic NUMA detection may not work; if you"
            " are using Docker, try adding --cap-add SYS_NICE.",
        ),
    )


class LongContextWarning(Record):
    """A long context may not fit (engine/arg_utils.py) or changes how positions are scaled."""

    max_model_len: int
    """The length in tokens."""

    templates = (
        Template(
            "The model has a long context length ({max_model_len}). This may cause[[ ]]OOM[[ errors]] during the"
            " initial memory profiling phase, or result in low performance due to small KV cache [[space]][[size]]."
            " Consider setting --max-model-len to a smaller value.",
            versions=">=0.5.3,<0.11.0",
            example="The model has a long context length (131072). This may cause OOM errors during the initial memory"
            " profiling phase, or result in low performance due to small KV cache space. Consider setting"
            " --max-model-len to a smaller value.",
        ),
        Template(
            "Using LongRoPE scaling factors. This enables longer contexts ({max_model_len} tokens vs original {_}"
            " tokens) at the cost of some performance degradation for shorter sequences. If this is not desired, set"
            " `max_model_len` to be at most {_}.",
            versions=">=0.11.1",
            example="Using LongRoPE scaling factors. This enables longer contexts (131072 tokens vs original 4096"
            " tokens) at the cost of some performance degradation for shorter sequences. If this is not desired, set"
            " `max_model_len` to be at most 4096.",
        ),
        Template(
            "Overriding draft model max model len from {_} to {max_model_len}",
            versions=">=0.21.0",
            example="Overriding draft model max model len from 2048 to 8192",
        ),
        Template(
            "Overriding draft model max_position_embeddings from {_} to the target model's max_model_len"
            " ({max_model_len}); [[EAGLE drafts share]][[the draft shares]] the target's positional space.",
            versions=">=0.27.0",
            example="Overriding draft model max_position_embeddings from 2048 to the target model's max_model_len"
            " (8192); the draft shares the target's positional space.",
        ),
    )
