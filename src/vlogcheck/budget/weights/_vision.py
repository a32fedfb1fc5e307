"""Tensors of the image and audio towers of multimodal models, by kind of tower.

A tower is cut over the tensor-parallel ranks unless ``--mm-encoder-tp-mode data`` copies it to each. It is not
quantised here: published quantised checkpoints keep their towers in 16 bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder, Share, layers_in, ratio_in
from vlogcheck.budget.weights._quant import PLAIN

if TYPE_CHECKING:
    from vlogcheck.budget._values import Values

__all__ = [
    "Tower",
    "add_tower",
    "clip",
    "clip_newline",
    "glm4v",
    "internvit",
    "llama4_vision",
    "no_tower",
    "pixtral",
    "qwen2_5_vision",
    "qwen2_vision",
    "qwen3_vision",
    "siglip_gemma3",
    "siglip_newline",
    "siglip_paligemma",
    "siglip_shuffle",
]

#: Adds a tower and its projector to the language model of the given width.
Tower = Callable[[Builder, ModelConfig], None]

_V = "vision"


def no_tower(build: Builder, model: ModelConfig) -> None:
    """Add a text-only model."""


def _config(model: ModelConfig) -> Values:
    return model.outer.object("vision_config")


def _blocks(
    build: Builder,
    count: int,
    hidden: int,
    inner: int,
    *,
    heads: int,
    gated: bool = False,
    qkv_bias: bool = True,
    o_bias: bool = True,
    mlp_bias: bool = True,
    norm: str = "layer",
    norms: int = 2,
    scales: bool = False,
) -> None:
    """Add the transformer blocks of a tower; all heads have keys and values of their own."""
    build.cut(heads, "vision heads")
    for _ in range(count):
        build.column(_V, "attn.qkv", hidden, [hidden, hidden, hidden], bias=qkv_bias)
        build.row(_V, "attn.proj", hidden, hidden, bias=o_bias)
        build.column(_V, "mlp.fc1", hidden, [inner, inner] if gated else [inner], bias=mlp_bias)
        build.row(_V, "mlp.fc2", inner, hidden, bias=mlp_bias)
        for _ in range(norms):
            build.norm(hidden, norm, _V)
        if scales:
            build.add(_V, 2 * hidden)


def _patches(vision: Values) -> int:
    """Patches of one image."""
    size = vision.need("image_size", minimum=1)
    return (size // vision.need("patch_size", minimum=1)) ** 2


def _siglip(build: Builder, vision: Values, *, closing: bool = True, positions: bool = True) -> int:
    hidden = vision.need("hidden_size", minimum=1)
    patch, channels = vision.need("patch_size", minimum=1), vision.integer("num_channels") or 3
    build.plain(_V, channels * patch * patch, hidden, bias=True)
    patches = _patches(vision)
    build.add(_V, patches * hidden)
    _blocks(
        build,
        layers_in(vision, "num_hidden_layers"),
        hidden,
        vision.need("intermediate_size"),
        heads=vision.need("num_attention_heads", minimum=1),
    )
    if closing:
        build.norm(hidden, "layer", _V)
    if positions:
        build.buffer(_V, 8 * patches)
    return hidden


def siglip_gemma3(build: Builder, model: ModelConfig) -> None:
    """SigLIP with Gemma 3's projector."""
    hidden = _siglip(build, _config(model))
    build.plain(_V, hidden, model.hidden_size)
    build.norm(hidden, "rms", _V)


def siglip_paligemma(build: Builder, model: ModelConfig) -> None:
    """SigLIP with PaliGemma's linear projector."""
    hidden = _siglip(build, _config(model))
    width = _config(model).integer("projection_dim") or model.hidden_size
    build.column(_V, "multi_modal_projector.linear", hidden, [width], bias=True)


