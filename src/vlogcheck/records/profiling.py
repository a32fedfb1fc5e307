"""The memory profiler's smaller lines: what it started from, what it measured, what it was told to skip."""

from __future__ import annotations

from typing import Any

from vlogcheck._lazy import pattern
from vlogcheck.template import Record, Size, Template, Word, read_gib
from vlogcheck.units import GiB

__all__ = [
    "ExternalWeights",
    "FreeMemoryGrew",
    "HPUGraphMemory",
    "HPUMemorySplit",
    "MemoryAfterProfiling",
    "MemorySnapshot",
    "ProfilingResult",
    "RequestedMemory",
    "XPUMemory",
]


class RequestedMemory(Record):
    """What one worker may take, as the profiler starts (v1/worker/gpu_worker.py, xpu_worker.py; DEBUG)."""

    requested_gib: GiB
    """total × utilization."""
    free_gib: GiB | None = None
    """Free device memory when the worker started."""
    current_free_gib: GiB | None = None
    """Free device memory after profiling (until 0.10.0)."""
    gpu_memory_utilization: float | None = None
    """Share asked for."""

    templates = (
        Template(
            "Initial free memory: {free_gib} GiB; Requested memory: {gpu_memory_utilization} (util), {requested_gib} GiB",
            versions=">=0.10.1",
            example="Initial free memory: 78.60 GiB; Requested memory: 0.90 (util), 71.19 GiB",
        ),
        Template(
            "Initial free memory: {free_gib} GiB, free memory: {current_free_gib} GiB, requested GPU memory:"
            " {requested_gib} GiB",
            versions=">=0.9.1,<0.10.1",
            example="Initial free memory: 78.60 GiB, free memory: 61.20 GiB, requested GPU memory: 71.19 GiB",
        ),
        Template(
            "worker requested memory: {requested_gib}GiB",
            versions=">=0.14.0",
            example="worker requested memory: 71.19GiB",
        ),
    )


class MemoryAfterProfiling(Record):
    """Free device memory after the profile run (v1/worker/gpu_worker.py; DEBUG)."""

    free_gib: GiB
    """Free memory on the device."""
    within_requested_gib: GiB
    """Part of it inside the requested memory."""

    templates = (
        Template(
            "Free memory after profiling: {free_gib} GiB (total), {within_requested_gib} GiB (within requested)",
            versions=">=0.10.1",
            example="Free memory after profiling: 61.20 GiB (total), 53.80 GiB (within requested)",
        ),
    )


class ProfilingResult(Record):
    """What the profile run of one worker measured (utils/mem_utils.py; DEBUG)."""

    seconds: float
    """Time profiling took."""
    non_kv_gib: GiB
    """Everything that is not KV cache."""
    activation_gib: GiB
    """Rise of torch's peak: activations."""
    non_torch_gib: GiB | None = None
    """Rise of memory outside torch's allocator, until 0.26."""
    weights_gib: GiB | None = None
    """Model weights; from 0.27 part of `consumed_gib`."""
    consumed_gib: GiB | None = None
    """Drop of free device memory: weights and non-torch together, from 0.27.1."""

    templates = (
        Template(
            "Memory profiling takes {seconds} seconds. Total non KV cache memory: {non_kv_gib}GiB; torch peak memory"
            " increase: {activation_gib}GiB; non-torch forward increase memory: {non_torch_gib}GiB; weights memory:"
            " {weights_gib}GiB.",
            versions=">=0.9.1,<0.27.0",
            example="Memory profiling takes 4.02 seconds. Total non KV cache memory: 17.31GiB; torch peak memory increase:"
            " 1.41GiB; non-torch forward increase memory: 0.30GiB; weights memory: 15.27GiB.",
        ),
        Template(
            "Memory profiling takes {seconds} seconds. Total non KV cache memory: {non_kv_gib}GiB; torch peak memory"
            " increase: {activation_gib}GiB; total consumed (from mem_get_info): {consumed_gib}GiB; weights memory:"
            " {weights_gib}GiB.",
            versions=">=0.27.0",
            example="Memory profiling takes 4.02 seconds. Total non KV cache memory: 17.31GiB; torch peak memory increase:"
            " 1.41GiB; total consumed (from mem_get_info): 15.9GiB; weights memory: 15.27GiB.",
        ),
    )


