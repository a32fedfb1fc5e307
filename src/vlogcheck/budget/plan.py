"""The expected KV cache of a deployment: one entry point over model, flags, release and card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from vlogcheck.budget import _traits
from vlogcheck.budget._admission import check_layers
from vlogcheck.budget._available import Available, cpu_space, ends
from vlogcheck.budget._device import parse_device
from vlogcheck.budget._errors import not_supported
from vlogcheck.budget._group import CannotGroupError
from vlogcheck.budget._known import is_known_name, unknown_reason
from vlogcheck.budget._kvplan import KVPlan, UnknownArchitecture
from vlogcheck.budget._refusals import cache_refusal, context_refusal, split_refusal, window_refusal
from vlogcheck.budget._resolve import resolve
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig, overridden
from vlogcheck.budget.pool import Pool, PoolResult
from vlogcheck.budget.releases import parse_release
from vlogcheck.budget.specs import build_layers
from vlogcheck.units import Interval

__all__ = ["KVPlan", "UnknownArchitecture", "plan"]


def plan(
    model: ModelConfig,
    options: ServeOptions | None = None,
    *,
    release: str | None = None,
    available: Available = None,
    env: Mapping[str, str] | None = None,
    device: str | None = None,
    total_memory: int | None = None,
) -> KVPlan:
    """Compute the KV cache vLLM would make.

    Args:
        model: the model's configuration.
        options: the flags, defaults where omitted.
        release: vLLM's version as a log prints it; ``None`` follows the newest rules, and says so.
        available: bytes for the KV cache per rank: one number or interval for all, or one per pipeline rank.
        env: vLLM's environment variables that matter (``VLLM_MLA_DISABLE``, ``VLLM_PP_LAYER_PARTITION`` …).
        device: the card's name; an H100-class card is assumed without one.
        total_memory: bytes the card reports, used where its name is not known.

    Raises:
        ModelConfigError: the configuration or an option has a value that cannot be followed.

    """
    options = options or ServeOptions()
    env = MappingProxyType(dict(env or {}))
    found = parse_release(release)
    if options.hf_overrides:
        model = overridden(model, options.hf_overrides)
    reason = unknown_reason(model, options, found)
    if reason is not None:
        return KVPlan(unknown=UnknownArchitecture(model.architecture, reason))
    settings = resolve(model, options, found, env, parse_device(device, total_memory))
    if model.text_model_type == "kimi_linear" and not settings.use_mla:
        reason = "Kimi-Linear keeps latents whatever VLLM_MLA_DISABLE says, in blocks that are not modelled"
        return KVPlan(unknown=UnknownArchitecture(model.architecture, reason))
    notes = list(settings.assumptions)
    if _traits.is_encoder_only(model):
        return KVPlan(1, max_model_len=settings.max_model_len, assumptions=tuple(notes), settings=settings)
    refusal = split_refusal(model, settings) or context_refusal(model, settings) or cache_refusal(model, settings)
    if refusal is not None:
        return KVPlan(max_model_len=settings.max_model_len, error=refusal, assumptions=tuple(notes), settings=settings)
    if settings.max_model_len > model.default_max_model_len(found):
        notes.append("--max-model-len exceeds the model's own: vLLM refuses unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")
    layers = build_layers(model, settings)
    notes.extend(layers.assumptions)
    notes.extend(_notes(model))
    specs = tuple(layers.counted())
    try:
        pool = Pool(layers, settings)
    except CannotGroupError as error:
        refused = not_supported(str(error))
        if available is not None and settings.release.before("0.14.1"):
            ranks = [layers.on_stage(stage) for stage in range(layers.stages)]
            refused = check_layers(ranks, settings, ends(available, settings.pp)[1]) or refused
        return KVPlan(
            specs=specs, max_model_len=settings.max_model_len, error=refused, assumptions=tuple(notes),
            settings=settings,
        )  # fmt: skip
    if (refusal := window_refusal(pool, settings)) is not None:
        return KVPlan(
            specs=specs, max_model_len=settings.max_model_len, error=refusal, assumptions=tuple(notes),
            settings=settings,
        )  # fmt: skip
    base = KVPlan(
        max_model_len=settings.max_model_len, specs=specs, groups=tuple(pool.groups and pool.per_rank[0]),
        cpu_blocks=pool.cpu_blocks(), assumptions=tuple(notes), settings=settings, pool=pool,
    )  # fmt: skip
    if available is None:
        available = options.kv_cache_memory_bytes
    if available is None and settings.device.is_cpu:
        available = cpu_space(env)
    override = options.num_gpu_blocks_override
    if available is None and override is not None:
        available = [override * pool.bytes_per_block(rank) for rank in range(settings.pp)]
    if available is None:
        return base
    low, high = ends(available, settings.pp)
    least, most = pool.size(low), pool.size(high)
    if least.error is not None and most.error is None:
        least = pool.size(low, check=False)
        base = replace(
            base, assumptions=(*notes, "the least of the available bytes would be refused, the most would not")
        )
    return _filled(base, least, most)


def _filled(base: KVPlan, low: PoolResult, high: PoolResult) -> KVPlan:
    blocks = tokens = None
    if low.num_blocks is not None and high.num_blocks is not None:
        blocks = Interval(low.num_blocks, high.num_blocks)
    if low.tokens is not None and high.tokens is not None:
        tokens = Interval(low.tokens, high.tokens)
    return replace(
        base,
        num_blocks=low.num_blocks,
        kv_cache_tokens=low.tokens,
        max_concurrency=low.concurrency,
        max_model_len=low.length or base.max_model_len,
        error=low.error,
        blocks_interval=blocks,
        tokens_interval=tokens,
    )


def _notes(model: ModelConfig) -> list[str]:
    filled = [f"config leaves out {', '.join(model.filled)}: its class's defaults assumed"] if model.filled else []
    if is_known_name(model):
        return filled
    return [
        *filled,
        f"architecture {model.architecture or 'not named'} is not known by name: plain attention assumed",
    ]