def clip(build: Builder, model: ModelConfig) -> None:
    """CLIP with LLaVA's two-layer projector; the blocks behind the chosen feature layer are not built."""
    vision = _config(model)
    hidden = vision.integer("hidden_size") or 1024
    patch = vision.integer("patch_size", minimum=1) or 14
    patches = ((vision.integer("image_size", minimum=1) or 336) // patch) ** 2 + 1
    chosen = model.outer.data.get("vision_feature_layer", -2)
    layers = layers_in(vision, "num_hidden_layers") if vision.has("num_hidden_layers") else 24
    count = layers + 1 + chosen if isinstance(chosen, int) and chosen < 0 else layers
    build.add(_V, hidden)
    build.plain(_V, 3 * patch * patch, hidden)
    build.add(_V, patches * hidden)
    build.norm(hidden, "layer", _V)
    _blocks(
        build,
        count,
        hidden,
        vision.integer("intermediate_size") or 4096,
        heads=vision.integer("num_attention_heads", minimum=1) or 16,
    )
    bias = model.outer.flag("multimodal_projector_bias", default=True)
    build.column(_V, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(_V, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)
    build.buffer(_V, 8 * patches)


def clip_newline(build: Builder, model: ModelConfig) -> None:
    """CLIP with LLaVA-NeXT's learned line end."""
    build.add(_V, model.hidden_size)
    clip(build, model)


def siglip_newline(build: Builder, model: ModelConfig) -> None:
    """SigLIP with LLaVA-OneVision's two-layer projector and learned line end; the closing norm is not built."""
    build.add(_V, model.hidden_size)
    hidden = _siglip(build, _config(model), closing=False)
    bias = model.outer.flag("multimodal_projector_bias", default=True)
    build.column(_V, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(_V, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)


def siglip_shuffle(build: Builder, model: ModelConfig) -> None:
    """SigLIP with the pixel-shuffle connector of Idefics3 and SmolVLM, which is not cut."""
    hidden = _siglip(build, _config(model), positions=False)
    scale = model.outer.integer("scale_factor", minimum=1) or 2
    build.plain(_V, hidden * scale * scale, model.hidden_size)


def glm4v(build: Builder, model: ModelConfig) -> None:
    """GLM-4.1V's and GLM-4.5V's tower: gated blocks as wide as the output, a convolution and a gated merger."""
    vision = _config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    out, inner = vision.need("out_hidden_size", minimum=1), vision.need("intermediate_size", minimum=1)
    patches = _patches(vision)
    merge = vision.integer("spatial_merge_size", minimum=1) or 2
    build.plain(_V, _patch(vision), hidden, bias=True)
    _blocks(
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
    build.column(_V, "merger.proj", out, [out])
    build.norm(out, "layer", _V)
    build.column(_V, "merger.gate_up_proj", out, [inner, inner])
    build.row(_V, "merger.down_proj", inner, out)
    build.add(_V, patches * hidden)
    build.plain(_V, hidden * merge * merge, out, bias=True)
    for _ in range(2):
        build.norm(hidden, "rms", _V)
    _qwen_rope(build, hidden // heads)
    build.buffer(_V, 8 * patches)


def pixtral(build: Builder, model: ModelConfig) -> None:
    """Pixtral with Mistral 3's patch merger."""
    vision = _config(model)
    hidden = vision.need("hidden_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    build.plain(_V, (vision.integer("num_channels") or 3) * patch * patch, hidden)
    build.norm(hidden, "rms", _V)
    _blocks(
        build,
        layers_in(vision, "num_hidden_layers"),
        hidden,
        vision.need("intermediate_size"),
        gated=True,
        qkv_bias=False,
        o_bias=False,
        mlp_bias=False,
        norm="rms",
        heads=vision.need("num_attention_heads", minimum=1),
    )
    merge = model.outer.integer("spatial_merge_size", minimum=1)
    if merge is not None:
        build.norm(hidden, "rms", _V)
        build.plain(_V, hidden * merge * merge, hidden)
    bias = model.outer.flag("multimodal_projector_bias", default=merge is None)
    build.column(_V, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(_V, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)


def llama4_vision(build: Builder, model: ModelConfig) -> None:
    """Llama 4's tower with pixel shuffle."""
    vision = _config(model)
    hidden, inner = vision.need("hidden_size", minimum=1), vision.need("intermediate_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    patches = _patches(vision) + 1
    build.add(_V, hidden)
    build.add(_V, patches * hidden)
    build.column(_V, "patch_embedding.linear", (vision.integer("num_channels") or 3) * patch * patch, [hidden])
    for _ in range(2):
        build.norm(hidden, "layer", _V)
    heads = vision.need("num_attention_heads", minimum=1)
    _blocks(build, layers_in(vision, "num_hidden_layers"), hidden, inner, heads=heads)
    narrow, out = vision.need("projector_input_dim", minimum=1), vision.need("projector_output_dim", minimum=1)
    build.column(_V, "vision_adapter.mlp.fc1", inner, [narrow])
    build.row(_V, "vision_adapter.mlp.fc2", narrow, out)
    build.column(_V, "multi_modal_projector.linear_1", vision.need("vision_output_dim", minimum=1), [model.hidden_size])
    build.buffer(_V, patches * (hidden // heads // 2) * 8)


def _qwen_rope(build: Builder, head: int) -> None:
    """Add the towers' rotary table of 8192 positions, kept in the model's type from 0.13 on."""
    if build.release.since("0.13.0"):
        build.buffer(_V, 8192 * (head // 2) * build.item)
    else:
        build.buffer(_V, (head // 4) * 4)


def qwen2_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen2-VL's tower."""
    vision = _config(model)
    hidden = vision.need("embed_dim", "hidden_size", minimum=1)
    depth, heads = layers_in(vision, "depth"), vision.need("num_heads", minimum=1)
    build.plain(_V, _patch(vision), hidden)
    _blocks(build, depth, hidden, int(hidden * (vision.number("mlp_ratio") or 4)), heads=heads)
    build.norm(hidden, "layer", _V)
    _merger(build, hidden * (vision.integer("spatial_merge_size") or 2) ** 2, model.hidden_size)
    _qwen_rope(build, hidden // heads)


def qwen2_5_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen2.5-VL's tower: gated, RMS norms."""
    vision = _config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    build.plain(_V, _patch(vision), hidden)
    _blocks(
        build, layers_in(vision, "depth"), hidden, vision.need("intermediate_size"), gated=True, norm="rms", heads=heads
    )
    build.norm(hidden, "rms", _V)
    out = vision.integer("out_hidden_size") or model.hidden_size
    _merger(build, hidden * (vision.integer("spatial_merge_size") or 2) ** 2, out)
    _qwen_rope(build, hidden // heads)


def qwen3_vision(build: Builder, model: ModelConfig) -> None:
    """Qwen3-VL's and Qwen3.5's tower: learned positions and a merger per deep-stack level."""
    vision = _config(model)
    hidden, heads = vision.need("hidden_size", minimum=1), vision.need("num_heads", minimum=1)
    wide = hidden * (vision.integer("spatial_merge_size") or 2) ** 2
    out = vision.integer("out_hidden_size") or model.hidden_size
    build.plain(_V, _patch(vision), hidden, bias=True)
    build.add(_V, vision.need("num_position_embeddings") * hidden)
    levels = vision.integers("deepstack_visual_indexes") or []
    for width in (hidden, *(wide for _ in levels)):
        build.norm(width, "layer", _V)
        _merger(build, wide, out, inner=wide)
    _blocks(build, layers_in(vision, "depth"), hidden, vision.need("intermediate_size"), heads=heads)
    _qwen_rope(build, hidden // heads)


def _patch(vision: Values) -> int:
    patch = vision.need("patch_size", "spatial_patch_size", minimum=1)
    return (
        (vision.integer("in_channels", "in_chans") or 3) * (vision.integer("temporal_patch_size") or 2) * patch * patch
    )


def _merger(build: Builder, wide: int, out: int, *, inner: int | None = None) -> None:
    inner = wide if inner is None else inner
    build.column(_V, "merger.mlp.0", wide, [inner], bias=True)
    build.row(_V, "merger.mlp.2", inner, out, bias=True)


def internvit(build: Builder, model: ModelConfig) -> None:
    """InternViT with InternVL's two-layer projector, which is not cut."""
    vision = _config(model)
    hidden = vision.need("hidden_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    patches = _patches(vision) + 1
    build.add(_V, hidden)
    build.plain(_V, 3 * patch * patch, hidden, bias=True)
    build.add(_V, patches * hidden)
    norm = "rms" if vision.text("norm_type") == "rms_norm" else "layer"
    heads = vision.need("num_attention_heads", minimum=1)
    if vision.flag("qk_normalization"):
        build.add(_V, 2 * hidden * layers_in(vision, "num_hidden_layers"))
    _blocks(
        build,
        layers_in(vision, "num_hidden_layers"),
        hidden,
        vision.need("intermediate_size"),
        heads=heads,
        norm=norm,
        scales=True,
        qkv_bias=vision.flag("qkv_bias", default=True),
    )
    ratio = ratio_in(model.outer, "downsample_ratio", 0.5)
    wide = hidden * int(1 / ratio) ** 2
    build.norm(wide, "layer", _V)
    build.plain(_V, wide, model.hidden_size, bias=True)
    build.plain(_V, model.hidden_size, model.hidden_size, bias=True)


def add_tower(build: Builder, model: ModelConfig, tower: Tower, *, copied: bool) -> None:
    """Add a tower with its own share and without quantisation, then restore the builder's settings."""
    share, scheme = build.share, build.scheme
    build.scheme = PLAIN
    if copied:
        build.share = replace(Share(), first=share.first, last=share.last)
    tower(build, model)
    build.share, build.scheme = share, scheme
