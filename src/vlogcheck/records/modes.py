"""How the engine runs: which engine and runner, eager or with graphs, scheduling."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["AsyncScheduling", "EagerMode", "EngineFallback", "ModelRunner"]


class AsyncScheduling(Record):
    """Whether the scheduler works ahead of the device (config/vllm.py)."""

    state: Word
    """`enabled` or `disabled`."""

    templates = (
        Template(
            "Asynchronous scheduling is {state}.",
            versions=">=0.14.0,<0.27.0",
            example="Asynchronous scheduling is enabled.",
        ),
    )


class EngineFallback(Record):
    """A V0 engine starts because V1 lacks something that was asked for (engine/arg_utils.py)."""

    feature: str
    """What V1 lacks."""

    templates = (
        Template(
            "{feature} is not supported by the V1 Engine. Falling back to V0.[[ We recommend to remove {_} from your"
            " config in favor of the V1 Engine.]]",
            versions=">=0.8.0,<0.11.1",
            example="--kv-cache-dtype is not supported by the V1 Engine. Falling back to V0. We recommend to remove"
            " --kv-cache-dtype from your config in favor of the V1 Engine.",
        ),
        Template(
            "{feature} is experimental on VLLM_USE_V1=1. Falling back to V0 Engine.",
            versions=">=0.8.0,<0.11.0",
            example="Pipeline Parallelism is experimental on VLLM_USE_V1=1. Falling back to V0 Engine.",
        ),
    )


class ModelRunner(Record):
    """Which model runner a worker uses: V2 prints loading and graph lines once per rank (v1/worker/gpu_worker.py)."""

    runner: Word
    """`V1` or `V2`."""
    reason: str | None = None
    """Why not V2."""

    templates = (
        Template(
            "Using V2 Model Runner", versions=">=0.16.0", example="Using V2 Model Runner", values={"runner": "V2"}
        ),
        Template(
            "Model Runner V2 does not yet support {reason}; using the V1 model runner instead.",
            versions=">=0.23.0",
            example="Model Runner V2 does not yet support LoRA; using the V1 model runner instead.",
            values={"runner": "V1"},
        ),
        Template(
            "Model runner v2 does not yet support {reason}; using the v1 model runner instead.",
            versions=">=0.22.0,<0.23.0",
            example="Model runner v2 does not yet support LoRA; using the v1 model runner instead.",
            values={"runner": "V1"},
        ),
        Template(
            "Model Runner V2 requires {reason}; using the V1 model runner instead.",
            versions=">=0.23.0",
            example="Model Runner V2 requires Triton; using the V1 model runner instead.",
            values={"runner": "V1"},
        ),
    )


class EagerMode(Record):
    """No graphs will be captured: eager mode was asked for, or graphs are not possible here."""

    reason: str | None = None
    """What does not support graphs; None where it was asked for."""

    templates = (
        Template(
            "CUDA graph is not supported on {reason}, fallback to the eager mode.",
            versions=">=0.4.0.post1,<0.28.0",
            example="CUDA graph is not supported on CPU, fallback to the eager mode.",
        ),
        Template(
            "CUDA graph is not supported for {reason}, fallback to the eager mode.",
            versions=">=0.6.6,<0.9.0,!=0.8.2",
            example="CUDA graph is not supported for mllama yet, fallback to the eager mode.",
        ),
        Template(
            "CUDA graph is not supported for {reason}, fallback to eager mode.",
            versions=">=0.9.0",
            example="CUDA graph is not supported for mllama on ROCm yet, fallback to eager mode.",
        ),
        Template(
            "Cudagraph is disabled under eager mode",
            versions=">=0.10.1",
            example="Cudagraph is disabled under eager mode",
        ),
        Template(
            "Enforce eager set, overriding optimization level to -O0",
            versions=">=0.12.0,<0.17.0",
            example="Enforce eager set, overriding optimization level to -O0",
        ),
        Template(
            "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting -cc.mode=none"
            " -cc.cudagraph_mode=none",
            versions=">=0.17.0",
            example="Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting"
            " -cc.mode=none -cc.cudagraph_mode=none",
        ),
        Template(
            "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is equivalent to"
            " setting -cc.mode=none -cc.cudagraph_mode=none and --kernel_config.enable_jit_warmup=False",
            versions=">=0.31.0",
            example="Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is equivalent"
            " to setting -cc.mode=none -cc.cudagraph_mode=none and --kernel_config.enable_jit_warmup=False",
        ),
    )
