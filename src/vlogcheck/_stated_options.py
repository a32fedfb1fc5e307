"""Which options a log states: its arguments, what vLLM made of them in the engine's banner, and later lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlogcheck._literals import read_call
from vlogcheck.deployment import backend_of, block_size_of
from vlogcheck.records import (
    AsyncScheduling,
    AttentionBackend,
    BudgetDefault,
    ChunkedPrefill,
    HybridManagerOff,
    KVCacheDtype,
    KVCacheFormat,
    MambaCacheMode,
)

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.observed import EngineLedger
    from vlogcheck.startup import Engine, Startup

__all__ = ["environment_from_log", "options_from_log"]

_OBJECTS = ("speculative_config", "compilation_config", "kv_transfer_config", "kv_events_config", "hf_overrides")


def options_from_log(startup: Startup, engine: EngineLedger | None = None) -> ServeOptions:
    """Return the options a log states: its arguments, what vLLM made of them in the engine's banner, and later lines.

    Raises `ValueError` (a `FlagError`) for an argument with a value that cannot be meant.
    """
    from vlogcheck.budget.flags import options_from_mapping

    given = {name: value for name, value in startup.args.items() if value is not None}
    given |= _banner(engine.engine if engine is not None else None, startup)
    given |= _from_lines(startup)
    if engine is not None and engine.capacity.max_model_len:
        given["max_model_len"] = engine.capacity.max_model_len
    for name in _OBJECTS:
        if name in given and not isinstance(given[name], Mapping):
            value = _object(name, given.pop(name))
            if value:
                given[name] = value
    return options_from_mapping(given)


def _banner(engine: Engine | None, startup: Startup) -> dict[str, Any]:
    """Return what the engine's banner says was resolved."""
    config = (engine.config if engine is not None else None) or startup.config
    if config is None:
        return {}
    resolved: dict[str, Any] = {
        "dtype": config.dtype,
        "kv_cache_dtype": config.kv_cache_dtype,
        "max_model_len": config.max_model_len,
        "tensor_parallel_size": config.tensor_parallel_size,
        "pipeline_parallel_size": config.pipeline_parallel_size,
        "data_parallel_size": config.data_parallel_size,
        "quantization": config.quantization,
        "enforce_eager": config.enforce_eager,
        "enable_prefix_caching": config.enable_prefix_caching,
    }
    if isinstance(config.config, dict):
        for name in ("decode_context_parallel_size", "prefill_context_parallel_size", "kv_cache_memory_bytes",
                     "speculative_config", "kv_transfer_config"):  # fmt: skip
            if name not in startup.args:
                resolved[name] = config.config.get(name)
    return {name: value for name, value in resolved.items() if value is not None and value != "None"}


def _from_lines(startup: Startup) -> dict[str, Any]:
    """Return what single lines say about an option."""
    found: dict[str, Any] = {}
    size = block_size_of(startup)
    if size is not None and size.printed:
        found["block_size"] = size.tokens
    chunked = [r.max_num_batched_tokens for r in startup.all(ChunkedPrefill) if r.max_num_batched_tokens is not None]
    for default in startup.all(BudgetDefault):
        if default.max_num_batched_tokens is not None and "max_num_batched_tokens" not in startup.args:
            found["max_num_batched_tokens"] = default.max_num_batched_tokens
        if default.max_num_seqs is not None and "max_num_seqs" not in startup.args:
            found["max_num_seqs"] = default.max_num_seqs
    if chunked:
        found["max_num_batched_tokens"] = chunked[-1]
    if (scheduling := startup.last(AsyncScheduling)) is not None:
        found["async_scheduling"] = scheduling.state == "enabled"
    if startup.last(HybridManagerOff) is not None:
        found["disable_hybrid_kv_cache_manager"] = True
    if (mode := startup.last(MambaCacheMode)) is not None and mode.mode != "none":
        found["mamba_cache_mode"] = mode.mode
    if (backend := backend_of(startup)) is not None and "attention_backend" not in startup.args:
        found["attention_backend"] = backend
    config = startup.config
    if config is None or config.kv_cache_dtype in (None, "auto"):
        if (stored := startup.last(KVCacheDtype)) is not None:
            found["kv_cache_dtype"] = stored.kv_cache_dtype
        if (layout := startup.last(KVCacheFormat)) is not None and layout.kv_format == "fp8_ds_mla":
            found["kv_cache_dtype"] = layout.kv_format
    return found


def _object(name: str, value: Any) -> dict[str, Any] | None:
    """Return a configuration printed as a call (`SpeculativeConfig(method='ngram', num_spec_tokens=3)`) as an object."""
    if not isinstance(value, str) or name not in ("speculative_config", "kv_transfer_config"):
        return None
    values = read_call(value)
    if not values:
        return None
    if "num_spec_tokens" in values:
        values["num_speculative_tokens"] = values.pop("num_spec_tokens")
    return {key: item for key, item in values.items() if item is not None}


def environment_from_log(startup: Startup) -> dict[str, str]:
    """Return vLLM's environment variables as far as a line shows their effect."""
    found = {}
    generation = startup.config.engine_generation if startup.config is not None else None
    if generation in ("V0", "V1"):
        found["VLLM_USE_V1"] = "0" if generation == "V0" else "1"
    backends = [record.backend.upper() for record in startup.all(AttentionBackend)]
    if backends and not any("MLA" in backend or "SPARSE" in backend for backend in backends):
        found["VLLM_MLA_DISABLE"] = "1"  # no latent kernel was chosen: matters to models with a latent only
    return found
