"""The options of two start-ups, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import default_utilization, parse_release

if TYPE_CHECKING:
    from vlogcheck._compared import Side

__all__ = ["OptionChange", "compare_options", "option_of"]

_OPTIONS = (
    "model", "dtype", "kv_cache_dtype", "quantization", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
    "gpu_memory_utilization", "kv_cache_memory_bytes", "block_size", "num_gpu_blocks_override", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "enforce_eager", "enable_prefix_caching", "enable_chunked_prefill",
    "chunked_prefill_enabled", "speculative_config", "enable_lora", "cpu_offload_gb", "swap_space", "kv_transfer_config",
    "disable_hybrid_kv_cache_manager", "mamba_cache_mode", "limit_mm_per_prompt",
)  # fmt: skip


class OptionChange(NamedTuple):
    """An option that differs."""

    name: str
    old: Any
    new: Any
    why: str
    """`stated` (in the arguments or the banner) or what changed the default."""


def compare_options(old: Side, new: Side) -> list[OptionChange]:
    """Return the options that differ, and whether that was stated or is a default."""
    found = []
    for name in _OPTIONS:
        before, after = option_of(old, name), option_of(new, name)
        if before == after:
            continue
        why = "stated"
        if before is None or after is None:
            why = (
                "stated in one log only"
                if name != "gpu_memory_utilization"
                else "stated in one log, default in the other"
            )
        found.append(OptionChange(name, before, after, why))
    if option_of(old, "gpu_memory_utilization") is None and option_of(new, "gpu_memory_utilization") is None:
        shares = [default_utilization(parse_release(side.version)) for side in (old, new)]
        if shares[0] != shares[1] and None not in (old.version, new.version):
            found.append(
                OptionChange("gpu_memory_utilization", shares[0], shares[1], "the default of the release changed")
            )
    return found


def option_of(side: Side, name: str) -> Any:
    """Return an option as its start-up states it: in the arguments, else in the banner; None where neither does."""
    startup = side.context.startup
    if name in startup.args:
        return startup.args[name]
    config = startup.config
    if config is None or not isinstance(config.config, dict):
        return None
    return config.config.get({"max_model_len": "max_seq_len"}.get(name, name))
