"""What profiling found, in one summary line per worker: the terms between total memory and the KV pool."""

from __future__ import annotations

from typing import ClassVar

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["KVCacheMemory", "KVCacheMemoryBytes", "MemoryProfile", "MemoryUse"]


class KVCacheMemory(Record):
    """Memory one worker has left for the KV cache (v1/worker/gpu_worker.py)."""

    gib: GiB
    """Memory left; negative when the weights alone exceed the budget."""
    total_gib: GiB | None = None
    """Device memory in total, where the line names it (Ascend)."""

    templates: ClassVar[tuple[Template, ...]] = (
        Template(
            "Available KV cache memory: {gib} GiB",
            versions=">=0.9.1",
            example="Available KV cache memory: 60.31 GiB",
        ),
        Template(
            "Available KV cache memory: {gib} GiB (halved for workspace)",
            versions=">=0.23",
            source="vllm-ascend",
            example="Available KV cache memory: 9.87 GiB (halved for workspace)",
        ),
        Template(
            "Available KV cache memory: {gib} GiB ({_}-scoped)",
            versions="",
            source="vllm-omni",
            example="Available KV cache memory: 21.4 GiB (process-scoped)",
        ),
    )


class KVCacheMemoryBytes(KVCacheMemory):
    """The same under another name: a line that prints bytes and the device's total (vllm-ascend, worker_v1.py)."""

    gib: GiB
    """Memory left; negative when the weights alone exceed the budget."""
    total_gib: GiB | None = None
    """Device memory in total."""

    templates = (
        Template(
            "Available memory: {gib:bytes}, total memory: {total_gib:bytes}",
            versions=">=0.9,<0.18",
            source="vllm-ascend",
            example="Available memory: 40432865280, total memory: 65452113920",
        ),
    )