_READING = pattern(r"(\w+)=(-?\d+(?:\.\d+)?)GiB")


class MemorySnapshot(Record):
    """The device as the worker found it (v1/worker/gpu_worker.py, xpu_worker.py; DEBUG)."""

    reading: str
    """The readings as printed."""
    free_gib: GiB | None = None
    """Free device memory."""
    total_gib: GiB | None = None
    """Device memory in total."""
    used_gib: GiB | None = None
    """Device memory in use by anybody."""
    torch_gib: GiB | None = None
    """Memory in torch's allocator."""
    non_torch_gib: GiB | None = None
    """The rest of the memory in use."""

    templates = (
        Template(
            "worker init memory snapshot: {reading}",
            versions=">=0.14.0",
            example="worker init memory snapshot: torch_peak=0.0GiB, free_memory=78.6GiB, total_memory=79.18GiB,"
            " cuda_memory=0.58GiB, torch_memory=0.0GiB, non_torch_memory=0.58GiB, timestamp=1760000000.5,"
            " auto_measure=True",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take the readings apart."""
        found = {name: read_gib(number) for name, number in _READING.findall(values["reading"])}
        named = {
            "free_gib": found.get("free_memory"),
            "total_gib": found.get("total_memory"),
            "used_gib": found.get("cuda_memory"),
            "torch_gib": found.get("torch_memory"),
            "non_torch_gib": found.get("non_torch_memory"),
        }
        return {**values, **{name: value for name, value in named.items() if value is not None}}


class FreeMemoryGrew(Record):
    """Somebody gave memory back while the worker profiled, so the difference could not be used (gpu_worker.py)."""

    grew_gib: GiB
    """By how much free memory grew."""
    initial_free_gib: GiB
    """Free memory before."""
    current_free_gib: GiB
    """Free memory after."""
    reserved_gib: GiB
    """What torch had reserved, used in place of the difference."""

    templates = (
        Template(
            "Free memory grew by {grew_gib} GiB during profiling (initial {initial_free_gib} GiB, current"
            " {current_free_gib} GiB). Sizing the KV cache from the {reserved_gib} GiB torch reserved instead of the"
            " profiling difference.",
            versions=">=0.29.0",
            example="Free memory grew by 1.2 GiB during profiling (initial 61.4 GiB, current 62.6 GiB). Sizing the KV cache"
            " from the 16.8 GiB torch reserved instead of the profiling difference.",
        ),
    )


class ExternalWeights(Record):
    """Weights live in another process; the utilization budget holds them too (v1/worker/utils.py)."""

    requested_gib: GiB
    """total × utilization."""
    external_gib: GiB
    """Weights the other process holds."""
    engine_gib: GiB
    """What remains for this engine."""

    templates = (
        Template(
            "Weights are held outside this process: of the {requested_gib} GiB utilization budget, {external_gib} GiB is"
            " externally held and {engine_gib} GiB remains for the engine's own allocations.",
            versions=">=0.32.0",
            example="Weights are held outside this process: of the 72.77 GiB utilization budget, 15.27 GiB is externally"
            " held and 57.5 GiB remains for the engine's own allocations.",
        ),
    )


class XPUMemory(Record):
    """Readings of an Intel GPU before and after the profile run (xpu_worker.py; printed as MB, meaning MiB)."""

    free_gib: GiB
    """Free device memory."""
    total_gib: GiB | None = None
    """Device memory in total (before)."""
    weights_gib: GiB | None = None
    """What loading the model took (before)."""
    peak_gib: GiB | None = None
    """Peak use (after)."""
    torch_gib: GiB | None = None
    """Memory in torch's allocator (after)."""
    non_torch_gib: GiB | None = None
    """Memory outside it (after)."""

    templates = (
        Template(
            "Before memory profiling run, total GPU memory: {total_gib:MiB} MB, model load takes {weights_gib:MiB} MB, free"
            " gpu memory is {free_gib:MiB} MB.",
            versions=">=0.9.2,<0.16",
            example="Before memory profiling run, total GPU memory: 48946.00 MB, model load takes 15321.00 MB, free gpu"
            " memory is 33000.00 MB.",
        ),
        Template(
            "After memory profiling run, peak memory usage is {peak_gib:MiB} MB,torch mem is {torch_gib:MiB} MB, non-torch"
            " mem is {non_torch_gib:MiB} MB, free gpu memory is {free_gib:MiB} MB.",
            versions=">=0.9.2,<0.16",
            example="After memory profiling run, peak memory usage is 17010.50 MB,torch mem is 15402.25 MB, non-torch mem is"
            " 512.00 MB, free gpu memory is 31290.00 MB.",
        ),
    )


class HPUMemorySplit(Record):
    """How Gaudi's free memory is divided; the utilization applies to what is free (worker/hpu_worker.py)."""

    free_gib: Size
    """Free device memory."""
    usable_gib: Size
    """free × utilization."""
    gpu_memory_utilization: float
    """Share of the free memory."""
    graphs_gib: Size
    """Set aside for HPU graphs."""
    graph_share: Word
    """Share set aside for HPU graphs."""
    kv_cache_gib: Size
    """What remains for the KV cache."""

    templates = (
        Template(
            "Free device memory: {free_gib}, {usable_gib} usable (gpu_memory_utilization={gpu_memory_utilization}),"
            " {graphs_gib} reserved for HPUGraphs (VLLM_GRAPH_RESERVED_MEM={graph_share}), {kv_cache_gib} reserved for KV"
            " cache",
            versions=">=0.6.4,<0.10",
            example="Free device memory: 79.16 GiB, 71.24 GiB usable (gpu_memory_utilization=0.9), 7.124 GiB reserved for"
            " HPUGraphs (VLLM_GRAPH_RESERVED_MEM=0.1), 64.12 GiB reserved for KV cache",
        ),
        Template(
            "Free device memory: {free_gib}, {usable_gib} usable (gpu_memory_utilization={gpu_memory_utilization}),"
            " {graphs_gib} reserved for HPUGraphs (VLLM_GRAPH_RESERVED_MEM={graph_share}), {_} reserved for KV cache dummy"
            " block {kv_cache_gib} reserved for usable KV cache",
            versions="",
            source="vllm-gaudi",
            example="Free device memory: 79.16 GiB, 71.24 GiB usable (gpu_memory_utilization=0.9), 7.124 GiB reserved for"
            " HPUGraphs (VLLM_GRAPH_RESERVED_MEM=0.1), 16.25 MiB reserved for KV cache dummy block 64.1 GiB reserved for"
            " usable KV cache",
        ),
    )


class HPUGraphMemory(Record):
    """How the memory for Gaudi's graphs is divided (worker/hpu_model_runner.py)."""

    graphs_gib: Size
    """Memory for graphs."""
    free_gib: Size
    """Free device memory."""
    prompt_gib: Size
    """Part for prompts."""
    decode_gib: Size
    """Part for decoding."""

    templates = (
        Template(
            "Using {graphs_gib}/{free_gib} of free device memory for HPUGraphs, {prompt_gib} for prompt and {decode_gib} for"
            " decode (VLLM_GRAPH_PROMPT_RATIO={_})",
            versions=">=0.6.4,<0.10",
            example="Using 7.124 GiB/70.12 GiB of free device memory for HPUGraphs, 2.137 GiB for prompt and 4.987 GiB for"
            " decode (VLLM_GRAPH_PROMPT_RATIO=0.3)",
        ),
    )
