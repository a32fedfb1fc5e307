"""Refusals and failures about memory."""

from __future__ import annotations

from vlogcheck.template import Record, Size, Template, Word
from vlogcheck.units import GiB

__all__ = ["FreeMemoryTooLow", "KVCacheTooSmall", "NoKVCacheMemory", "OutOfMemory"]

_LESS = (
    "({free_gib}/{total_gib} GiB) on startup is less than desired GPU memory utilization ({gpu_memory_utilization},"
    " {requested_gib} GiB). "
)
_DECREASE = "Decrease GPU memory utilization or reduce GPU memory used by other processes."


class FreeMemoryTooLow(Record):
    """Refused to start: less memory is free than utilization × total asks for (worker/utils.py)."""

    free_gib: GiB
    """Free memory at start."""
    total_gib: GiB
    """Memory in total."""
    gpu_memory_utilization: float
    """Share asked for."""
    requested_gib: GiB
    """total × utilization."""
    device: Word | None = None
    """Device or NUMA node."""

    templates = (
        Template(
            "Free memory on device " + _LESS + _DECREASE,
            versions=">=0.9.1,<0.14.1",
            example="Free memory on device (4.80/63.98 GiB) on startup is less than desired GPU memory utilization"
            " (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        ),
        Template(
            "Free memory on device {device} " + _LESS + _DECREASE,
            versions=">=0.14.1",
            example="Free memory on device cuda:0 (4.8/63.98 GiB) on startup is less than desired GPU memory utilization"
            " (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        ),
    )


_SERVE_ONE = (
    " max seq len ({max_model_len}), ({needed_gib} GiB KV cache is needed, which is larger than the available KV cache"
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
            versions=">=0.22.1",
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


class NoKVCacheMemory(Record):
    """Refused to start: nothing is left for the KV cache."""

    templates = (
        Template(
            "No available memory for the cache blocks. Try increasing {_}",
            versions=">=0.2.0",
            example="No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the"
            " engine.",
        ),
    )


class OutOfMemory(Record):
    """A device allocation failed: torch's message, in the wordings of its releases and back ends."""

    tried_gib: Size | None = None
    """Size asked for."""
    device: Word | None = None
    """Device index as the process sees it."""
    total_gib: Size | None = None
    """Device memory in total."""
    free_gib: Size | None = None
    """Free device memory."""
    backend: Word
    """CUDA, HIP, NPU or XPU."""

    templates = (
        Template(
            "{backend} out of memory. Tried to allocate {tried_gib}. GPU {device} has a total capacity of {total_gib} of"
            " which {free_gib} is free.{_}",
            versions="",
            source="torch",
            embedded=True,
            example="CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which"
            " 1.20 GiB is free. Including non-PyTorch memory, this process has 77.98 GiB memory in use.",
        ),
    )
