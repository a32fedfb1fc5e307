"""The options of a server that change its memory ledger, built from names and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from vlogcheck.budget._flagtypes import Kind, known_kind
from vlogcheck.budget._flagvalues import PARSERS

__all__ = ["RENAMED", "ServeOptions", "options_from_mapping"]

_NO_OBJECT: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class ServeOptions:
    """The options that change the memory ledger, as given; ``None`` is "not given", so vLLM's default applies.

    Lengths are in tokens, memory is in bytes (``swap_space_gib`` and ``cpu_offload_gib`` in GiB, as the flags are).
    """

    model: str | None = None
    max_model_len: int | None = None
    """Context length; -1 asks vLLM to fit it to the memory."""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    block_size: int | None = None
    kv_cache_dtype: str = "auto"
    dtype: str = "auto"
    quantization: str | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    async_scheduling: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    disable_sliding_window: bool = False
    enforce_eager: bool = False
    speculative_config: Mapping[str, Any] | None = None
    kv_transfer_config: Mapping[str, Any] | None = None
    kv_events_config: Mapping[str, Any] | None = None
    compilation_config: Mapping[str, Any] | None = None
    attention_config: Mapping[str, Any] | None = None
    hf_overrides: Mapping[str, Any] | None = None
    attention_backend: str | None = None
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    mamba_block_size: int | None = None
    mamba_cache_mode: str | None = None
    kv_cache_dtype_skip_layers: tuple[str, ...] = ()
    swap_space_gib: float | None = None
    cpu_offload_gib: float | None = None
    distributed_executor_backend: str | None = None
    performance_mode: str | None = None
    runner: str | None = None
    task: str | None = None
    convert: str | None = None
    enable_lora: bool = False
    unused: Mapping[str, Any] = field(default_factory=lambda: _NO_OBJECT)
    """Flags that were given and play no part here, by name, with their value."""


RENAMED = {
    "swap_space": "swap_space_gib",
    "cpu_offload_gb": "cpu_offload_gib",
    "kv_cache_memory": "kv_cache_memory_bytes",
    "cache_dtype": "kv_cache_dtype",
    "max_seq_len": "max_model_len",
    "model_tag": "model",
}
_FIELDS = frozenset(f.name for f in fields(ServeOptions)) - {"unused"}


def options_from_mapping(given: Mapping[str, Any]) -> ServeOptions:
    """Build options from names and values: parsed flags, engine arguments, or a log's ``non-default args``.

    Values may be text (read as a flag's would be) or already typed; keys may use dashes. A value of ``None`` is "not
    given".

    Raises:
        FlagError: a known option has a value that cannot be meant.

    """
    chosen: dict[str, Any] = {}
    unused: dict[str, Any] = {}
    for key, value in given.items():
        name = str(key).lstrip("-").replace("-", "_")
        name = RENAMED.get(name, name)
        if name not in _FIELDS:
            unused[str(key)] = value
        elif value is not None:
            kind = known_kind(name) or Kind.TEXT
            parsed = PARSERS[kind](name, value)
            if parsed is not None:
                chosen[name] = parsed
    return ServeOptions(**chosen, unused=MappingProxyType(unused))