class MemoryProfile(Record):
    """V0's profiling summary of one worker: requested memory and its terms (worker/worker.py)."""

    total_gib: GiB
    """Device memory in total."""
    gpu_memory_utilization: float
    """Share vLLM may take."""
    requested_gib: GiB | None = None
    """total × utilization."""
    weights_gib: GiB | None = None
    """Model weights."""
    non_torch_gib: GiB
    """Memory outside torch's allocator."""
    activation_gib: GiB
    """Peak activation memory."""
    kv_cache_gib: GiB
    """What remains for the KV cache."""
    initial_gib: GiB | None = None
    """Memory in use before the model was loaded (0.6.4 only: other processes count)."""
    after_profile_gib: GiB | None = None
    """Memory in use after the profile run (0.6.4 only)."""
    seconds: float | None = None
    """Time profiling took."""

    templates = (
        Template(
            "Memory profiling takes {seconds} seconds\n"
            "the current vLLM instance can use total_gpu_memory ({total_gib}GiB) x gpu_memory_utilization"
            " ({gpu_memory_utilization}) = {requested_gib}GiB\n"
            "model weights take {weights_gib}GiB; non_torch_memory takes {non_torch_gib}GiB; PyTorch activation peak memory"
            " takes {activation_gib}GiB; the rest of the memory reserved for KV Cache is {kv_cache_gib}GiB.",
            versions=">=0.6.5,<0.11",
            example="Memory profiling takes 3.21 seconds\n"
            "the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization (0.90) = 71.19GiB\n"
            "model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes 1.26GiB;"
            " the rest of the memory reserved for KV Cache is 54.85GiB.",
        ),
        Template(
            "the current vLLM instance can use total_gpu_memory ({total_gib}GiB) x gpu_memory_utilization"
            " ({gpu_memory_utilization}) = {requested_gib}GiB\n"
            "model weights take {weights_gib}GiB; non_torch_memory takes {non_torch_gib}GiB; PyTorch activation peak memory"
            " takes {activation_gib}GiB; the rest of the memory reserved for KV Cache is {kv_cache_gib}GiB.",
            versions="",
            source="copy",  # of the lines with sizes only
            example="the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization (0.90) = 71.19GiB\n"
            "model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes 1.26GiB;"
            " the rest of the memory reserved for KV Cache is 54.85GiB.",
        ),
        Template(
            "Memory profiling results: total_gpu_memory={total_gib}GiB initial_memory_usage={initial_gib}GiB"
            " peak_torch_memory={activation_gib}GiB memory_usage_post_profile={after_profile_gib}GiB"
            " non_torch_memory={non_torch_gib}GiB kv_cache_size={kv_cache_gib}GiB"
            " gpu_memory_utilization={gpu_memory_utilization}",
            versions=">=0.6.4.post1,<0.6.5",
            example="Memory profiling results: total_gpu_memory=79.10GiB initial_memory_usage=15.69GiB"
            " peak_torch_memory=16.20GiB memory_usage_post_profile=15.80GiB non_torch_memory=0.75GiB"
            " kv_cache_size=54.23GiB gpu_memory_utilization=0.90",
        ),
        Template(
            "Memory profiling results: total_gpu_memory={total_gib}GiB initial_memory_usage={initial_gib}GiB"
            " peak_torch_memory={activation_gib}GiB memory_usage_post_profile={after_profile_gib}Gib"
            " non_torch_memory={non_torch_gib}GiB kv_cache_size={kv_cache_gib}GiB"
            " gpu_memory_utilization={gpu_memory_utilization}",
            versions="==0.6.4",
            example="Memory profiling results: total_gpu_memory=79.10GiB initial_memory_usage=15.69GiB"
            " peak_torch_memory=16.20GiB memory_usage_post_profile=15.80Gib non_torch_memory=0.75GiB"
            " kv_cache_size=54.23GiB gpu_memory_utilization=0.90",
        ),
        Template(  # builds for ROCm of December 2024
            "Memory profiling results: duration={_} seconds, total_gpu_memory={total_gib}GiB,"
            " initial_memory_usage={initial_gib}GiB, peak_torch_memory={activation_gib}GiB,"
            " memory_usage_post_profile={after_profile_gib}GiB, non_torch_memory={non_torch_gib}GiB,"
            " kv_cache_size={kv_cache_gib}GiB, gpu_memory_utilization={gpu_memory_utilization}.",
            versions="",
            source="vllm-rocm",
            example="Memory profiling results: duration=39.11 seconds, total_gpu_memory=79.10GiB, initial_memory_usage=15.69GiB,"
            " peak_torch_memory=16.20GiB, memory_usage_post_profile=15.80GiB, non_torch_memory=0.75GiB,"
            " kv_cache_size=54.23GiB, gpu_memory_utilization=0.90.",
        ),
    )


_USE = (
    "Free memory on device ({free_gib}/{total_gib} GiB) on startup. Desired GPU memory utilization is"
    " ({gpu_memory_utilization}, {requested_gib} GiB). "
)
_SPLIT = (
    "Actual usage is {weights_gib} GiB for weight, {activation_gib} GiB for peak activation, {non_torch_gib} GiB for"
    " non-torch memory, and {graphs_gib} GiB for CUDAGraph memory. "
)
_CONSUMED = (
    "Actual usage is {consumed_gib} GiB for consumed memory (weights + non-torch), {activation_gib} GiB for peak"
    " activation, and {graphs_gib} GiB for CUDAGraph memory. "
)
_NPU = (
    "Actual usage: {weights_gib} GiB for weights, {activation_gib} GiB for peak activation, {non_torch_gib} GiB for non-torch"
    " memory, {graphs_gib} GiB for NPU graph memory.[[ Replace gpu_memory_utilization with"
    " `--kv-cache-memory={suggested_bytes}` ({_} GiB) to fit into requested memory, or `--kv-cache-memory={full_bytes}`"
    " ({_} GiB) to fully utilize NPU free memory.]] Current KV cache memory: {kv_cache_gib} GiB."
)
_SUGGEST = (
    "Replace gpu_memory_utilization config with `--kv-cache-memory={suggested_bytes}` ({_} GiB) to fit into requested"
    " memory, or `--kv-cache-memory={full_bytes}` ({_} GiB) to fully utilize gpu memory. Current kv cache memory in use"
    " is {kv_cache_gib} GiB."
)


