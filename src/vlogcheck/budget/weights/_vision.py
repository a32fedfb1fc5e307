"""Tensors of the image and audio towers of multimodal models, by kind of tower.

A tower is cut over the tensor-parallel ranks unless ``--mm-encoder-tp-mode data`` copies it to each. It is not
quantised here: published quantised checkpoints keep their towers in 16 bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._dimensions import layers_in, ratio_in
from vlogcheck.budget.weights._tower import VISION, blocks, patches_in, vision_config

if TYPE_CHECKING:
    from vlogcheck.budget._values import Values
    from vlogcheck.budget.model import ModelConfig

__all__ = [
    "clip",
    "clip_newline",
    "internvit",
    "llama4_vision",
    "pixtral",
    "siglip_gemma3",
    "siglip_newline",
    "siglip_paligemma",
    "siglip_shuffle",
]


def _siglip(build: Builder, vision: Values, *, closing: bool = True, positions: bool = True) -> int:
    hidden = vision.need("hidden_size", minimum=1)
    patch, channels = vision.need("patch_size", minimum=1), vision.integer("num_channels") or 3
    build.plain(VISION, channels * patch * patch, hidden, bias=True)
    patches = patches_in(vision)
    if build.release.before("0.14.0"):
        build.table(VISION, patches, hidden)  # positions were cut over the ranks like a vocabulary
    else:
        build.add(VISION, patches * hidden)
    blocks(
        build,
        layers_in(vision, "num_hidden_layers"),
        hidden,
        vision.need("intermediate_size"),
        heads=vision.need("num_attention_heads", minimum=1),
    )
    if closing:
        build.norm(hidden, "layer", VISION)
    if positions:
        build.buffer(VISION, 8 * patches)
    return hidden


def siglip_gemma3(build: Builder, model: ModelConfig) -> None:
    """SigLIP with Gemma 3's projector."""
    hidden = _siglip(build, vision_config(model))
    build.plain(VISION, hidden, model.hidden_size)
    build.norm(hidden, "rms", VISION)


def siglip_paligemma(build: Builder, model: ModelConfig) -> None:
    """SigLIP with PaliGemma's linear projector."""
    hidden = _siglip(build, vision_config(model))
    width = vision_config(model).integer("projection_dim") or model.hidden_size
    build.column(VISION, "multi_modal_projector.linear", hidden, [width], bias=True)


def clip(build: Builder, model: ModelConfig) -> None:
    """CLIP with LLaVA's two-layer projector; the blocks behind the chosen feature layer are not built."""
    vision = vision_config(model)
    hidden = vision.integer("hidden_size") or 1024
    patch = vision.integer("patch_size", minimum=1) or 14
    patches = ((vision.integer("image_size", minimum=1) or 336) // patch) ** 2 + 1
    chosen = model.outer.data.get("vision_feature_layer", -2)
    layers = layers_in(vision, "num_hidden_layers") if vision.has("num_hidden_layers") else 24
    count = layers + 1 + chosen if isinstance(chosen, int) and chosen < 0 else layers
    build.add(VISION, hidden)
    build.plain(VISION, 3 * patch * patch, hidden)
    build.add(VISION, patches * hidden)
    build.norm(hidden, "layer", VISION)
    blocks(
        build,
        count,
        hidden,
        vision.integer("intermediate_size") or 4096,
        heads=vision.integer("num_attention_heads", minimum=1) or 16,
    )
    bias = model.outer.flag("multimodal_projector_bias", default=True)
    build.column(VISION, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(VISION, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)
    build.buffer(VISION, 8 * patches)


def clip_newline(build: Builder, model: ModelConfig) -> None:
    """CLIP with LLaVA-NeXT's learned line end."""
    build.add(VISION, model.hidden_size)
    clip(build, model)


def siglip_newline(build: Builder, model: ModelConfig) -> None:
    """SigLIP with LLaVA-OneVision's two-layer projector and learned line end; the closing norm is not built."""
    build.add(VISION, model.hidden_size)
    hidden = _siglip(build, vision_config(model), closing=False)
    bias = model.outer.flag("multimodal_projector_bias", default=True)
    build.column(VISION, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(VISION, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)


def siglip_shuffle(build: Builder, model: ModelConfig) -> None:
    """SigLIP with the pixel-shuffle connector of Idefics3 and SmolVLM, which is not cut."""
    hidden = _siglip(build, vision_config(model), positions=False)
    scale = model.outer.integer("scale_factor", minimum=1) or 2
    build.plain(VISION, hidden * scale * scale, model.hidden_size)


def pixtral(build: Builder, model: ModelConfig) -> None:
    """Pixtral with Mistral 3's patch merger."""
    vision = vision_config(model)
    hidden = vision.need("hidden_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    build.plain(VISION, (vision.integer("num_channels") or 3) * patch * patch, hidden)
    build.norm(hidden, "rms", VISION)
    blocks(
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
        build.norm(hidden, "rms", VISION)
        build.plain(VISION, hidden * merge * merge, hidden)
    bias = model.outer.flag("multimodal_projector_bias", default=merge is None)
    build.column(VISION, "multi_modal_projector.linear_1", hidden, [model.hidden_size], bias=bias)
    build.row(VISION, "multi_modal_projector.linear_2", model.hidden_size, model.hidden_size, bias=bias)


def llama4_vision(build: Builder, model: ModelConfig) -> None:
    """Llama 4's tower with pixel shuffle."""
    vision = vision_config(model)
    hidden, inner = vision.need("hidden_size", minimum=1), vision.need("intermediate_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    patches = patches_in(vision) + 1
    build.add(VISION, hidden)
    build.add(VISION, patches * hidden)
    build.column(VISION, "patch_embedding.linear", (vision.integer("num_channels") or 3) * patch * patch, [hidden])
    for _ in range(2):
        build.norm(hidden, "layer", VISION)
    heads = vision.need("num_attention_heads", minimum=1)
    blocks(build, layers_in(vision, "num_hidden_layers"), hidden, inner, heads=heads)
    narrow, out = vision.need("projector_input_dim", minimum=1), vision.need("projector_output_dim", minimum=1)
    build.column(VISION, "vision_adapter.mlp.fc1", inner, [narrow])
    build.row(VISION, "vision_adapter.mlp.fc2", narrow, out)
    build.column(
        VISION, "multi_modal_projector.linear_1", vision.need("vision_output_dim", minimum=1), [model.hidden_size]
    )
    build.buffer(VISION, patches * (hidden // heads // 2) * 8)


def internvit(build: Builder, model: ModelConfig) -> None:
    """InternViT with InternVL's two-layer projector, which is not cut."""
    vision = vision_config(model)
    hidden = vision.need("hidden_size", minimum=1)
    patch = vision.need("patch_size", minimum=1)
    patches = patches_in(vision) + 1
    build.add(VISION, hidden)
    build.plain(VISION, 3 * patch * patch, hidden, bias=True)
    build.add(VISION, patches * hidden)
    norm = "rms" if vision.text("norm_type") == "rms_norm" else "layer"
    heads = vision.need("num_attention_heads", minimum=1)
    if vision.flag("qk_normalization"):
        build.add(VISION, 2 * hidden * layers_in(vision, "num_hidden_layers"))
    blocks(
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
    build.norm(wide, "layer", VISION)
    build.plain(VISION, wide, model.hidden_size, bias=True)
    build.plain(VISION, model.hidden_size, model.hidden_size, bias=True)
