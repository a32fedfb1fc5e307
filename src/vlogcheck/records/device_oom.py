"""A device allocation failed: torch's message in the wordings of its releases and back ends, and the drivers' own."""

from __future__ import annotations

from vlogcheck.template import Record, Size, Template, Word

__all__ = ["KernelOutOfResources", "OutOfMemory"]

_HEAD = "{tried_gib}. GPU {device} has a total capacity of {total_gib} of which {free_gib} is free."
_REST = (
    "[[ Process {_} has {other_gib} memory in use.]][[{_} Including non-PyTorch memory, this process has {process_gib} memory"
    " in use.]]{_} Of the allocated memory {allocated_gib} is allocated by PyTorch,{_} {unallocated_gib} is reserved by"
    " PyTorch but unallocated."
)
_REST_EXAMPLE = (
    " Process 4242 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 67.98 GiB memory in use. Of"
    " the allocated memory 66.50 GiB is allocated by PyTorch, with 41.88 MiB allocated in private pools (e.g., CUDA Graphs),"
    " and 161.61 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
_OLD = (
    "{tried_gib} (GPU {device}; {total_gib} total capacity; {allocated_gib} already allocated;[[ {_} current active;]]"
    " {free_gib} free;[[ {reserved_gib} reserved in total by PyTorch]]"
)
_WORDS = {
    "CUDA": (
        "CUDA out of memory. Tried to",
        "CUDA error: out of memory",
        "CUDA driver error: out of memory",
        "CUDA Error: out of memory",
        "cuda runtime error (2) : out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "Cuda failure 2 'out of memory'",
        "Cuda failure 'out of memory'",
    ),
    "HIP": (
        "HIP out of memory. Tried to",
        "HIP error: out of memory",
        "hipErrorOutOfMemory",
        "HIPBLAS_STATUS_ALLOC_FAILED",
        "HIP failure 'out of memory'",
    ),
    "XPU": (
        "XPU out of memory. Tried to",
        "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        "UR_RESULT_ERROR_OUT_OF_RESOURCES",
        "PI_ERROR_OUT_OF_RESOURCES",
    ),
    "NPU": (
        "NPU out of memory. Tried to",
        "ACL_ERROR_RT_MEMORY_ALLOCATION",
        "EL0004: Failed to allocate memory",
        "(EL0004): Failed to allocate memory",
        "failed, error code is 207001",
    ),
    "MUSA": ("MUSA out of memory. Tried to", "MUSA error: out of memory"),
    "MLU": ("MLU out of memory. Tried to",),
    "RBLN": ("SYS_EBUSY: Lack of device memory",),
    "MPS": ("MPS backend out of memory", "kIOGPUCommandBufferCallbackErrorOutOfMemory"),
    "TPU": ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm",),
}
_LOAD = (
    "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights,"
    " increasing --tensor-parallel-size, or using --quantization. See"
    " https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more tips. (original error: "
)
_WARM = "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."


def _torch(backend: str, text: str, example: str, **values: str) -> Template:
    return Template(
        f"{backend} out of memory. Tried to allocate {text}",
        versions="",
        source="torch",
        embedded=True,
        example=f"{backend} out of memory. Tried to allocate {example}",
        values={"backend": backend, **values},
    )


class OutOfMemory(Record):
    """A device allocation failed: torch's message, in the wordings of its releases and back ends, or the driver's."""

    tried_gib: Size | None = None
    """Size asked for; XLA's own message of compilation: all that the program needs."""
    device: Word | None = None
    """Device index as the process sees it."""
    total_gib: Size | None = None
    """Device memory in total."""
    free_gib: Size | None = None
    """Free device memory."""
    backend: Word | None = None
    """CUDA, HIP, NPU, XPU, MPS, HPU, MUSA, MLU, RBLN or TPU. vLLM's own text says CUDA on every device."""
    phase: Word | None = None
    """load, sampler or pooler (warm-up), where the wording says it."""
    dummy_requests: int | None = None
    """Requests of the warm-up that failed: `max_num_seqs`."""
    process_gib: Size | None = None
    """What this process uses, with the memory outside torch."""
    other_gib: Size | None = None
    """What another process on the device uses (the first one named)."""
    allocated_gib: Size | None = None
    """What torch has handed out."""
    unallocated_gib: Size | None = None
    """What torch holds back without using it."""
    reserved_gib: Size | None = None
    """Everything torch holds (until torch 2.0; Ascend)."""

    templates = (
        Template(
            _LOAD + "{backend} out of memory. Tried to allocate " + _HEAD + "{_}",
            versions=">=0.13.0",
            source="torch",
            example=_LOAD
            + "CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 79.18 GiB of"
            " which 507.50 MiB is free. Including non-PyTorch memory, this process has 78.69 GiB memory in use.)",
            values={"phase": "load"},
        ),
        Template(
            _LOAD + "{_})",
            versions=">=0.13.0",
            example=_LOAD + "CUDA error: out of memory)",
            values={"phase": "load"},
        ),
        Template(
            "{backend} out of memory occurred when warming up {phase} with {dummy_requests} dummy requests. " + _WARM,
            versions=">=0.8.0",
            example="CUDA out of memory occurred when warming up sampler with 1024 dummy requests. " + _WARM,
        ),
        Template(
            "{backend} out of memory occurred when warming up {phase} (task={_}) with {dummy_requests} dummy requests. "
            + _WARM,
            versions=">=0.10.0",
            example="CUDA out of memory occurred when warming up pooler (task=embed) with 256 dummy requests. " + _WARM,
        ),
        Template(
            "Unable to load model, a likely reason is the model is too large for the current device's HBM memory. {_}",
            versions=">=0.10.0,<0.14",
            example="Unable to load model, a likely reason is the model is too large for the current device's HBM memory."
            " Consider switching to a smaller model or sharding the weights on more chips. See the detailed error: ...",
            values={"backend": "TPU", "phase": "load"},
        ),
        *(
            Template(text, versions=versions, example=text, values={"phase": "load"})
            for text, versions in (
                (
                    "Failed to create unquantized linear weights. This may be caused by insufficient memory to allocate the"
                    " weight.",
                    ">=0.11.0,<0.11.1",
                ),
                (
                    "Failed to initialize q/k/v range constants. This may be caused by insufficient memory to allocate kv"
                    " cache.",
                    ">=0.11.0,<0.11.1",
                ),
            )
        ),
        *(
            _torch(
                backend,
                _HEAD + _REST,
                "2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.20 GiB is free." + _REST_EXAMPLE,
            )
            for backend in ("CUDA", "HIP", "XPU", "MUSA")
        ),
        _torch(
            "MLU",
            _HEAD.replace("GPU", "MLU").replace(" is free", "[[ ]]is free"),
            "2.00 GiB. MLU 0 has a total capacity of 79.18 GiB of which 1.20 GiBis free. Of the allocated memory",
        ),
        *(
            _torch(
                backend,
                _HEAD.replace("capacity", capacity),
                f"2.00 GiB. GPU 0 has a total {capacity} of 79.18 GiB of which 1.20 GiB is free. Including",
            )
            for backend in ("CUDA", "HIP", "XPU", "MUSA")
            for capacity in ("capacity", "capacty")
        ),
        *(
            _torch(
                backend,
                _OLD.replace("(GPU", f"({unit}"),
                f"2.00 GiB ({unit} 0; 60.96 GiB total capacity; 59.36 GiB already allocated; 120.00 MiB free; 59.90 GiB"
                " reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to"
                " avoid fragmentation.",
            )
            for backend, unit in (
                ("CUDA", "GPU"),
                ("HIP", "GPU"),
                ("XPU", "GPU"),
                ("MUSA", "GPU"),
                ("NPU", "NPU"),
                ("MLU", "MLU"),
            )
        ),
        *(_torch(backend, "{tried_gib}", "2.00 GiB.") for backend in ("CUDA", "HIP", "XPU", "MUSA", "NPU", "MLU")),
        *(
            Template(text, versions="", source="torch", embedded=True, example=text, values={"backend": backend})
            for backend, texts in _WORDS.items()
            for text in texts
        ),
        Template(
            "NPU out of memory. NPUWorkspaceAllocator tried to allocate {tried_gib}(NPU {device}; {total_gib} total capacity;"
            " {free_gib} free)",
            versions="",
            source="torch_npu",
            embedded=True,
            example="NPU out of memory. NPUWorkspaceAllocator tried to allocate 212.00 MiB(NPU 3; 60.96 GiB total capacity;"
            " 71.25 MiB free). If you want to reduce memory usage, take a try to set the environment variable"
            " TASK_QUEUE_ENABLE=1.",
            values={"backend": "NPU"},
        ),
        Template(
            "Allocation on device {device} would exceed allowed memory. (out of memory)",  # backend:cudaMallocAsync
            versions="",
            source="torch",
            embedded=True,
            example="Allocation on device 0 would exceed allowed memory. (out of memory)",
            values={"backend": "CUDA"},
        ),
        Template(
            "Out of memory allocating {_} bytes (allocated so far: {_} bytes)",
            versions="",
            source="cupy",
            embedded=True,
            example="Out of memory allocating 2,147,483,648 bytes (allocated so far: 0 bytes).",
            values={"backend": "CUDA"},
        ),
        Template(
            "EL0004: [PID: {_}] {_} Failed to allocate memory.",
            versions="",
            source="cann",
            embedded=True,
            example="EL0004: [PID: 4161] 2025-05-06-07:08:09.123.456 Failed to allocate memory.",
            values={"backend": "NPU"},
        ),
        Template(
            "Failed to allocate resource[DeviceMemory] with info [size:{tried_gib:bytes}]. Reason: Memory resources are"
            " exhausted.",
            versions="",
            source="cann",
            embedded=True,
            example="Failed to allocate resource[DeviceMemory] with info [size:1073741824]. Reason: Memory resources are"
            " exhausted.",
            values={"backend": "NPU"},
        ),
        Template(
            "Allocation failed for size::{tried_gib:bytes} (",
            versions="",
            source="torch",
            embedded=True,
            example="Allocation failed for size::12884901888 (12288)MB",
            values={"backend": "HPU"},
        ),
        *(
            Template(
                f"RESOURCE_EXHAUSTED: {{_}}Attempting to {verb} {{tried_gib:{tried}iB}}{tried[0]}{{_}}. That was not possible."
                f" There are {{free_gib:{free}iB}}{free[0]} free",
                versions="",
                source="xla",
                embedded=True,
                example=f"RESOURCE_EXHAUSTED: {before}Attempting to {verb} 2.00{tried[0]}{place}. That was not possible."
                f" There are 1.25{free[0]} free",
                values={"backend": "TPU"},
            )
            for verb, before, place in (
                ("allocate", "Error allocating device buffer: ", ""),
                ("reserve", "Error loading program 'jit_step': ", " at the bottom of memory"),
            )
            for tried in "GM"
            for free in "GM"
        ),
        Template(
            "RESOURCE_EXHAUSTED: {_}Ran out of memory in memory space hbm. Used {tried_gib:GiB}G of {total_gib:GiB}G hbm.",
            versions="",
            source="xla",
            embedded=True,
            example="RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 41.77G of"
            " 31.25G hbm.",
            values={"backend": "TPU"},
        ),
        Template(
            "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: {tried_gib:GiB}G, SparseCore Hbm usage {_}, exceeding available bytes:"
            " {total_gib:GiB}G",
            versions="",
            source="xla",
            embedded=True,
            example="RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available"
            " bytes: 95.74G",
            values={"backend": "TPU"},
        ),
        *(
            Template(
                f"RESOURCE_EXHAUSTED: {{_}}Attempting to {verb} {{tried_gib:{unit}iB}}{unit[0]}",
                versions="",
                source="xla",
                embedded=True,
                example=f"RESOURCE_EXHAUSTED: Attempting to {verb} 2.00{unit[0]}",
                values={"backend": "TPU"},
            )
            for verb in ("allocate", "reserve")
            for unit in "GM"
        ),
    )


class KernelOutOfResources(Record):
    """A Triton kernel asks for more on-chip shared memory than the device has: no matter of device memory."""

    required_bytes: int
    """Bytes the kernel needs."""
    limit_bytes: int
    """Bytes the device has."""

    templates = (
        Template(
            "out of resource: shared memory, Required: {required_bytes}, Hardware limit: {limit_bytes}",
            versions="",
            source="triton",
            embedded=True,
            example="out of resource: shared memory, Required: 114688, Hardware limit: 101376. Reducing block sizes or"
            " `num_stages` may help.",
        ),
    )
