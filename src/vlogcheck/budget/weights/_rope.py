"""Bytes of the rotary cos/sin caches, which layers share and which count as weights in vLLM's log line.

The cache has a row per position *of the model*, not of ``--max-model-len``. Source: ``layers/rotary_embedding`` (0.8.5 to 0.33).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlogcheck.budget._values import Values
from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder

__all__ = ["rope_cache"]


def rope_cache(
    build: Builder, model: ModelConfig, head: int, layer: int, *, latent: bool = False, inv_freq: bool = False
) -> None:
    """Register the cache the layer uses; a cache already registered is shared."""
    kind = _layer_kind(model, layer)
    rope = _parameters(model, kind)
    partial = rope.number("partial_rotary_factor")
    if partial is None:
        partial = model.values.number("partial_rotary_factor", "rotary_pct", "rope_pct")
    stated = rope.integer("rope_dim") or model.values.integer("rotary_dim")
    width = stated or (head if partial is None or latent else int(head * partial))
    if inv_freq:
        return
    rows, extra = _rows(model, rope, latent=latent)
    identity = (kind if _distinct(model) else None, rope.number("rope_theta"), extra)
    build.rope(rows, width, identity, item=4 if extra == "float32" else None)


def _layer_kind(model: ModelConfig, layer: int) -> str | None:
    kinds = model.layer_types
    return kinds[layer] if kinds is not None and layer < len(kinds) else None


def _distinct(model: ModelConfig) -> bool:
    """Whether kinds of layers rotate differently."""
    nested = any(isinstance(v, Mapping) for v in model.rope.data.values())
    return nested or model.values.has("rope_local_base_freq", "global_rope_theta")


def _parameters(model: ModelConfig, kind: str | None) -> Values:
    """The rope settings of one layer kind, flat."""
    data: Mapping[str, Any] = model.rope.data
    inner = data.get(kind) if kind is not None else None
    if isinstance(inner, Mapping):
        return Values(inner, "rope_parameters")
    if any(isinstance(v, Mapping) for v in data.values()):
        return Values(next(v for v in data.values() if isinstance(v, Mapping)), "rope_parameters")
    if kind == "sliding_attention" and model.values.has("rope_local_base_freq"):
        return Values({"rope_type": "default", "rope_theta": model.values.number("rope_local_base_freq")})
    return Values(data, "rope_parameters")


def _rows(model: ModelConfig, rope: Values, *, latent: bool) -> tuple[int, str]:
    """Rows of the cache, and what else tells it apart."""
    values = model.values
    positions = values.integer("max_position_embeddings", "n_positions", "seq_length", "model_max_length") or 8192
    kind = rope.text("rope_type", "type") or "default"
    factor = rope.number("factor")
    original = rope.integer("original_max_position_embeddings") or values.integer("original_max_position_embeddings")
    if kind in {"yarn", "deepseek_yarn", "deepseek_llama_scaling"}:
        return int((original or positions) * (factor or 1)), kind
    if kind in {"linear", "ntk"} or (kind == "dynamic" and rope.has("factor")):
        return int(positions * (factor or 1)), kind
    if kind in {"longrope", "su"}:
        # one cache for short and one for long texts, joined
        return (original or positions) + positions, kind
    if rope.has("mrope_section") and values.text("model_type") != "qwen3_5_moe_text":
        return positions * 4, "mrope"
    return positions, kind
