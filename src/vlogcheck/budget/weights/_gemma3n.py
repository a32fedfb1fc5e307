"""Gemma 3n: alternating updates over several streams, learned residuals, inputs per layer, shared keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._attention import gqa
from vlogcheck.budget.weights._mlp import dense, width
from vlogcheck.budget.weights._rope import rope_cache

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["gemma3n_layer", "gemma3n_streams"]


def _streams(model: ModelConfig) -> int:
    return model.values.integer("altup_num_inputs", minimum=1) or 4


def gemma3n_streams(build: Builder, model: ModelConfig) -> None:
    """Add the projections into and out of the streams beside the first."""
    for _ in range(2 * (_streams(model) - 1)):
        build.column("embedding", "altup_projections", model.hidden_size, [model.hidden_size])


def gemma3n_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Attention, dense part, stream updates (``altup``), learned residual (``laurel``) and the layer's own input."""
    values, hidden = model.values, model.hidden_size
    streams = _streams(model)
    build.linear("mlp", "altup.correction_coefs", streams, [streams])
    build.linear("mlp", "altup.prediction_coefs", streams, [streams**2])
    build.linear("mlp", "altup.modality_router", hidden, [streams])
    build.norm(hidden)
    build.buffer("mlp", build.item)
    build.add("mlp", hidden, 4)
    _attention(build, model, traits, index)
    dense(build, model, traits, width(model, index))
    rank = values.integer("laurel_rank", minimum=1) or 64
    build.column("mlp", "laurel.linear_left", hidden, [rank])
    build.row("mlp", "laurel.linear_right", rank, hidden)
    build.norm(hidden)
    narrow = values.integer("hidden_size_per_layer_input", minimum=1) or 256
    build.linear("mlp", "per_layer_input_gate", hidden, [narrow])
    build.linear("mlp", "per_layer_projection", narrow, [hidden])
    for _ in range(5):
        build.norm(hidden)


def _attention(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Add the attention; layers that reuse an earlier layer's keys had projections for their own until 0.29.0."""
    shared = model.values.integer("num_kv_shared_layers") or 0
    if index < model.num_layers - shared or build.release.before("0.30.0"):
        gqa(build, model, traits, index)
        return
    size = model.num_attention_heads * model.head_dim
    build.column("attention", "self_attn.q_proj", model.hidden_size, [size], bias=traits.qkv_bias)
    build.row("attention", "self_attn.o_proj", size, model.hidden_size, bias=traits.o_bias)
    build.norm(model.head_dim)
    rope_cache(build, model, traits, model.head_dim, index)
    build.attention_scales()
