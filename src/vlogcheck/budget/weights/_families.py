"""Which structure an architecture has: one registry, keyed by the name vLLM's own registry uses."""

from __future__ import annotations

from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder, NotModelled
from vlogcheck.budget.weights._decoder import LayerBuilder, decoder, standard_layer
from vlogcheck.budget.weights._traits import TRAITS

__all__ = ["build_model"]

LAYERS: dict[str, LayerBuilder] = {}


def build_model(build: Builder, model: ModelConfig, layers: range) -> None:
    """Add the tensors of the stage that holds ``layers``.

    Raises:
        NotModelled: the architecture is not in the registry.

    """
    name = model.architecture or ""
    factory = TRAITS.get(name)
    if factory is None:
        raise NotModelled(f"architecture {name or '(none named)'} is not modelled")
    decoder(build, model, factory(model), layers, layer=LAYERS.get(name, standard_layer))
