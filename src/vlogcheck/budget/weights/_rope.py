"""Bytes of the rotary cos/sin caches, which layers share and which count as weights in vLLM's log line.

The cache has a row per position *of the model*, not of ``--max-model-len``. Source: ``layers/rotary_embedding``
(0.8.5 to 0.33).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._values import Values

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["rope_cache"]


def rope_cache(
    build: Builder, model: ModelConfig, traits: Traits, head: int, layer: int, *, latent: bool = False, copy: str = ""
) -> None:
    """Register the cache the layer uses; a cache already registered is shared (``copy`` tells a second one apart)."""
    kind = _layer_kind(model, layer)
    rope = _parameters(model, kind)
    partial = rope.number("partial_rotary_factor")
    if partial is None:
        partial = model.values.number("partial_rotary_factor", "rotary_pct", "rope_pct")
    stated = rope.integer("rope_dim") or model.values.integer("rotary_dim")
    width = stated or (head if partial is None or latent else int(head * partial))
    if traits.transformers_since is not None and build.release.since(traits.transformers_since):
        # two float32 vectors of frequencies per kind of layer
        for what in ("inv_freq", "original_inv_freq"):
            build.rope(1, width // 2, (what, kind if _nested(model) else None), item=4)
        return
    rows, extra = _rows(build, model, rope)
    if extra == "proportional":
        width = head  # the whole head is kept, the part that does not turn as zeros
    identity = (rope.number("rope_theta") if _distinct(model) else None, extra, copy)
    build.rope(rows, width, identity, item=traits.rope_item)


def _layer_kind(model: ModelConfig, layer: int) -> str | None:
    kinds = model.layer_types
    return kinds[layer] if kinds is not None and layer < len(kinds) else None


def _distinct(model: ModelConfig) -> bool:
    """Whether kinds of layers rotate differently."""
    return _nested(model) or model.values.has("rope_local_base_freq", "global_rope_theta")


def _nested(model: ModelConfig) -> bool:
    return any(isinstance(v, Mapping) for v in model.rope.data.values())


def _parameters(model: ModelConfig, kind: str | None) -> Values:
    """Return the rope settings of one layer kind, flat."""
    data: Mapping[str, Any] = model.rope.data
    inner = data.get(kind) if kind is not None else None
    if isinstance(inner, Mapping):
        return Values(inner, "rope_parameters")
    if any(isinstance(v, Mapping) for v in data.values()):
        return Values(next(v for v in data.values() if isinstance(v, Mapping)), "rope_parameters")
    if kind == "sliding_attention" and model.values.has("rope_local_base_freq"):
        return Values({"rope_type": "default", "rope_theta": model.values.number("rope_local_base_freq")})
    return Values(data, "rope_parameters")


def _rows(build: Builder, model: ModelConfig, rope: Values) -> tuple[int, str]:
    """Rows of the cache, and what else tells it apart."""
    values = model.values
    positions = values.integer("max_position_embeddings", "n_positions", "seq_length", "model_max_length") or 8192
    kind = rope.text("rope_type", "type") or "default"
    factor = rope.number("factor")
    original = rope.integer("original_max_position_embeddings") or values.integer("original_max_position_embeddings")
    if kind in {"yarn", "deepseek_yarn", "deepseek_llama_scaling"}:
        return int((original or positions) * (factor or 1)), kind
    stretched = kind == "dynamic" and rope.has("factor") and build.release.before("0.22.1")
    if kind in {"linear", "ntk"} or stretched:
        return int(positions * (factor or 1)), kind
    if kind in {"longrope", "su"}:
        # one cache for short and one for long texts, joined
        return (original or positions) + positions, kind
    if rope.has("mrope_section"):
        # videos get positions beyond the text's; Qwen3-VL and later do without from 0.32 on
        single = build.release.since("0.32.0") and (model.architecture or "").startswith(("Qwen3VL", "Qwen3_5"))
        return positions * (1 if single else 4), "mrope"
    return positions, kind
