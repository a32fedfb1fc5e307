"""CUDA graphs: whether they are captured, what they are estimated to take, what they took."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "EncoderGraphCapture",
    "EncoderGraphMissed",
    "GraphCaptureSkipped",
    "GraphCaptureStart",
    "GraphEstimate",
    "GraphEstimateIncomplete",
    "GraphEstimatePart",
    "GraphModeUnsupported",
    "GraphPool",
    "GraphProfiling",
    "GraphUtilization",
]

_ESTIMATE = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
_KEEP = "To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to {suggested}."
_EQUAL = (
    "The current --gpu-memory-utilization={current} is equivalent to --gpu-memory-utilization={equivalent} without CUDA graph"
    " memory profiling. "
)
_EAGER = " To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI."
_STATIC = "This may lead to unexpected consequences if the model is not static."
_IF_OUT = (
    "If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to"
    " eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage."
)
_THREE = (
    "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing"
    " `gpu_memory_utilization` or enforcing eager mode."
)


class GraphProfiling(Record):
    """Which graphs one worker samples to estimate their memory (v1/worker/gpu_model_runner.py)."""

    groups: str
    """Counts by kind, such as `PIECEWISE=51 (largest=512), FULL=35 (largest=256)`."""

    templates = (
        Template(
            "Profiling CUDA graph memory: {groups}",
            versions=">=0.18.0",
            example="Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)",
        ),
    )


class GraphEstimate(Record):
    """Memory one worker expects its graphs to take; part of the budget from 0.20.2 (gpu_model_runner.py)."""

    gib: GiB
    """Memory estimated."""

    templates = (
        Template(
            "Estimated CUDA graph memory: {gib} GiB total",
            versions=">=0.18.0",
            example="Estimated CUDA graph memory: 0.61 GiB total",
        ),
    )


class GraphEstimatePart(Record):
    """How the estimate of one kind of graph comes about (gpu_model_runner.py; DEBUG)."""

    kind: str
    """PIECEWISE, FULL or encoder."""
    first_gib: GiB
    """The first capture, or all encoder graphs together."""
    graphs: int
    """How many graphs."""
    per_graph_gib: GiB | None = None
    """Each further graph."""

    templates = (
        Template(
            "Estimated {kind} CUDA graph memory: {first_gib:MiB} MiB first-capture + ({graphs}-1) × {per_graph_gib:MiB} MiB"
            " per-graph",
            versions=">=0.18.0",
            example="Estimated PIECEWISE CUDA graph memory: 210.50 MiB first-capture + (51-1) × 8.00 MiB per-graph",
        ),
        Template(
            "Estimated {kind} CUDA graph memory: {first_gib:MiB} MiB for {graphs} graphs",
            versions=">=0.23.0",
            example="Estimated encoder CUDA graph memory: 96.25 MiB for 4 graphs",
        ),
    )


class GraphPool(Record):
    """Memory the captured graphs took on one worker, beside the estimate (v1/worker/gpu_worker.py)."""

    actual_gib: GiB
    """Memory taken."""
    estimated_gib: GiB
    """Memory estimated."""
    difference_gib: GiB
    """How far apart the two are."""
    difference_percent: float
    """The same as a share of the actual memory."""

    templates = (
        Template(
            "CUDA graph pool memory: {actual_gib} GiB (actual), {estimated_gib} GiB (estimated), difference: {difference_gib}"
            " GiB ({difference_percent}%).",
            versions=">=0.18.0",
            example="CUDA graph pool memory: 0.55 GiB (actual), 0.61 GiB (estimated), difference: 0.06 GiB (10.9%).",
        ),
        Template(
            "ACL graph pool memory: {actual_gib} GiB (actual), {estimated_gib} GiB (estimated), difference: {difference_gib}"
            " GiB ({difference_percent}%).",
            versions=">0.23.0",
            source="vllm-ascend",
            example="ACL graph pool memory: 0.55 GiB (actual), 0.61 GiB (estimated), difference: 0.06 GiB (10.9%).",
        ),
    )


class GraphUtilization(Record):
    """What counting graph memory does to the meaning of the utilization (v1/worker/gpu_worker.py)."""

    enabled: bool
    """Whether graph memory is counted inside the utilization."""
    current: float
    """The utilization set."""
    equivalent: float | None = None
    """The utilization that gave the same KV cache when graphs were not counted."""
    suggested: float
    """The utilization that keeps the KV cache of uncounted graphs."""

    templates = (
        Template(
            "CUDA graph memory profiling is enabled (default since v0.21.0). " + _EQUAL + _KEEP + f" To disable, set"
            f" {_ESTIMATE}=0.",
            versions=">=0.20.0",
            example="CUDA graph memory profiling is enabled (default since v0.21.0). The current"
            " --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9123 without CUDA graph memory"
            " profiling. To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to"
            " 0.9277. To disable, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.",
            values={"enabled": True},
        ),
        Template(
            f"CUDA graph memory profiling is disabled ({_ESTIMATE}=0). Without it, CUDA graph memory is not accounted for"
            " during KV cache allocation, which may require lowering --gpu-memory-utilization to avoid OOM. Consider"
            " re-enabling it (the default as of v0.21.0) and increasing --gpu-memory-utilization from {current} to"
            " {suggested}.",
            versions=">=0.20.0",
            example="CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). Without it, CUDA"
            " graph memory is not accounted for during KV cache allocation, which may require lowering"
            " --gpu-memory-utilization to avoid OOM. Consider re-enabling it (the default as of v0.21.0) and increasing"
            " --gpu-memory-utilization from 0.9200 to 0.9277.",
            values={"enabled": False},
        ),
        Template(
            f"CUDA graph memory profiling is enabled ({_ESTIMATE}=1). This will become the default in v0.19. "
            + _EQUAL
            + _KEEP,
            versions=">=0.18.0,<0.20.0",
            example="CUDA graph memory profiling is enabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1). This will become"
            " the default in v0.19. The current --gpu-memory-utilization=0.9000 is equivalent to"
            " --gpu-memory-utilization=0.8923 without CUDA graph memory profiling. To maintain the same effective KV cache"
            " size as before, increase --gpu-memory-utilization to 0.9077.",
            values={"enabled": True},
        ),
        Template(
            f"In v0.19, CUDA graph memory profiling will be enabled by default ({_ESTIMATE}=1), which more accurately"
            f" accounts for CUDA graph memory during KV cache allocation. To try it now, set {_ESTIMATE}=1 and increase"
            " --gpu-memory-utilization from {current} to {suggested} to maintain the same effective KV cache size.",
            versions=">=0.18.0,<0.20.0",
            example="In v0.19, CUDA graph memory profiling will be enabled by default"
            " (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA graph memory during KV"
            " cache allocation. To try it now, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase"
            " --gpu-memory-utilization from 0.9000 to 0.9077 to maintain the same effective KV cache size.",
            values={"enabled": False},
        ),
    )


class GraphCaptureStart(Record):
    """V0 is about to capture graphs, or says what to do when that runs out of memory (worker/model_runner.py).

    The `1~3 GiB` in one wording is constant text, no measurement.
    """

    templates = (
        Template(
            "Capturing the model for CUDA graphs. " + _STATIC + _EAGER,
            versions=">=0.2.6,<0.6.4",
            example="Capturing the model for CUDA graphs. " + _STATIC + _EAGER,
        ),
        Template(
            "Capturing cudagraphs for decoding. " + _STATIC + _EAGER + "[[ " + _IF_OUT + "]]",
            versions=">=0.6.4,<0.11",
            example="Capturing cudagraphs for decoding. " + _STATIC + _EAGER + " " + _IF_OUT,
        ),
        Template(_IF_OUT, versions=">=0.6.4,<0.6.6", example=_IF_OUT),
        Template(
            _THREE + "[[ You can also reduce the `max_num_seqs` as needed to decrease memory usage.]]",
            versions=">=0.2.7,<0.6.4",
            example=_THREE + " You can also reduce the `max_num_seqs` as needed to decrease memory usage.",
        ),
    )


_SKIP = "Skipping CUDA graph capture. "


class GraphCaptureSkipped(Record):
    """No graphs are captured (gpu_model_runner.py; v1/worker/gpu/model_runner.py)."""

    reason: str
    """level, mode or pipeline (parallel)."""

    templates = (
        Template(
            _SKIP + "To turn on CUDA graph capture, ensure `cudagraph_mode` was not manually set to `NONE`",
            versions=">=0.10.1",
            example=_SKIP + "To turn on CUDA graph capture, ensure `cudagraph_mode` was not manually set to `NONE`",
            values={"reason": "mode"},
        ),
        Template(
            "Skipping encoder and decoder CUDA graph capture. To enable encoder capture, ensure `cudagraph_mm_encoder` is"
            " enabled; to enable decoder capture, ensure `cudagraph_mode` is not `NONE`.",
            versions=">=0.28.0",
            example="Skipping encoder and decoder CUDA graph capture. To enable encoder capture, ensure"
            " `cudagraph_mm_encoder` is enabled; to enable decoder capture, ensure `cudagraph_mode` is not `NONE`.",
            values={"reason": "mode"},
        ),
        Template(
            "Skipping CUDA graph capture because pipeline parallel is enabled. Pipeline parallel is currently eager-only.",
            versions=">=0.17.0,<0.19.0",
            example="Skipping CUDA graph capture because pipeline parallel is enabled. Pipeline parallel is currently"
            " eager-only.",
            values={"reason": "pipeline"},
        ),
        Template(
            _SKIP
            + "To turn on CUDA graph capture, set -O {_} and ensure `use_cudagraph` was not manually set to False",
            versions=">=0.9.2,<0.10.1",
            example=_SKIP + "To turn on CUDA graph capture, set -O 3 and ensure `use_cudagraph` was not manually set to"
            " False",
            values={"reason": "level"},
        ),
        Template(
            _SKIP + "Please add -O {_} to use CUDA graphs.",
            versions=">=0.6.5,<0.9.2",
            example=_SKIP + "Please add -O 3 to use CUDA graphs.",
            values={"reason": "level"},
        ),
        Template(
            _SKIP + "Please set VLLM_TORCH_COMPILE_LEVEL={_} to use CUDA graphs.",
            versions=">=0.6.4,<0.6.5",
            example=_SKIP + "Please set VLLM_TORCH_COMPILE_LEVEL=3 to use CUDA graphs.",
            values={"reason": "level"},
        ),
    )


_INSTEAD = "[[; setting cudagraph_mode={becomes}[[ because {_}]]]][[; please try {_}]]"


class GraphModeUnsupported(Record):
    """The attention back end cannot do the graph mode asked for: downgraded, or refused when nothing replaces it."""

    mode: Word
    """The mode asked for."""
    backend: str
    """The attention back end."""
    support: str
    """What it supports."""
    speculative: bool
    """Whether it is speculative decoding that it does not support."""
    becomes: Word | None = None
    """The mode used instead."""

    templates = (
        Template(
            "CUDAGraphMode.{mode} is not supported with spec-decode for attention backend {backend} (support: {support})"
            + _INSTEAD,
            versions=">=0.10.1",
            example="CUDAGraphMode.FULL is not supported with spec-decode for attention backend FlashMLABackend (support:"
            " AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); setting cudagraph_mode=PIECEWISE",
            values={"speculative": True},
        ),
        Template(
            "CUDAGraphMode.{mode} is not supported with {backend} backend (support: {support})" + _INSTEAD,
            versions=">=0.10.1",
            example="CUDAGraphMode.FULL is not supported with FlashInferBackend backend (support:"
            " AttentionCGSupport.UNIFORM_BATCH); setting cudagraph_mode=FULL_AND_PIECEWISE",
            values={"speculative": False},
        ),
        Template(
            "CUDAGraphMode.{mode} is not supported with {backend} backend (support:{support}) ; please try {_}",
            versions=">=0.10.1",
            example="CUDAGraphMode.FULL is not supported with GDNBackend backend (support:AttentionCGSupport.NEVER) ; please"
            " try cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE",
            values={"speculative": False},
        ),
    )


class EncoderGraphCapture(Record):
    """Graphs of the multimodal encoder were captured (v1/worker/encoder_cudagraph.py, mm_encoder_model_runner.py)."""

    graphs: int
    """How many."""
    seconds: float | None = None
    """Time taken, where the encoder runs alone."""
    gib: GiB | None = None
    """Memory taken, where the encoder runs alone."""

    templates = (
        Template(
            "Encoder graph capturing finished in {seconds} secs, took {gib} GiB ({graphs} graphs)",
            versions=">=0.31.0",
            example="Encoder graph capturing finished in 4 secs, took 0.21 GiB (12 graphs)",
        ),
        Template(
            "Encoder CUDA graph capture complete. Captured {graphs} {_}",
            versions=">=0.19.0",
            example="Encoder CUDA graph capture complete. Captured 12 graphs across 2 paths.",
        ),
    )


class GraphEstimateIncomplete(Record):
    """Some graphs were left out of the estimate (a build between releases, with context parallelism)."""

    graphs: int
    """How many."""

    templates = (
        Template(
            "Skipping FULL CUDA graph memory profiling under DCP ({graphs} graph(s)); estimating from piecewise graphs only",
            versions="",
            source="fork",
            example="Skipping FULL CUDA graph memory profiling under DCP (4 graph(s)); estimating from piecewise graphs only",
        ),
    )


class EncoderGraphMissed(Record):
    """A multimodal input was larger than every captured graph of the encoder (v1/worker/encoder_cudagraph.py; DEBUG)."""

    batch_tokens: int
    """Its tokens."""

    templates = (
        Template(
            "Encoder CUDA graph fallback to eager: no budget for {batch_tokens} tokens from {_}",
            versions=">=0.19.0,<0.27",
            example="Encoder CUDA graph fallback to eager: no budget for 20000 tokens from 3 images",
        ),
    )
