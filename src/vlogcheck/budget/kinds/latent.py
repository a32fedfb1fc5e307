"""Latent attention (MLA): one compressed vector per token, and the index of its sparse form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import FULL, MLA, LayerSpec
from vlogcheck.budget._settings import ELEMENT_BYTES
from vlogcheck.budget.kinds._base import BUILDERS, Context, builds

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

_PADDED_HEAD = 256


@builds("mla", "sparse")
def mla(context: Context, index: int) -> LayerSpec:
    """Build the cache of one latent per token, whole on every rank; ordinary attention where latents are off."""
    model, settings = context.model, context.settings
    if not settings.use_mla:
        return _padded(BUILDERS["full"](context, index), context)
    width = model.kv_lora_rank + model.qk_rope_head_dim
    kind = MLA if settings.release.since("0.11.0") else FULL
    content, element, variant = width * settings.cache_bytes, settings.cache_element, settings.cache_dtype
    if model.values.has("index_topk") and _packs(model, settings):
        content, element, variant = 656, "uint8", "fp8_ds_mla"  # 512 B latent, 16 B scales, 128 B of rope in 16 bit
    elif settings.cache_dtype == "fp8_ds_mla":
        content = 656
    elif settings.cache_dtype == "nvfp4_ds_mla":
        content = 352
    unaligned = settings.env.get("VLLM_CUDA_MEM_ALIGN_KV_CACHE", "1").strip() == "0"
    if settings.is_v0 and settings.release.since("0.7.2") and settings.release.before("0.8.0") and not unaligned:
        step = 256 // ELEMENT_BYTES[settings.dtype]  # entries were aligned on the older engine, as of the model's type
        content = -(-width // step) * step * settings.cache_bytes
    return LayerSpec(
        kind=kind,
        block_size=context.block_size,
        content_bytes=content,
        num_kv_heads=1,
        head_size=width,
        head_size_v=0 if settings.release.since("0.28.0") else width,
        dtype=element,
        variant=variant,
    )


def _packs(model: ModelConfig, settings: Settings) -> bool:
    """Whether a sparse latent is kept in DeepSeek's own fp8 layout rather than as plain fp8 elements.

    On Blackwell (compute capability 10) FlashInfer reads plain ones: for at most 16 query heads a rank from 0.18.1, for all
    from 0.20.2. Capability 12 has one kernel, which packs whatever is asked for (0.24.0 on).
    """
    name, release, family = settings.cache_dtype, settings.release, settings.device.capability // 10
    if family == 12 and release.since("0.24.0") and name in {"auto", "fp8", "fp8_e4m3"}:
        return True
    if not name.startswith("fp8"):
        return False
    if family != 10 or name == "fp8_ds_mla" or release.before("0.18.0"):
        return True
    return release.before("0.20.0") and model.num_attention_heads // settings.tp > 16


def _padded(spec: LayerSpec, context: Context) -> LayerSpec:
    """Return what DeepSeek's heads took from 0.5.1 until 0.6.6: padded to the 256 elements the kernels of then knew."""
    release = context.settings.release
    if context.model.text_model_type not in ("deepseek_v2", "deepseek_v3"):
        return spec
    if release.before("0.5.1") or release.since("0.7.0"):
        return spec
    size = 2 * spec.num_kv_heads * _PADDED_HEAD * context.settings.cache_bytes
    return replace(spec, content_bytes=size, head_size=_PADDED_HEAD, head_size_v=_PADDED_HEAD)


@builds("sparse_shared")
def follower(context: Context, index: int) -> LayerSpec:
    """Build the latent of a layer that follows an earlier layer's choice: a spec of its own from 0.30.0 on."""
    spec = mla(context, index)
    return replace(spec, variant=f"{spec.variant} follower") if context.settings.release.since("0.30.0") else spec


@builds("indexer")
def indexer(context: Context, index: int) -> LayerSpec:
    """Build the cache of the sparse form's index: fp8 keys of ``index_head_dim`` bytes and 4 bytes of scale per 128."""
    width = context.model.values.integer("index_head_dim", minimum=1) or 128
    return LayerSpec(
        kind=MLA,
        block_size=context.block_size,
        content_bytes=width + width // 128 * 4,
        head_size=width + width // 128 * 4,
        dtype="uint8",
        variant="indexer",
    )
