"""Attention with K and V per token: full, sliding, chunked and cross attention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import CHUNKED, CROSS, FULL, SLIDING, LayerSpec
from vlogcheck.budget._pattern import whole_model_window
from vlogcheck.budget._settings import ELEMENT_BYTES
from vlogcheck.budget._traits import is_hybrid
from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.kinds._base import Context, builds, share

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

#: Bytes of one packed K+V slot per head and token of the turboquant formats for head size 128 (read from vLLM
#: 0.32.0's layout).
_TURBOQUANT_BITS = {
    "turboquant_k8v4": (8, 4, False), "turboquant_4bit_nc": (4, 4, True), "turboquant_k3v4_nc": (3, 4, True),
    "turboquant_3bit_nc": (3, 3, True),
}  # fmt: skip


def _override(model: ModelConfig, index: int | None, key: str) -> int | None:
    """Return what ``per_layer_config`` says about one layer (keys are layer numbers as text, ``"05"`` or ``"5"``)."""
    table = model.values.object("per_layer_config")
    if index is None or not table.data:
        return None
    entries = {name.lstrip("0") or "0": name for name in table.data if isinstance(name, str)}
    name = entries.get(str(index))
    return table.object(name).integer(key, minimum=1) if name is not None else None


def head_sizes(model: ModelConfig, settings: Settings, kind: str, index: int | None = None) -> tuple[int, int]:
    """K and V head size of an attention layer, in elements."""
    if model.is_mla:  # latent attention run as ordinary attention: V is padded to K's width
        size = model.qk_nope_head_dim + model.qk_rope_head_dim
        return size, size
    values = model.values
    if (own := _override(model, index, "head_dim")) is not None:
        return own, own
    if kind == "full" and model.text_model_type.startswith("gemma4"):
        size = values.integer("global_head_dim", minimum=1) or 512
        return size, size
    if model.text_model_type.startswith("mimo_v2"):
        prefix = "swa_" if kind == "sliding" else ""
        k = values.integer(f"{prefix}head_dim", minimum=1) or model.head_dim
        v = values.integer(f"{prefix}v_head_dim", minimum=1)
        return k, v if v is not None and settings.release.since("0.20.0") else k  # V was padded to K before
    if model.text_model_type == "zamba2":
        size = values.integer("attention_head_dim", minimum=1) or model.head_dim
        return size, size
    return model.head_dim, model.head_dim


def kv_heads(model: ModelConfig, kind: str, index: int) -> int:
    """KV heads of layer ``index`` in all."""
    values = model.values
    if model.is_mla:
        return model.num_attention_heads
    if model.is_encoder_decoder:
        return model.num_attention_heads
    if (own := _override(model, index, "num_key_value_heads")) is not None:
        return own
    if kind == "full" and model.text_model_type.startswith("gemma4") and values.flag("attention_k_eq_v"):
        return values.integer("num_global_key_value_heads", minimum=1) or model.num_kv_heads
    if kind == "sliding" and model.text_model_type.startswith("mimo_v2"):
        return values.integer("swa_num_key_value_heads", minimum=1) or model.num_kv_heads
    blocks = values.items("block_configs")
    if blocks is not None and index < len(blocks):
        block = blocks[index]
        attention = block.get("attention") if isinstance(block, dict) else None
        group = attention.get("n_heads_in_group") if isinstance(attention, dict) else None
        if not isinstance(group, int) or group < 1:
            raise ModelConfigError("config key 'block_configs': 'n_heads_in_group' must be a count")
        return model.num_attention_heads // group
    return model.num_kv_heads


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
    if settings.cache_dtype.startswith("turboquant"):
        layers = context.model.num_layers
        edge = min(2, layers // 2)
        if edge <= index < layers - edge or is_hybrid(context.model):
            slot = turboquant_slot(settings.cache_dtype, spec.head_size)
            return replace(spec, content_bytes=spec.num_kv_heads * slot, variant=settings.cache_dtype)
        return _unquantised(spec, settings)
    if str(index) in settings.options.kv_cache_dtype_skip_layers:
        return _unquantised(spec, settings)
    return spec


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
    if settings.release.since("0.25.1") and settings.release.before("0.30.0") and not size_by_head(context):
        size = min(size, 16)  # these releases gave sliding layers the backend's smallest block
    return replace(spec, kind=SLIDING, window=window, block_size=size)


def size_by_head(context: Context) -> bool:
    """Whether the attention backend fixes the block size for this head size (FlashAttention 4, Blackwell)."""
    settings = context.settings
    return settings.release.since("0.29.0") and settings.device.capability // 10 == 10 and context.model.head_dim == 256


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
    return replace(attention_spec(context, "cross", index), kind=CROSS)
