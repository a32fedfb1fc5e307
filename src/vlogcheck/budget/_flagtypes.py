"""What kind of value each known ``vllm serve`` flag takes: a table."""

from __future__ import annotations

from enum import Enum

__all__ = ["SHORT", "Kind", "known_kind"]


class Kind(Enum):
    """What a flag's value is."""

    COUNT = "whole number of at least 1"
    LENGTH = "whole number of at least 1, -1 or auto"
    BYTES = "number of bytes"
    FRACTION = "number between 0 and 1"
    GIB = "number of GiB"
    SWITCH = "switch"
    OBJECT = "JSON object"
    TEXT = "text"
    WORDS = "words"


#: vLLM's one-letter and two-letter forms.
SHORT = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-dcp": "--decode-context-parallel-size",
    "-pcp": "--prefill-context-parallel-size",
    "-ep": "--enable-expert-parallel",
    "-q": "--quantization",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-sc": "--speculative-config",
    "-cc": "--compilation-config",
    "-O": "--compilation-config",
    "-ac": "--attention-config",
    "-dpl": "--data-parallel-size-local",
    "-dpa": "--data-parallel-address",
    "-dpb": "--data-parallel-backend",
    "-dpn": "--data-parallel-rank",
    "-dpr": "--data-parallel-start-rank",
    "-dpp": "--data-parallel-rpc-port",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpe": "--data-parallel-external-lb",
    "-asc": "--api-server-count",
    "-ah": "--headless",
}

_KINDS = {
    **dict.fromkeys(
        ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
         "prefill_context_parallel_size", "block_size", "num_gpu_blocks_override", "max_num_batched_tokens",
         "max_num_seqs",
         "mamba_block_size"),
        Kind.COUNT,
    ),
    "max_model_len": Kind.LENGTH,
    "kv_cache_memory_bytes": Kind.BYTES,
    "gpu_memory_utilization": Kind.FRACTION,
    "swap_space_gib": Kind.GIB,
    "cpu_offload_gib": Kind.GIB,
    **dict.fromkeys(
        ("enable_expert_parallel", "enable_prefix_caching", "enable_chunked_prefill", "async_scheduling",
         "disable_hybrid_kv_cache_manager", "disable_sliding_window", "enforce_eager", "enable_lora",
         "trust_remote_code",
         "enable_auto_tool_choice", "disable_log_requests", "disable_log_stats", "headless", "language_model_only",
         "disable_custom_all_reduce", "enable_log_requests", "skip_tokenizer_init", "use_v2_block_manager",
         "disable_frontend_multiprocessing", "enable_eplb", "enable_dbo", "calculate_kv_scales", "enable_reasoning",
         "data_parallel_hybrid_lb", "data_parallel_external_lb", "enable_prompt_tokens_details", "enable_sleep_mode",
         "disable_chunked_mm_input", "kv_sharing_fast_prefill", "enable_return_routed_experts", "stream_interval_off",
         "disable_uvicorn_access_log", "ray_workers_use_nsight", "enable_server_load_tracking", "allow_credentials",
         "disable_fastapi_docs", "enable_force_include_usage", "return_tokens_as_token_ids", "disable_cascade_attn",
         "enable_tokenizer_info_endpoint", "disable_log_stats_off", "enable_prompt_embeds", "fully_sharded_loras"),
        Kind.SWITCH,
    ),
    **dict.fromkeys(
        ("speculative_config", "kv_transfer_config", "kv_events_config", "compilation_config", "attention_config",
         "hf_overrides"),
        Kind.OBJECT,
    ),
    **dict.fromkeys(
        ("kv_cache_dtype_skip_layers", "served_model_name", "lora_modules", "middleware", "cudagraph_capture_sizes",
         "cuda_graph_sizes", "logits_processors"),
        Kind.WORDS,
    ),
    **dict.fromkeys(
        ("model", "kv_cache_dtype", "dtype", "quantization", "attention_backend", "mamba_cache_dtype",
        "mamba_ssm_cache_dtype",
         "mamba_cache_mode", "distributed_executor_backend", "performance_mode", "runner", "task", "convert"),
        Kind.TEXT,
    ),
}  # fmt: skip


def known_kind(name: str) -> Kind | None:
    """Return the kind of value flag ``name`` (underscored) takes, ``None`` if the flag is not known."""
    return _KINDS.get(name)
