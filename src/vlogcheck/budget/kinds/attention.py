"""Attention with K and V per token: full, sliding, chunked and cross attention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import CHUNKED, CROSS, FULL, SLIDING, TURBOQUANT, LayerSpec
from vlogcheck.budget._model_config import FALCON_TYPES
from vlogcheck.budget._pattern import whole_model_window
from vlogcheck.budget._settings import ELEMENT_BYTES
from vlogcheck.budget._traits import is_hybrid
from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.kinds._base import Context, builds, share
from vlogcheck.budget.kinds.heads import fixed_block, head_sizes, kv_heads

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings

#: Bytes of one packed K+V slot per head and token of the turboquant formats for head size 128 (read from vLLM
#: 0.32.0's layout).
_TURBOQUANT_BITS = {
    "turboquant_k8v4": (8, 4, False), "turboquant_4bit_nc": (4, 4, True), "turboquant_k3v4_nc": (3, 4, True),
    "turboquant_3bit_nc": (3, 3, True),
}  # fmt: skip


def bytes_per_head(settings: Settings, k: int, v: int) -> int:
    """Bytes of K and V of one head and one token in the cache's format."""
    name = settings.cache_dtype
    if name in {"int8_per_token_head", "fp8_per_token_head"}:
        return k + v + 8  # two fp32 scales
    if name == "int4_per_token_head":
        return k // 2 + v // 2 + 8
    if name.startswith("nvfp4"):
        return k // 2 + k // 16 + v // 2 + v // 16
    return (k + v) * settings.cache_bytes


def turboquant_slot(name: str, head: int) -> int:
    """Bytes of one packed K+V slot of a turboquant format."""
    key_bits, value_bits, normed = _TURBOQUANT_BITS[name]
    key = head if key_bits == 8 else (head * key_bits + 7) // 8 + (2 if normed else 0)
    value = (head * value_bits + 7) // 8 + 4
    return (key + value + 1) // 2 * 2


def attention_spec(context: Context, kind: str, index: int) -> LayerSpec:
    """Return the spec of a layer with K and V per token."""
    model, settings = context.model, context.settings
    k, v = head_sizes(model, settings, kind, index)
    heads = share(kv_heads(model, kind, index), settings.tp)
    content = heads * bytes_per_head(settings, k, v)
    return LayerSpec(
        kind=FULL,
        block_size=context.block_size,
        content_bytes=content,
        num_kv_heads=heads,
        head_size=k,
        head_size_v=v,
        dtype=settings.cache_element,
        variant=settings.cache_dtype if settings.cache_dtype.endswith("per_token_head") else "",
    )


@builds("full", "mla_as_full")
def full(context: Context, index: int) -> LayerSpec:
    """Every token of the context."""
    spec = attention_spec(context, "full", index)
    settings = context.settings
    if _takes_no_cache_dtype(context):
        return _unquantised(spec, settings)
    if settings.cache_dtype.startswith("turboquant"):
        layers = context.model.num_layers
        edge = min(2, layers // 2)
        if edge <= index < layers - edge or is_hybrid(context.model):
            slot = turboquant_slot(settings.cache_dtype, spec.head_size)
            kind = TURBOQUANT if settings.release.before("0.28.0") else FULL
            return replace(spec, kind=kind, content_bytes=spec.num_kv_heads * slot, variant=settings.cache_dtype)
        return _unquantised(spec, settings)
    return _unquantised(spec, settings) if context.skips(index) else spec


def _takes_no_cache_dtype(context: Context) -> bool:
    """Whether the model's class does not tell its attention layers of ``--kv-cache-dtype``, which they follow from 0.11.1 on.

    Falcon, Baichuan with ALiBi, and MiMo-V2 until 0.31.0.
    """
    model, release = context.model, context.settings.release
    if release.before("0.11.1"):
        return False
    if model.architecture == "BaichuanForCausalLM":
        return model.hidden_size != 4096
    if model.text_model_type.startswith("mimo_v2"):
        return release.before("0.32.0")
    return model.text_model_type in FALCON_TYPES


def _unquantised(spec: LayerSpec, settings: Settings) -> LayerSpec:
    """Return the spec of a layer that keeps the model's own element type."""
    width = (spec.head_size + spec.head_size_v) * ELEMENT_BYTES[settings.dtype]
    return replace(spec, content_bytes=spec.num_kv_heads * width, dtype=settings.dtype, variant="")


@builds("sliding")
def sliding(context: Context, index: int) -> LayerSpec:
    """Build the cache of the last ``sliding_window`` tokens."""
    model, settings = context.model, context.settings
    window = model.sliding_window or whole_model_window(model)
    windows = model.text.get("sliding_window")
    if window is None and isinstance(windows, list):
        window = next((w for w in windows if isinstance(w, int) and w > 0), None)
    if window is None:
        raise ModelConfigError("config lacks 'sliding_window'")
    if model.text_model_type == "cohere2" and settings.release.since("0.29.0"):
        window += 1  # the layer sees itself besides the window
    spec = attention_spec(context, "sliding", index)
    size = spec.block_size
    if _takes_no_cache_dtype(context):
        spec = _unquantised(spec, settings)
    elif settings.cache_dtype == "int4_per_token_head" and settings.release.before("0.28.0"):
        # the class did not halve its elements yet
        width = spec.head_size + spec.head_size_v + 8
        spec = replace(spec, content_bytes=spec.num_kv_heads * width)
    if context.skips(index, sliding=True):
        spec = _unquantised(spec, settings)
    if context.shared_page is not None:
        fits = context.shared_page // spec.content_bytes // 16 * 16 if settings.release.since("0.30.0") else 16
        return replace(
            spec, kind=SLIDING, window=window, block_size=max(16, fits), page_padded=context.shared_page
        )  # fmt: skip
    if settings.release.since("0.25.1") and settings.release.before("0.30.0") and not fixed_block(model, settings):
        size = min(size, 16)  # these releases gave sliding layers the backend's smallest block
    elif settings.release.since("0.31.0"):
        size = fixed_block(model, settings, "sliding") or size
    return replace(spec, kind=SLIDING, window=window, block_size=size)


@builds("loop")
def loop(context: Context, index: int) -> LayerSpec:
    """Build the cache of a later round over the same layer: the last ``loop_window_size`` tokens."""
    window = context.model.values.integer("loop_window_size", minimum=1) or 64
    return replace(attention_spec(context, "full", index), kind=SLIDING, window=window)


@builds("chunked")
def chunked(context: Context, index: int) -> LayerSpec:
    """Build the cache of the current chunk, a spec of its own from 0.10.0 on."""
    spec = attention_spec(context, "chunked", index)
    if context.settings.release.before("0.10.0"):
        return spec
    return replace(spec, kind=CHUNKED, window=context.model.values.need("attention_chunk_size", minimum=1))


@builds("cross")
def cross(context: Context, index: int) -> LayerSpec:
    """Build the cache of the encoder's output, once per request."""
    spec = attention_spec(context, "cross", index)
    return replace(_unquantised(spec, context.settings) if context.skips(index) else spec, kind=CROSS)
