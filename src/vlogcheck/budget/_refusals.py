"""Deployments vLLM refuses before it counts a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget import _traits
from vlogcheck.budget._errors import PlanError, not_supported
from vlogcheck.budget._layer import SLIDING
from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.pool import Pool

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings

__all__ = ["cache_refusal", "context_refusal", "split_refusal", "window_refusal"]


def split_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a tensor-parallel size the attention heads cannot be split over."""
    heads, ranks = model.num_attention_heads, settings.tp
    if ranks == 1 or not heads or not _traits.has_attention(model):
        return None
    if heads % ranks:
        return not_supported(
            f"Total number of attention heads ({heads}) must be divisible by tensor parallel size ({ranks})."
        )
    total = 1 if settings.use_mla else model.num_kv_heads
    if max(total, ranks) % min(total, ranks):
        return not_supported(f"{total} KV heads can neither be split nor replicated over {ranks} ranks.")
    return None


def cache_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a block size no CUDA backend takes, or of a cache type an fp8 checkpoint excludes."""
    size, release = settings.options.block_size, settings.release
    if size is not None and size % 16 and release.since("0.18.1") and not settings.device.is_cpu:
        return not_supported(f"No attention backend takes blocks of {size} tokens: a multiple of 16 is needed.")
    if settings.options.kv_cache_dtype == "fp8_e5m2" and model.quantization_method == "fp8":
        return not_supported("fp8_e5m2 kv-cache is not supported with fp8 checkpoints.")
    return None


def context_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a decode-context-parallel size.

    The size divides the tensor-parallel one; from 0.11.0 on attention with KV heads also needs that many copies of each
    head, and query heads per KV head to divide (``verify_with_parallel_config``, vllm/config/model.py).
    """
    shards, ranks = settings.options.decode_context_parallel_size, settings.tp
    if shards <= 1 or settings.release.before("0.10.2"):
        return None
    if ranks % shards:
        return not_supported(
            f"Tensor parallel size {ranks} must be divisible by decode context parallel size {shards}."
        )
    heads, total = model.num_attention_heads, model.num_kv_heads
    if settings.use_mla or settings.release.before("0.11.0") or not heads or not total:
        return None
    if ranks <= total:
        return not_supported(
            f"Decode context parallelism needs a tensor parallel size ({ranks}) above the number of KV heads ({total})."
        )
    if shards > ranks // total:
        return not_supported(
            f"Decode context parallel size {shards} exceeds {ranks // total}, the copies of each of the {total} KV heads."
        )
    if heads // total % shards:
        return not_supported(
            f"{heads // total} query heads per KV head must be divisible by decode context parallel size {shards}."
        )
    return None


def window_refusal(pool: Pool, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of decode context parallelism for layers with a sliding window."""
    if settings.options.decode_context_parallel_size <= 1 or settings.release.before("0.10.2"):
        return None
    if any(spec.kind == SLIDING for groups in pool.per_rank for group in groups for spec in group.specs):
        return not_supported("DCP not support sliding window.")
    return None
