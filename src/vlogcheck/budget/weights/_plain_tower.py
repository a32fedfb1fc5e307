"""Image and audio towers that are not modelled: counted as plain transformers, and uncertain by their whole size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError, Values
from vlogcheck.budget.weights._dimensions import NotModelled, layers_in
from vlogcheck.budget.weights._tower import VISION

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder

__all__ = ["has_tower", "plain_towers"]

_KEYS = ("vision_config", "audio_config", "vit_config", "visual_config")
_SHELL = "thinker_config"
_WIDTH = ("hidden_size", "embed_dim", "width", "vt_hidden_size", "d_model", "dim")
_DEPTH = ("num_hidden_layers", "depth", "layers", "vt_num_hidden_layers", "encoder_layers", "n_layers")
_INNER = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim", "mlp_dim")


def _towers(model: ModelConfig) -> list[Values]:
    outer = model.outer.object(_SHELL) if model.outer.has(_SHELL) else model.outer
    return [outer.object(key) for key in _KEYS if isinstance(outer.data.get(key), Mapping) and outer.data[key]]


def has_tower(model: ModelConfig) -> bool:
    """Whether the configuration describes a tower beside its language model."""
    return model.is_nested and bool(_towers(model))


def plain_towers(build: Builder, model: ModelConfig) -> None:
    """Add every tower as blocks of attention and two matrices, whole on each rank, and a projector of two layers.

    Raises:
        NotModelled: a tower's configuration does not say its width and depth.

    """
    before = sum(size for _, size in build.params)
    for tower in _towers(model):
        try:
            width, depth = tower.need(*_WIDTH, minimum=1), layers_in(tower, *_DEPTH)
            inner = tower.integer(*_INNER, minimum=1)
            ratio = tower.number("mlp_ratio")
        except ModelConfigError as error:
            raise NotModelled(f"the tower of {(model.architecture or '?')[:80]!r} is not modelled: {error}") from None
        if inner is None:
            inner = int(width * ratio) if ratio is not None and 0 < ratio <= 64 else 4 * width
        for _ in range(depth):
            build.add(VISION, 4 * width * width + 2 * width * inner)
        build.add(VISION, 4 * width * model.hidden_size + model.hidden_size**2)
    build.uncertain += sum(size for _, size in build.params) - before
    build.note(
        f"the towers of {(model.architecture or '?')[:80]} are counted as plain transformers, whole on every rank"
    )
