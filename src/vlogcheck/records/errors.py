"""Refusals: what vLLM will not start with, and what it says about the memory it found."""

from __future__ import annotations

from typing import Any

from vlogcheck.template import Record, Template, Word, read_gib
from vlogcheck.units import GiB

__all__ = [
    "AutoFitImpossible",
    "ExternalWeightsTooLarge",
    "FreeMemoryTooLow",
    "KVCacheRequestTooLarge",
    "KVCacheTokensTooFew",
    "KVCacheTooSmall",
    "NoKVCacheMemory",
    "OpenVINOMemory",
    "OpenVINOMemoryTooSmall",
    "ProfilingMemoryChanged",
]

_LESS = (
    "({free_gib}/{total_gib} GiB) on startup is less than desired GPU memory utilization ({gpu_memory_utilization},"
    " {requested_gib} GiB). "
)
_DECREASE = "Decrease GPU memory utilization or reduce GPU memory used by other processes."
_CPU_LESS = (
    "Available memory on node {device} ({free_gib}/{total_gib} GiB) on startup is less than desired CPU memory utilization"
    " ({gpu_memory_utilization}, {requested_gib} GiB). "
)
_CPU_FLAG = (
    "On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory reserved (despite its name)."
    " To resolve: "
)


class FreeMemoryTooLow(Record):
    """Refused to start: less memory is free than utilization × total asks for (worker/utils.py, cpu_worker.py)."""

    free_gib: GiB
    """Free memory at start."""
    total_gib: GiB
    """Memory in total."""
    gpu_memory_utilization: float
    """Share asked for."""
    requested_gib: GiB
    """total × utilization; less what another process holds for this engine where `external` says so."""
    device: Word | None = None
    """Device or NUMA node."""
    external: bool = False
    """Whether weights held by another process are taken off the budget (0.32)."""

    templates = (
        Template(
            "Free memory on device " + _LESS + _DECREASE,
            versions=">=0.9.1,<0.14",
            example="Free memory on device (4.80/63.98 GiB) on startup is less than desired GPU memory utilization"
            " (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        ),
        Template(
            "Free memory on device {device} " + _LESS + _DECREASE,
            versions=">=0.14.0",
            example="Free memory on device cuda:0 (4.8/63.98 GiB) on startup is less than desired GPU memory utilization"
            " (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        ),
        Template(
            "Free memory on device {device} ({free_gib}/{total_gib} GiB) on startup is less than the engine's budget after"
            " excluding external process's weights ({gpu_memory_utilization}, {requested_gib} GiB). " + _DECREASE,
            versions=">=0.32.0",
            example="Free memory on device cuda:0 (40.2/79.1 GiB) on startup is less than the engine's budget after"
            " excluding external process's weights (0.92, 57.5 GiB). Decrease GPU memory utilization or reduce GPU memory"
            " used by other processes.",
            values={"external": True},
        ),
        Template(
            _CPU_LESS
            + _CPU_FLAG
            + "decrease `--gpu-memory-utilization` (e.g. `--gpu-memory-utilization 0.5`) or reduce CPU"
            " memory used by other processes.",
            versions=">=0.22.0,<0.33.0",
            example="Available memory on node 0 (1.8/3.0 GiB) on startup is less than desired CPU memory utilization (0.92,"
            " 2.76 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory"
            " reserved (despite its name). To resolve: decrease `--gpu-memory-utilization` (e.g. `--gpu-memory-utilization"
            " 0.5`) or reduce CPU memory used by other processes.",
        ),
        Template(
            _CPU_LESS + "Decrease --gpu-memory-utilization or reduce CPU memory used by other processes.",
            versions=">=0.20.0,<0.22.0",
            example="Available memory on node 0 (10.1/188.6 GiB) on startup is less than desired CPU memory utilization"
            " (0.92, 173.51 GiB). Decrease --gpu-memory-utilization or reduce CPU memory used by other processes.",
        ),
    )


class ExternalWeightsTooLarge(Record):
    """Refused to start: the weights another process holds exceed the budget already (v1/worker/utils.py)."""

    device: Word
    """The device."""
    external_gib: GiB
    """Weights the other process holds."""
    total_gib: GiB
    """Device memory in total."""
    gpu_memory_utilization: float
    """Share asked for."""
    requested_gib: GiB
    """total × utilization."""

    templates = (
        Template(
            "Externally held weights on device {device} ({external_gib}/{total_gib} GiB) exceed the desired GPU memory"
            " utilization ({gpu_memory_utilization}, {requested_gib} GiB). Increase GPU memory utilization or reduce GPU"
            " memory used by other processes.",
            versions=">=0.32.0",
            example="Externally held weights on device cuda:0 (15.27/79.1 GiB) exceed the desired GPU memory utilization"
            " (0.15, 11.87 GiB). Increase GPU memory utilization or reduce GPU memory used by other processes.",
        ),
    )


_SERVE_ONE = (
    " max seq len ({max_model_len}), [[(]]{needed_gib} GiB KV cache is needed, which is larger than the available KV cache"
    " memory ({available_gib} GiB)."
)


class KVCacheTooSmall(Record):
    """Refused to start: the KV cache cannot hold one request of the longest length (kv_cache_utils.py)."""

    max_model_len: int
    """The length asked for."""
    needed_gib: GiB
    """KV memory one such request needs."""
    available_gib: GiB
    """KV memory there is."""
    estimated_max_model_len: int | None = None
    """The longest length vLLM says would fit."""

    templates = (
        Template(
            "To serve at least one request with the models's" + _SERVE_ONE + "[[ Based on the available memory, the"
            " estimated maximum model length is {estimated_max_model_len}.]][[ Based on the available memory,]]{_}",
            versions=">=0.8.3,<0.22",
            example="To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed,"
            " which is larger than the available KV cache memory (5.40 GiB). Based on the available memory, the estimated"
            " maximum model length is 44224. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when"
            " initializing the engine.",
        ),
        Template(
            "To serve at least one request with the model's" + _SERVE_ONE + "[[ Based on the available memory, the"
            " estimated maximum model length is {estimated_max_model_len}.]]{_}",
            versions=">=0.22.0",
            example="To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed,"
            " which is larger than the available KV cache memory (5.4 GiB). Based on the available memory, the estimated"
            " maximum model length is 44224. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the"
            " CPU backend) or decreasing `max_model_len` when initializing the engine.",
        ),
        Template(
            "To serve at least one request with the models's max seq len ({max_model_len}), ({needed_gib} GB KV cache is"
            " needed, which is larger than the available KV cache memory ({available_gib} GB).{_}",
            versions=">=0.7.0,<0.8.3",
            example="To serve at least one request with the models's max seq len (131072), (16.00 GB KV cache is needed,"
            " which is larger than the available KV cache memory (5.40 GB). Try increasing `gpu_memory_utilization` or"
            " decreasing `max_model_len` when initializing the engine.",
        ),
    )


class KVCacheTokensTooFew(Record):
    """Refused to start: the KV cache holds fewer tokens than the longest request (V0; V1 until 0.6.6)."""

    max_model_len: int
    """The length asked for."""
    tokens: int
    """Tokens the KV cache holds."""

    templates = (
        Template(
            "The model's max seq len ({max_model_len}) is larger than the maximum number of tokens that can be stored in KV"
            " cache ({tokens}).{_}",
            versions=">=0.2.7,<0.11",
            example="The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV"
            " cache (20464). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the"
            " engine.",
        ),
    )


class NoKVCacheMemory(Record):
    """Refused to start: nothing is left for the KV cache."""

    device: Word | None = None
    """NUMA node (CPU, 0.33)."""
    consumed_gib: GiB | None = None
    """What the worker uses already (CPU, 0.33)."""
    requested_gib: GiB | None = None
    """What was reserved for it (CPU, 0.33)."""
    limit_gb: float | None = None
    """Metal: what the GPU may use of the machine's memory; GB are 1e9 bytes."""
    usable_gb: float | None = None
    """Metal: limit × fraction."""
    fraction: float | None = None
    """Metal: share of the limit."""
    model_gb: float | None = None
    """Metal: weights."""
    overhead_gb: float | None = None
    """Metal: what is set aside beside them."""
    budget_gb: float | None = None
    """Metal: what is left for the KV cache, below zero."""

    templates = (
        Template(
            "No available memory for the cache blocks. Try increasing {_}",
            versions=">=0.2.0",
            example="No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the"
            " engine.",
        ),
        Template(
            "Paged attention: not enough Metal memory for KV cache. metal_limit={limit_gb}GB, fraction={fraction},"
            " usable_metal={usable_gb}GB, model_memory={model_gb}GB, overhead={overhead_gb}GB,{_} kv_budget={budget_gb}GB.{_}",
            versions="",
            source="vllm-metal",
            example="Paged attention: not enough Metal memory for KV cache. metal_limit=21.30GB, fraction=0.5,"
            " usable_metal=10.65GB, model_memory=9.32GB, overhead=2.06GB, kv_budget=-0.73GB.",
        ),
        Template(
            "Paged attention: not enough Metal memory for KV cache.{_}",
            versions="",
            source="vllm-metal",
            example="Paged attention: not enough Metal memory for KV cache.",
        ),
        Template(
            "The worker already uses {consumed_gib} GiB (model weights and runtime), more than the {requested_gib} GiB of CPU"
            " memory reserved for it on node {device}, leaving none for the KV cache. " + _CPU_FLAG + "increase"
            " `--gpu-memory-utilization` to more than {_}, or set the KV cache size explicitly with"
            " `--kv-cache-memory-bytes` or VLLM_CPU_KVCACHE_SPACE.",
            versions=">=0.33.0",
            example="The worker already uses 2.1 GiB (model weights and runtime), more than the 1.18 GiB of CPU memory"
            " reserved for it on node 0, leaving none for the KV cache. On the CPU backend, the `--gpu-memory-utilization`"
            " flag controls the fraction of CPU memory reserved (despite its name). To resolve: increase"
            " `--gpu-memory-utilization` to more than 0.09, or set the KV cache size explicitly with"
            " `--kv-cache-memory-bytes` or VLLM_CPU_KVCACHE_SPACE.",
        ),
    )


_ON_NODE = "Available memory on node {device} ({free_gib}/{total_gib} GiB) on kv cache allocation is less than requested memory"


class KVCacheRequestTooLarge(Record):
    """Refused to start: the CPU worker's node has less free memory than the KV cache asks for (cpu_worker.py)."""

    device: Word
    """NUMA node."""
    free_gib: GiB
    """Free memory."""
    total_gib: GiB
    """Memory in total."""
    kv_cache_gib: GiB
    """What the KV cache asks for."""
    requested_gib: GiB | None = None
    """What the whole worker asks for, where the size follows from the utilization."""

    templates = (
        Template(
            _ON_NODE
            + " for kv ({kv_cache_gib} GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU"
            " memory used by other processes.",
            versions=">=0.20.0",
            example="Available memory on node 0 (16.21/23.54 GiB) on kv cache allocation is less than requested memory for"
            " kv (40.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory used by other"
            " processes.",
        ),
        Template(
            _ON_NODE + " for kv ({kv_cache_gib}/{requested_gib} GiB). Reduce CPU memory used by other processes.",
            versions=">=0.20.0",
            example="Available memory on node 0 (16.21/23.54 GiB) on kv cache allocation is less than requested memory for"
            " kv (19.4/21.66 GiB). Reduce CPU memory used by other processes.",
        ),
    )


class AutoFitImpossible(Record):
    """Refused to start: no length fits, however short (`--max-model-len auto`; kv_cache_utils.py)."""

    templates = (
        Template(
            "Cannot auto-fit max_model_len: not enough {_} available to serve even a single token. Try increasing"
            " `gpu_memory_utilization`.",
            versions=">=0.14.0",
            example="Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try"
            " increasing `gpu_memory_utilization`.",
        ),
    )


_CHANGED = "Error in memory profiling. "
_CLEAN = "This happens when the {_} memory was not properly cleaned up before initializing the vLLM instance."


class ProfilingMemoryChanged(Record):
    """Refused to start: another process gave device memory back while this one profiled (gpu_worker.py, worker.py)."""

    initial_free_gib: GiB | None = None
    """Free memory before."""
    current_free_gib: GiB | None = None
    """Free memory after."""
    initial_used_gib: GiB | None = None
    """Used memory before (V0, 0.7 to 0.10)."""
    current_used_gib: GiB | None = None
    """Used memory after (V0, 0.7 to 0.10)."""

    templates = (
        Template(
            _CHANGED + "Initial free memory {initial_free_gib} GiB, current free memory {current_free_gib} GiB. This happens"
            " when other processes sharing the same container release GPU memory while vLLM is profiling during"
            " initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container.",
            versions=">=0.9.1",
            example="Error in memory profiling. Initial free memory 78.6 GiB, current free memory 79.0 GiB. This happens when"
            " other processes sharing the same container release GPU memory while vLLM is profiling during initialization."
            " To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container.",
        ),
        Template(
            _CHANGED + "Initial free memory {initial_free_gib:bytes}, current free memory {current_free_gib:bytes}. "
            + _CLEAN,
            versions=">=0.5.4,<0.16",
            example="Error in memory profiling. Initial free memory 84397850624, current free memory 84827340800. This"
            " happens when the GPU memory was not properly cleaned up before initializing the vLLM instance.",
        ),
        Template(
            _CHANGED + "Initial used memory {initial_used_gib:bytes}, currently used memory {current_used_gib:bytes}. "
            + _CLEAN,
            versions=">=0.7.0,<0.11",
            example="Error in memory profiling. Initial used memory 512000000, currently used memory 498000000. This happens"
            " when the GPU memory was not properly cleaned up before initializing the vLLM instance.",
        ),
        Template(
            _CHANGED + _CLEAN,
            versions=">=0.4.0,<0.5.4",
            example="Error in memory profiling. This happens when the GPU memory was not properly cleaned up before"
            " initializing the vLLM instance.",
        ),
    )  # fmt: skip

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """vllm-ascend from 0.18 prints unrounded GiB in the wording for bytes: a number with decimals is no byte count."""
        return {
            name: read_gib(value.text) if isinstance(value, GiB) and value.unit == 1 and "." in value.text else value
            for name, value in values.items()
        }


class OpenVINOMemory(Record):
    """What the profile run needs on an OpenVINO device (worker/openvino_worker.py)."""

    device: Word
    """The device."""
    total: str
    """Memory in total, with its unit (GB is 2**30)."""
    required: str
    """What the model needs, with its unit."""
    max_num_batched_tokens: int
    """Tokens of the profiled step."""

    templates = (
        Template(
            "Total {device} memory: {total}. Amount of memory required to run the model with"
            " max_num_batched_tokens={max_num_batched_tokens}: {required}.",
            versions=">=0.6.3,<0.8.2",
            example="Total GPU.0 memory: 15.60 GB. Amount of memory required to run the model with"
            " max_num_batched_tokens=2048: 9.31 GB.",
        ),
    )


class OpenVINOMemoryTooSmall(Record):
    """Refused to start: the OpenVINO device does not hold the model and a step (the total is never filled in: a source bug)."""

    required: str | None = None
    """What the model needs, with its unit, where the line has it."""

    templates = (
        Template(
            "The required memory size {required} for model is higher than the total available device memory {_}. Please"
            " consider to decrease `max_num_batched_tokens` or increase `gpu_memory_utilization`",
            versions=">=0.6.3,<0.8.2",
            example="The required memory size 17.20 GB for model is higher than the total available device memory"
            " {total_device_memory_str}. Please consider to decrease `max_num_batched_tokens` or increase"
            " `gpu_memory_utilization`",
        ),
        Template(
            "The error occurred during profile run. This might be due to insufficient GPU memory. {_}",
            versions=">=0.6.3,<0.8.2",
            example="The error occurred during profile run. This might be due to insufficient GPU memory. Consider decreasing"
            " `max_model_len` to limit the maximum simultaneously processed tokens.",
        ),
    )
