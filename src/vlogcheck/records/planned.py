"""Start-ups that skip the profiler, and the part of it that measures the multimodal encoder."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "EncoderCacheBudget",
    "EncoderProfilingSkipped",
    "KVCachePinned",
    "StartupPlanApplied",
    "StartupPlanFile",
    "StartupPlanNotApplied",
]


class KVCachePinned(Record):
    """The KV cache got a fixed size (`--kv-cache-memory-bytes`); the profile run was skipped (gpu_worker.py)."""

    kv_cache_gib: GiB
    """Memory for the KV cache."""
    free_gib: GiB
    """Free device memory at start."""

    templates = (
        Template(
            "Initial free memory {free_gib} GiB, reserved {kv_cache_gib} GiB memory for KV Cache as specified by"
            " kv_cache_memory_bytes config and skipped memory profiling. This does not respect the"
            " gpu_memory_utilization config. Only use kv_cache_memory_bytes config when you want manual control of KV"
            " cache memory size. If OOM'ed, check the difference of initial free memory between the current run and the"
            " previous run where kv_cache_memory_bytes is suggested and update it correspondingly.",
            versions=">=0.11.1",
            example="Initial free memory 78.6 GiB, reserved 20.0 GiB memory for KV Cache as specified by"
            " kv_cache_memory_bytes config and skipped memory profiling. This does not respect the gpu_memory_utilization"
            " config. Only use kv_cache_memory_bytes config when you want manual control of KV cache memory size. If"
            " OOM'ed, check the difference of initial free memory between the current run and the previous run where"
            " kv_cache_memory_bytes is suggested and update it correspondingly.",
        ),
        Template(
            "Initial free memory {free_gib} GiB, reserved {kv_cache_gib}GiB memory for KV Cache as specified by"
            " kv_cache_memory_bytes config and skipped memory profiling. This does does not respect the"
            " gpu_memory_utilization config. Only use kv_cache_memory_bytes config when you want manual control of KV"
            " cache memory size. If OOM'ed, check the difference of initial free memory between the current run and the"
            " previous run where kv_cache_memory_bytes is suggested and update it correspondingly.",
            versions=">=0.10.2,<0.11.1",
            example="Initial free memory 78.60 GiB, reserved 20.00GiB memory for KV Cache as specified by"
            " kv_cache_memory_bytes config and skipped memory profiling. This does does not respect the"
            " gpu_memory_utilization config. Only use kv_cache_memory_bytes config when you want manual control of KV"
            " cache memory size. If OOM'ed, check the difference of initial free memory between the current run and the"
            " previous run where kv_cache_memory_bytes is suggested and update it correspondingly.",
        ),
        Template(
            "Initial free memory {free_gib} GiB, reserved {kv_cache_gib} GiB for KV Cache as specified by"
            " kv_cache_memory_bytes, skipping memory profiling. {_}",
            versions=">=0.23",
            source="vllm-ascend",
            example="Initial free memory 60.2 GiB, reserved 20.0 GiB for KV Cache as specified by kv_cache_memory_bytes,"
            " skipping memory profiling. This does not respect the gpu_memory_utilization config.",
        ),
    )


class StartupPlanApplied(Record):
    """A stored plan of an earlier start fixed the size of the KV cache (v1/worker/startup_plan.py)."""

    fingerprint: Word
    """Fingerprint of the configuration the plan is for."""
    kv_cache_bytes: int
    """Memory for the KV cache."""
    kv_cache_gib: GiB
    """The same in GiB."""
    baseline_free_gib: GiB
    """Free device memory when the plan was made."""
    free_gib: GiB
    """Free device memory now."""

    templates = (
        Template(
            "Applying persisted startup plan (fingerprint {fingerprint}): kv_cache_memory_bytes={kv_cache_bytes}"
            " ({kv_cache_gib} GiB), recorded free-memory baseline {baseline_free_gib} GiB, current {free_gib} GiB. Memory"
            " profiling will be skipped.",
            versions=">=0.26.0",
            example="Applying persisted startup plan (fingerprint ab12cd34): kv_cache_memory_bytes=58518929408 (54.5 GiB),"
            " recorded free-memory baseline 78.6 GiB, current 78.6 GiB. Memory profiling will be skipped.",
        ),
    )


class StartupPlanFile(Record):
    """A start-up plan was saved, could not be saved, or could not be read (v1/worker/startup_plan.py)."""

    status: Word
    """saved, unsaved or unreadable."""
    file: str
    """The plan's file."""
    error: str | None = None
    """What went wrong."""

    templates = (
        Template(
            "Saved startup plan to {file}",
            versions=">=0.26.0",
            example="Saved startup plan to /root/.cache/vllm/startup_plans/ab12cd34.json",
            values={"status": "saved"},
        ),
        Template(
            "Failed to save startup plan to {file}: {error}",
            versions=">=0.26.0",
            example="Failed to save startup plan to /root/.cache/vllm/startup_plans/ab12cd34.json: [Errno 30] Read-only file"
            " system",
            values={"status": "unsaved"},
        ),
        Template(
            "Ignoring unreadable startup plan {file}: {error}",
            versions=">=0.26.0",
            example="Ignoring unreadable startup plan /root/.cache/vllm/startup_plans/ab12cd34.json: Expecting value",
            values={"status": "unreadable"},
        ),
    )


class EncoderCacheBudget(Record):
    """Size of the cache of multimodal encoder outputs (v1/worker/gpu_model_runner.py, tpu_model_runner.py)."""

    budget_tokens: int
    """Tokens the encoder cache holds."""
    items: int
    """Items the profile run encodes at once."""
    modality: Word
    """image, video or audio."""

    templates = (
        Template(
            "Encoder cache will be initialized with a budget of {budget_tokens} tokens, and profiled with {items} {modality}"
            " items of the maximum feature size.",
            versions=">=0.7.0",
            example="Encoder cache will be initialized with a budget of 16384 tokens, and profiled with 1 image items of the"
            " maximum feature size.",
        ),
    )


class EncoderProfilingSkipped(Record):
    """The multimodal encoder was left out of the profile run: its memory is not in the budget."""

    reason: str
    """asked (`--skip-mm-profiling`) or embeddings (no item of any modality allowed)."""

    templates = (
        Template(
            "Skipping memory profiling for multimodal encoder and encoder cache.",
            versions=">=0.10.1",
            example="Skipping memory profiling for multimodal encoder and encoder cache.",
            values={"reason": "asked"},
        ),
        Template(
            "Skipping encoder profiling for embedding-only mode (all modality limits=0 with enable_mm_embeds=True).",
            versions=">=0.16.0",
            example="Skipping encoder profiling for embedding-only mode (all modality limits=0 with enable_mm_embeds=True).",
            values={"reason": "embeddings"},
        ),
    )


class StartupPlanNotApplied(Record):
    """A stored plan does not fit the free memory of now, so the profiler runs (v1/worker/startup_plan.py)."""

    free_gib: GiB
    """Free device memory now."""
    baseline_free_gib: GiB
    """Free device memory when the plan was made."""

    templates = (
        Template(
            "Startup plan not applied: current free memory ({free_gib} GiB) is below the recorded baseline"
            " ({baseline_free_gib} GiB); falling back to full memory profiling.",
            versions=">=0.26.0",
            example="Startup plan not applied: current free memory (70.2 GiB) is below the recorded baseline (78.6 GiB);"
            " falling back to full memory profiling.",
        ),
    )
