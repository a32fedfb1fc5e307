"""Heads of attention layers: how many there are, how wide they are, and the pages kernels read them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

__all__ = ["fixed_block", "head_sizes", "kv_heads"]

#: Model types whose images are read in both directions (``is_mm_prefix_lm``).
_PREFIX_TYPES = frozenset({"bagel", "gemma3", "molmo2", "moondream3", "paligemma"})


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


def fixed_block(model: ModelConfig, settings: Settings, kind: str = "full") -> int | None:
    """Return the tokens per block the kernel fixes for the heads of such a layer, ``None`` where it takes any multiple of 16.

    FlashAttention 4 runs heads of 256 elements on Blackwell in pages of 128 tokens; soft caps, quantised caches, prefixes
    that look both ways and context parallelism leave them to another kernel (``fa_utils.py``, 0.29.0 on). On Hopper it reads
    fp8 caches of heads of 512 elements in pages of 64 tokens (``flash_attn.py``, 0.31.0 on).
    """
    options, release, family = settings.options, settings.release, settings.device.capability // 10
    if release.before("0.29.0") or model.is_mla or not model.num_attention_heads:
        return None
    if (options.attention_backend or "FLASH_ATTN").upper() != "FLASH_ATTN":
        return None
    sizes, quantised = head_sizes(model, settings, kind), settings.cache_dtype in {"fp8", "fp8_e4m3"}
    if family == 9 and release.since("0.31.0") and sizes == (512, 512) and quantised:
        return None if (options.block_size or 64) % 64 else 64
    if family != 10 or sizes != (256, 256):
        return None
    looks_both_ways = model.model_type in _PREFIX_TYPES or model.outer.flag("is_mm_prefix_lm")
    if (
        settings.cache_dtype not in {"auto", "bfloat16", "float16"}
        or (options.block_size or 128) % 128
        or options.decode_context_parallel_size > 1
        or model.values.number("attn_logit_softcapping")
        or (looks_both_ways and options.unused.get("language_model_only") not in (True, "true", "True"))
    ):
        return None
    return 128
