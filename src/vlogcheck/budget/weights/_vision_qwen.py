"""Towers of the Qwen-VL and GLM-V models, which fold patches of two frames into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._dimensions import layers_in
from vlogcheck.budget.weights._tower import VISION, blocks, patches_in, vision_config

if TYPE_CHECKING:
    from vlogcheck.budget._values import Values
    from vlogcheck.budget.model import ModelConfig

__all__ = ["glm4v", "qwen2_5_vision", "qwen2_vision", "qwen3_vision"]


def glm4v(build: Builder, model: ModelConfig) -> None:
    """GLM-4.1V's and GLM-4.5V's tower: gated blocks as wide as the output, a convolution and a gated merger."""
    vision = vision_config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    out, inner = vision.need("out_hidden_size", minimum=1), vision.need("intermediate_size", minimum=1)
    patches = patches_in(vision)
    merge = vision.integer("spatial_merge_size", minimum=1) or 2
    build.plain(VISION, _patch(vision), hidden, bias=True)
    blocks(
        build,
        layers_in(vision, "depth"),
        hidden,
        out,
        heads=heads,
        gated=True,
        norm="rms",
        qkv_bias=vision.flag("attention_bias"),
        o_bias=False,
        mlp_bias=False,
    )
    build.column(VISION, "merger.proj", out, [out])
    build.norm(out, "layer", VISION)
    build.column(VISION, "merger.gate_up_proj", out, [inner, inner])
    build.row(VISION, "merger.down_proj", inner, out)
    build.add(VISION, patches * hidden)
    build.plain(VISION, hidden * merge * merge, out, bias=True)
    for _ in range(2):
        build.norm(hidden, "rms", VISION)
    _qwen_rope(build, hidden // heads)
    build.buffer(VISION, 8 * patches)


def _qwen_rope(build: Builder, head: int) -> None:
    """Add the towers' rotary table of 8192 positions, kept in the model's type from 0.13 on."""
    if build.release.since("0.13.0"):
        build.buffer(VISION, 8192 * (head // 2) * build.item)
    else:
        build.buffer(VISION, (head // 4) * 4)


def qwen2_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen2-VL's tower."""
    vision = vision_config(model)
    hidden = vision.need("embed_dim", "hidden_size", minimum=1)
    depth, heads = layers_in(vision, "depth"), vision.need("num_heads", minimum=1)
    build.plain(VISION, _patch(vision), hidden)
    blocks(build, depth, hidden, int(hidden * (vision.number("mlp_ratio") or 4)), heads=heads)
    build.norm(hidden, "layer", VISION)
    _merger(build, hidden * (vision.integer("spatial_merge_size") or 2) ** 2, model.hidden_size)
    _qwen_rope(build, hidden // heads)


def qwen2_5_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen2.5-VL's tower: gated, RMS norms."""
    vision = vision_config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    build.plain(VISION, _patch(vision), hidden)
    blocks(
        build, layers_in(vision, "depth"), hidden, vision.need("intermediate_size"), gated=True, norm="rms", heads=heads
    )
    build.norm(hidden, "rms", VISION)
    out = vision.integer("out_hidden_size") or model.hidden_size
    _merger(build, hidden * (vision.integer("spatial_merge_size") or 2) ** 2, out)
    _qwen_rope(build, hidden // heads)


def qwen3_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen3-VL's and Qwen3.5's tower: learned positions and a merger per deep-stack level."""
    vision = vision_config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    wide = hidden * (vision.integer("spatial_merge_size") or 2) ** 2
    out = vision.integer("out_hidden_size") or model.hidden_size
    build.plain(VISION, _patch(vision), hidden, bias=True)
    build.add(VISION, vision.need("num_position_embeddings") * hidden)
    levels = vision.integers("deepstack_visual_indexes") or []
    for width in (hidden, *(wide for _ in levels)):
        build.norm(width, "layer", VISION)
        _merger(build, wide, out, inner=wide)
    blocks(build, layers_in(vision, "depth"), hidden, vision.need("intermediate_size"), heads=heads)
    _qwen_rope(build, hidden // heads)


def _patch(vision: Values) -> int:
    patch = vision.need("patch_size", "spatial_patch_size", minimum=1)
    return (
        (vision.integer("in_channels", "in_chans") or 3) * (vision.integer("temporal_patch_size") or 2) * patch * patch
    )


def _merger(build: Builder, wide: int, out: int, *, inner: int | None = None) -> None:
    inner = wide if inner is None else inner
    build.column(VISION, "merger.mlp.0", wide, [inner], bias=True)
    build.row(VISION, "merger.mlp.2", inner, out, bias=True)
