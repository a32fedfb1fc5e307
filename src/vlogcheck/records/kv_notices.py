"""What else vLLM says about the KV cache: changes of type, kernels, fusions, drafters, shapes."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = [
    "DrafterKVCache",
    "KVCacheDtypeChanged",
    "KVCacheShape",
    "KVEventsSetting",
    "KVScaleDefault",
]


class KVCacheDtypeChanged(Record):
    """The type asked for the KV cache is not possible on this device: another one is used."""

    kv_cache_dtype: Word
    """The type used."""

    templates = (
        Template(
            "CPU backend doesn't support KV cache quantization fallback to {kv_cache_dtype}.",
            versions=">=0.11.1,<0.21.0",
            example="CPU backend doesn't support KV cache quantization fallback to auto.",
        ),
        Template(
            "CPU backend doesn't support fp8_e4m3 KV cache type, cast to {kv_cache_dtype}.",
            versions=">=0.8.0,<0.11.1",
            example="CPU backend doesn't support fp8_e4m3 KV cache type, cast to fp8_e5m2.",
        ),
        Template(
            "KV cache type is overridden to {kv_cache_dtype} via VLLM_OPENVINO_CPU_KV_CACHE_PRECISION env var.",
            versions=">=0.6.3,<0.8.2",
            example="KV cache type is overridden to u8 via VLLM_OPENVINO_CPU_KV_CACHE_PRECISION env var.",
        ),
    )


class KVScaleDefault(Record):
    """Scales of a quantised KV cache: defaults are used, or computing them is off (layers/quantization/kv_cache.py)."""

    model: str | None = None
    """The model it concerns."""

    templates = (
        Template(
            "Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify that k/v_scale scaling"
            " factors are properly set in the checkpoint.",
            versions=">=0.11.1",
            example="Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify that k/v_scale"
            " scaling factors are properly set in the checkpoint.",
        ),
        Template(
            "Using KV cache scaling factor 1.0 for fp8_e4m3. This may cause accuracy issues. Please make sure"
            " [[k/v_scale scaling factors are]][[kv-cache scaling factor is]] available in the fp8 checkpoint.",
            versions=">=0.4.3,<0.11.1",
            example="Using KV cache scaling factor 1.0 for fp8_e4m3. This may cause accuracy issues. Please make sure"
            " k/v_scale scaling factors are available in the fp8 checkpoint.",
        ),
        Template(
            "Disabling calculate_kv_scales for hybrid model '{model}'. Hybrid models with recurrent layers (GDN,"
            " Mamba, SSM) produce unreliable KV cache scales during the calibration pass because recurrent state is"
            " uninitialized. Using default scale of 1.0 instead.",
            versions=">=0.19.0,<0.28.0",
            example="Disabling calculate_kv_scales for hybrid model 'Qwen/Qwen3-Next-80B-A3B-Instruct'. Hybrid models"
            " with recurrent layers (GDN, Mamba, SSM) produce unreliable KV cache scales during the calibration pass"
            " because recurrent state is uninitialized. Using default scale of 1.0 instead.",
        ),
    )


class KVEventsSetting(Record):
    """Publishing of KV cache events disagrees with the rest of the configuration."""

    templates = (
        Template(
            "KV cache events are disabled,[[ ]]but the scheduler is configured to publish them.[[ ]]Modify"
            " KVEventsConfig.enable_kv_cache_events[[ ]]to True to enable.",
            versions=">=0.9.0",
            example="KV cache events are disabled, but the scheduler is configured to publish them. Modify"
            " KVEventsConfig.enable_kv_cache_events to True to enable.",
        ),
        Template(
            "KV cache events are on, but prefix caching is not enabled.[[ ]]Use --enable-prefix-caching to enable.",
            versions=">=0.9.0",
            example="KV cache events are on, but prefix caching is not enabled. Use --enable-prefix-caching to enable.",
        ),
        Template(
            "enable_kv_events is set on secondary tier '{_}' but KV cache events are disabled globally; the tier will"
            " not emit events.",
            versions=">=0.26.0",
            example="enable_kv_events is set on secondary tier 'fs' but KV cache events are disabled globally; the"
            " tier will not emit events.",
        ),
        Template(
            "KVCR local DRAM is enabled, but KV cache events are disabled; local DRAM inventory will not be published",
            versions=">=0.30.0",
            example="KVCR local DRAM is enabled, but KV cache events are disabled; local DRAM inventory will not be"
            " published",
        ),
    )


class DrafterKVCache(Record):
    """The drafter's KV cache: set up, or its groups could not be told from the target's."""

    method: Word | None = None
    """Method of speculation."""

    templates = (
        Template(
            "Draft model KV cache initialized for CPU backend",
            versions=">=0.20.0",
            example="Draft model KV cache initialized for CPU backend",
        ),
        Template(
            "EAGLE drafter KV cache initialized for CPU backend",
            versions=">=0.20.0",
            example="EAGLE drafter KV cache initialized for CPU backend",
        ),
        Template(
            "Speculative decoding (method={method}) is enabled but no KV cache group could be identified as the"
            " draft model's.",
            versions=">=0.30.0",
            example="Speculative decoding (method=eagle) is enabled but no KV cache group could be identified as the"
            " draft model's.",
        ),
        Template(
            "KV offloading: speculative decoding is enabled but no KV-cache group is annotated as a drafter group;"
            " treating all groups as non-draft for offloading.",
            versions=">=0.30.0",
            example="KV offloading: speculative decoding is enabled but no KV-cache group is annotated as a drafter"
            " group; treating all groups as non-draft for offloading.",
        ),
    )


class KVCacheShape(Record):
    """How tensors of the KV cache are laid out or shared between layers."""

    shape: str | None = None
    """Shape, as printed."""

    templates = (
        Template(
            "Allocating a cross layer KV cache of shape {shape}",
            versions=">=0.12.0,<0.29.0",
            example="Allocating a cross layer KV cache of shape (32, 4096, 2, 16, 8, 128)",
        ),
        Template(
            "{_} reuses KV cache of {_}",
            versions=">=0.10.2",
            example="model.layers.30.self_attn.attn reuses KV cache of model.layers.28.self_attn.attn",
        ),
        Template(
            "Using cross-layer KV cache",
            versions=">=0.16.0,<0.29.0",
            example="Using cross-layer KV cache",
        ),
        Template(
            "Skipping mixed KV-cache layout alignment for a non-NHD blocks-first attention view with stride {_}.",
            versions=">=0.25.0,<0.29.0",
            example="Skipping mixed KV-cache layout alignment for a non-NHD blocks-first attention view with stride"
            " (32768, 16384, 128, 2048, 1).",
        ),
        Template(
            "Disabling fine-grained prefix-cache hits because these KV cache managers require block-aligned lookups:"
            " {_}.",
            versions=">=0.28.0",
            example="Disabling fine-grained prefix-cache hits because these KV cache managers require block-aligned"
            " lookups: CrossAttentionManager, MambaManager.",
        ),
        Template(
            "Group index `{_}` not in KV cache metadata",
            versions=">=0.22.0",
            example="Group index `2` not in KV cache metadata",
        ),
        Template(
            "Initialized minimal KV cache for CUDA graph profiling",
            versions=">=0.18.0",
            example="Initialized minimal KV cache for CUDA graph profiling",
        ),
        Template(
            "Cleaned up profiling KV cache and CUDA graphs",
            versions=">=0.18.0",
            example="Cleaned up profiling KV cache and CUDA graphs",
        ),
        Template(
            "Disabling chunked prefill for model without KVCache",
            versions=">=0.10.1",
            example="Disabling chunked prefill for model without KVCache",
        ),
        Template(
            "[Elastic EP] Synced KV cache memory size to new workers",
            versions=">=0.17.0",
            example="[Elastic EP] Synced KV cache memory size to new workers",
        ),
    )