class MemoryUse(Record):
    """The summary of one worker after warm-up, with the `--kv-cache-memory` suggestion (v1/worker/gpu_worker.py)."""

    free_gib: GiB
    """Free device memory at start."""
    total_gib: GiB
    """Device memory in total."""
    gpu_memory_utilization: float
    """Share asked for."""
    requested_gib: GiB
    """total × utilization."""
    weights_gib: GiB | None = None
    """Model weights; from 0.27.1 part of `consumed_gib`."""
    consumed_gib: GiB | None = None
    """Weights and non-torch memory together, from 0.27.1."""
    activation_gib: GiB
    """Peak activation; holds the graph estimate in 0.18.1 and from 0.27.1 on."""
    non_torch_gib: GiB | None = None
    """Memory outside torch's allocator, until 0.26."""
    graphs_gib: GiB
    """Memory the captured graphs took."""
    suggested_bytes: int | None = None
    """`--kv-cache-memory` that fits the requested memory."""
    full_bytes: int | None = None
    """`--kv-cache-memory` that uses the whole device."""
    kv_cache_bytes: int | None = None
    """KV cache memory in use, in bytes (0.10.2)."""
    kv_cache_gib: GiB | None = None
    """KV cache memory in use."""

    templates = (
        Template(
            _USE + _CONSUMED + _SUGGEST,
            versions=">=0.27.0",
            example="Free memory on device (78.6/79.18 GiB) on startup. Desired GPU memory utilization is (0.92, 72.84 GiB)."
            " Actual usage is 15.6 GiB for consumed memory (weights + non-torch), 1.26 GiB for peak activation, and 0.42 GiB"
            " for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=59000000000` (54.95 GiB)"
            " to fit into requested memory, or `--kv-cache-memory=65000000000` (60.54 GiB) to fully utilize gpu memory."
            " Current kv cache memory in use is 55.98 GiB.",
        ),
        Template(
            _USE + _SPLIT + _SUGGEST,
            versions=">=0.11.0,<0.27.0",
            example="Free memory on device (78.6/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.26 GiB)."
            " Actual usage is 14.99 GiB for weight, 1.26 GiB for peak activation, 0.09 GiB for non-torch memory, and 0.42"
            " GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=58000000000`"
            " (54.02 GiB) to fit into requested memory, or `--kv-cache-memory=65000000000` (60.54 GiB) to fully utilize"
            " gpu memory. Current kv cache memory in use is 54.92 GiB.",
        ),
        Template(
            _USE
            + _SPLIT
            + "Replace gpu_memory_utilization config with `--kv-cache-memory={suggested_bytes}` to fit into"
            " requested memory, or `--kv-cache-memory={full_bytes}` to fully utilize gpu memory. Current kv cache memory in"
            " use is {kv_cache_bytes} bytes.",
            versions=">=0.10.2,<0.11.0",
            example="Free memory on device (78.60/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.26 GiB)."
            " Actual usage is 14.99 GiB for weight, 1.26 GiB for peak activation, 0.09 GiB for non-torch memory, and 0.42"
            " GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=58000000000` to fit"
            " into requested memory, or `--kv-cache-memory=65000000000` to fully utilize gpu memory. Current kv cache memory"
            " in use is 58970000000 bytes.",
        ),
        Template(
            _USE + _NPU,
            versions=">=0.23",
            source="vllm-ascend",
            example="Free memory on device (60.2/60.96 GiB) on startup. Desired GPU memory utilization is (0.9, 54.86 GiB)."
            " Actual usage: 15.3 GiB for weights, 1.41 GiB for peak activation, 0.3 GiB for non-torch memory, 0.61 GiB for"
            " NPU graph memory. Replace gpu_memory_utilization with `--kv-cache-memory=39900000000` (37.16 GiB) to fit into"
            " requested memory, or `--kv-cache-memory=45600000000` (42.47 GiB) to fully utilize NPU free memory. Current KV"
            " cache memory: 37.85 GiB.",
        ),
    )
