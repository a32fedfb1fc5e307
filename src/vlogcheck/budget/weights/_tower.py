"""What all image towers share: their blocks, their share of the ranks, their own settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder, Share
from vlogcheck.budget.weights._quant import PLAIN

if TYPE_CHECKING:
    from vlogcheck.budget._values import Values

__all__ = ["VISION", "Tower", "add_tower", "blocks", "patches_in", "vision_config"]

#: Adds a tower and its projector to the language model of the given width.
Tower = Callable[[Builder, ModelConfig], None]

VISION = "vision"


def no_tower(build: Builder, model: ModelConfig) -> None:
    """Add a text-only model."""


def vision_config(model: ModelConfig) -> Values:
    """Return the configuration of the vision tower, empty where there is none."""
    return model.outer.object("vision_config")


def blocks(
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
        build.column(VISION, "attn.qkv", hidden, [hidden, hidden, hidden], bias=qkv_bias)
        build.row(VISION, "attn.proj", hidden, hidden, bias=o_bias)
        build.column(VISION, "mlp.fc1", hidden, [inner, inner] if gated else [inner], bias=mlp_bias)
        build.row(VISION, "mlp.fc2", inner, hidden, bias=mlp_bias)
        for _ in range(norms):
            build.norm(hidden, norm, VISION)
        if scales:
            build.add(VISION, 2 * hidden)


def patches_in(vision: Values) -> int:
    """Patches of one image."""
    size = vision.need("image_size", minimum=1)
    return (size // vision.need("patch_size", minimum=1)) ** 2


def add_tower(build: Builder, model: ModelConfig, tower: Tower, *, copied: bool) -> None:
    """Add a tower with its own share and without quantisation, then restore the builder's settings."""
    share, scheme = build.share, build.scheme
    build.scheme = PLAIN
    if copied:
        build.share = replace(Share(), first=share.first, last=share.last)
    tower(build, model)
    build.share, build.scheme = share, scheme
