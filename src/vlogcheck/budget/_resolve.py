"""How vLLM resolves flags, model and card into settings.

Long because one function a setting holds what every release made of it, side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget import _traits as traits
from vlogcheck.budget._settings import CACHE_ELEMENT, ELEMENT_BYTES, Settings
from vlogcheck.budget.model import ModelConfig, ModelConfigError
from vlogcheck.budget.releases import Release, default_batched_tokens, default_max_num_seqs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck.budget._device import Device
    from vlogcheck.budget.flags import ServeOptions

__all__ = ["resolve"]


def resolve(
    model: ModelConfig, options: ServeOptions, release: Release, env: Mapping[str, str], device: Device
) -> Settings:
    """Resolve what vLLM would.

    Raises:
        ModelConfigError: the config or an option has a value the plan cannot follow.

    """
    notes = [note for note in (release.assumption, device.assumption) if note]
    is_v0 = (release.before("0.9.2") and traits.has_state(model)) or _is_v0(release, env, notes)
    dtype = _dtype(model, options, notes)
    cache_dtype = _cache_dtype(model, options, release, device, notes)
    length = options.max_model_len
    if length is None or length == -1:
        length = model.default_max_model_len(release)
        if options.disable_sliding_window and model.sliding_window is not None:
            length = min(length, model.sliding_window)
        if options.max_model_len is None:
            notes.append(f"--max-model-len not given: {length} from the model's config")
    seqs = options.max_num_seqs or default_max_num_seqs(release, device)
    if options.max_num_seqs is None and options.pipeline_parallel_size > 1 and release.before("0.9.1"):
        seqs = 256
    batched = options.max_num_batched_tokens
    if batched is None:
        batched = _default_batched(model, options, release, device, length, seqs)
        notes.append(f"--max-num-batched-tokens not given: {batched} assumed (server on this class of card)")
    prefix = _prefix_caching(model, options, release)
    off = env.get("VLLM_MLA_DISABLE", "0").strip() in {"1", "true", "True"}
    use_mla = traits.is_mla(model, release) and (not off or traits.has_latents_alone(model, release))
    spec = options.speculative_config or {}
    tokens = spec.get("num_speculative_tokens") or 0
    if spec and not tokens and str(spec.get("method") or "mtp").endswith("mtp"):
        tokens = model.num_nextn_layers or 1
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= 1024:
        raise ModelConfigError(f"speculative config: num_speculative_tokens must be a count, not {str(tokens)[:40]!r}")
    return Settings(
        release=release,
        device=device,
        options=options,
        env=env,
        dtype=dtype,
        cache_dtype=cache_dtype,
        max_model_len=length,
        max_num_batched_tokens=batched,
        max_num_seqs=seqs,
        in_flight_tokens=_in_flight(model, options, release, env, batched, on_cpu=device.is_cpu),
        prefix_caching=prefix,
        mamba_mode=_mamba_mode(model, options, release, prefix),
        use_mla=use_mla,
        hybrid_disabled=_hybrid_disabled(model, options, release, env),
        is_v0=is_v0,
        num_speculative_tokens=tokens,
        assumptions=tuple(notes),
    )


def _is_v0(release: Release, env: Mapping[str, str], notes: list[str]) -> bool:
    if release.since("0.11.0"):
        return False
    chosen = env.get("VLLM_USE_V1")
    if chosen is not None:
        return chosen.strip() == "0" or release.before("0.7.0")
    if release.since("0.8.0"):
        notes.append("V1 engine assumed (default from 0.8.0)")
        return False
    return True


def _dtype(model: ModelConfig, options: ServeOptions, notes: list[str]) -> str:
    chosen = options.dtype
    if chosen == "auto":
        stated = model.dtype
        if stated is None:
            notes.append("config states no dtype: bfloat16 assumed")
            return "bfloat16"
        if stated in {"float32", "float"}:
            return "float16" if traits.is_pooling(model) else "bfloat16"
        chosen = stated
    chosen = {"half": "float16", "float": "float32"}.get(chosen, chosen)
    if chosen not in ELEMENT_BYTES:
        known = ", ".join(sorted({"auto", "half", "float", *ELEMENT_BYTES}))
        raise ModelConfigError(f"dtype {chosen[:40]!r} is not known: known are {known}")
    return chosen


def _cache_dtype(model: ModelConfig, options: ServeOptions, release: Release, device: Device, notes: list[str]) -> str:
    chosen = options.kv_cache_dtype
    if chosen == "auto" and (found := traits.checkpoint_cache_dtype(model, release)) is not None:
        notes.append(f"--kv-cache-dtype auto: {found} from the checkpoint's quantization_config")
        chosen = found
    if model.values.has("index_topk") and model.is_mla:
        if chosen == "auto" and release.before("0.11.1"):
            chosen = "fp8_ds_mla"
        elif chosen == "bfloat16":
            chosen = "auto"
        elif chosen == "auto" and model.text_model_type == "glm_moe_dsa" and release.since("0.32.0"):
            chosen = "fp8_e4m3" if device.capability // 10 == 10 else chosen
    if chosen != "auto" and chosen not in CACHE_ELEMENT:
        known = ", ".join(sorted({"auto", *CACHE_ELEMENT}))
        raise ModelConfigError(f"--kv-cache-dtype {chosen[:40]!r} is not known: known are {known}")
    return chosen


def _default_batched(
    model: ModelConfig, options: ServeOptions, release: Release, device: Device, length: int, seqs: int
) -> int:
    if release.before("0.8.0"):
        return max(length, 2048) if options.enable_chunked_prefill is not True else 2048
    batched = default_batched_tokens(release, device)
    if device.is_cpu:
        batched *= options.tensor_parallel_size * options.pipeline_parallel_size
    if options.pipeline_parallel_size > 1 and release.before("0.9.1"):  # the older engine's defaults
        return 2048 if length > 32768 else max(length, 2048)
    if options.enable_chunked_prefill is False:
        batched = max(length, batched)
    if options.performance_mode == "throughput" and release.since("0.16.0"):
        batched *= 2
    if release.since("0.11.1"):
        batched = min(batched, seqs * length)
    return batched


def _prefix_caching(model: ModelConfig, options: ServeOptions, release: Release) -> bool:
    stateful, hybrid = traits.has_state(model), traits.is_hybrid(model)
    if traits.is_pooling(model) or model.is_encoder_decoder or release.before("0.8.0"):
        return bool(options.enable_prefix_caching) and not stateful
    if stateful:
        if release.before("0.11.1"):
            return False
        if release.before("0.15.1") and not traits.caches_every_state(model):
            return False
        if not hybrid:
            return bool(options.enable_prefix_caching)
        if options.enable_prefix_caching is None:
            return release.since("0.28.0")
        return options.enable_prefix_caching
    return options.enable_prefix_caching is not False


def _mamba_mode(model: ModelConfig, options: ServeOptions, release: Release, prefix: bool) -> str:
    if not traits.has_state(model) or not prefix:
        return "none"
    if release.before("0.15.1"):
        return "all"
    if options.mamba_cache_mode in {"all", "align"} and (
        release.before("0.32.0") or options.mamba_cache_mode == "align"
    ):
        return options.mamba_cache_mode
    if release.since("0.28.0"):
        return "align"
    return "all" if traits.caches_every_state(model) else "align"


def _in_flight(
    model: ModelConfig, options: ServeOptions, release: Release, env: Mapping[str, str], batched: int, *, on_cpu: bool
) -> int:
    if release.before("0.26.0"):
        return batched
    pp = options.pipeline_parallel_size
    spec = options.speculative_config or {}
    method = str(spec.get("method") or "")
    v2 = traits.uses_v2_runner(model, options, release, env)
    asynchronous = options.async_scheduling
    if asynchronous is None:
        asynchronous = not traits.is_pooling(model) and not on_cpu
        if (
            (
                spec
                and method in {"ngram", "suffix", "medusa", "mlp_speculator", "custom_class", "extract_hidden_states"}
            )
            or spec.get("disable_padded_drafter_batch") is True
            or (pp > 1 and not v2 and release.since("0.31.0"))
        ):
            asynchronous = False
    if not asynchronous:
        return pp * batched
    if v2:
        return (pp + 1) * batched
    return (2 if pp <= 1 else pp) * batched


def _hybrid_disabled(model: ModelConfig, options: ServeOptions, release: Release, env: Mapping[str, str]) -> bool:
    if release.before("0.9.1"):
        return True
    if options.disable_hybrid_kv_cache_manager is not None and (
        options.disable_hybrid_kv_cache_manager or release.since("0.13.0")
    ):
        return options.disable_hybrid_kv_cache_manager
    if options.kv_transfer_config is not None and (
        release.before("0.13.0") or not traits.connector_handles_groups(options.kv_transfer_config, release)
    ):
        return True
    if options.kv_events_config is not None and release.before("0.20.2"):
        return options.kv_events_config.get("enable_kv_cache_events", True) is not False
    if traits.has_chunked(model, release):
        if release.since("0.10.0") and release.before("0.14.1"):
            return env.get("VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "0").strip() != "1"
        method = str((options.speculative_config or {}).get("method") or "")
        if method.startswith("eagle"):
            return True
        if release.since("0.14.1"):
            return env.get("VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "1").strip() == "0"
    return False
