"""Which layer is of which kind, and what all kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["STATE_KINDS", "layer_kind", "two_norms"]

STATE_KINDS = frozenset({"mamba", "linear_attention", "conv", "short_conv", "recurrent"})


def layer_kind(model: ModelConfig, index: int) -> str:
    """Return what a layer mixes tokens with, in the words of `layer_types`."""
    kinds = model.layer_types
    if kinds is not None and index < len(kinds):
        return kinds[index]
    values = model.values
    interval = values.integer("full_attention_interval", minimum=1)
    if interval is not None:
        return "full_attention" if (index + 1) % interval == 0 else "linear_attention"
    listed = values.integers("full_attn_idxs", "attn_layer_indices")
    if listed is not None:
        return "full_attention" if index in listed else "conv"
    period = values.integer("attn_layer_period", minimum=1)
    if period is not None:
        return "full_attention" if index % period == (values.integer("attn_layer_offset") or 0) else "mamba"
    return "full_attention"


def two_norms(build: Builder, model: ModelConfig, traits: Traits) -> None:
    """Add the norms before the mixer and before the feed-forward part."""
    build.norm(model.hidden_size, traits.norm)
    build.norm(model.hidden_size, traits.norm)
