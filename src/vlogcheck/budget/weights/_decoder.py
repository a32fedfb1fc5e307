"""Assembles the language model of one pipeline stage from layer kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._attention import gqa, latent
from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._mlp import feed_forward
from vlogcheck.budget.weights._traits import Traits

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

__all__ = ["LayerBuilder", "decoder", "embedding", "head", "standard_layer"]

#: Builds layer ``index`` of a model.
LayerBuilder = Callable[[Builder, ModelConfig, Traits, int], None]


def standard_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Attention, feed-forward part or mixture, norms."""
    if model.is_mla:
        latent(build, model, traits, index)
    else:
        gqa(build, model, traits, index)
    feed_forward(build, model, traits, index)
    for _ in range(traits.norms):
        build.norm(model.hidden_size, traits.norm)


def embedding(build: Builder, model: ModelConfig, traits: Traits, *, tied: bool) -> None:
    """Add the vocabulary table, on the stages that hold one."""
    share = build.share
    held = {"all": True, "first": share.first}.get(traits.embedding, share.first or (tied and share.last))
    if not held:
        return
    hidden = model.hidden_size
    width = model.values.integer("word_embed_proj_dim", minimum=1) or hidden  # OPT projects a narrower embedding
    build.table("embedding", model.vocab_size, width)
    if traits.positions:
        build.add("embedding", traits.positions * hidden)
    if width != hidden:
        for _ in range(2):
            build.plain("embedding", width, hidden)
    if traits.embed_norm:
        build.norm(hidden, traits.norm)
    if traits.normalizer:
        build.buffer("embedding", build.item)
    narrow = model.values.integer("hidden_size_per_layer_input") or 0
    if narrow:
        _per_layer_inputs(build, model, narrow)


def _per_layer_inputs(build: Builder, model: ModelConfig, narrow: int) -> None:
    """Add the table of per-layer inputs (Gemma 3n and 4)."""
    rows = model.values.integer("vocab_size_per_layer_input") or model.vocab_size
    build.table("embedding", rows, narrow * model.num_layers)
    build.column("embedding", "per_layer_model_projection", model.hidden_size, [narrow * model.num_layers])
    build.norm(narrow)
    for _ in range(3):  # scalars that scale the embeddings and their sum
        build.buffer("embedding", build.item)


def head(build: Builder, model: ModelConfig, traits: Traits, *, tied: bool) -> None:
    """Add closing norm and output head, on the last stage."""
    if build.share.last or traits.final_everywhere:
        build.norm(model.hidden_size, traits.norm)
    if build.share.last or traits.head_all:
        if traits.head == "always" or (traits.head == "untied" and not tied):
            build.table("lm_head", model.vocab_size, model.hidden_size, traits.head_item)
        if traits.head_bias:
            build.add("lm_head", build.cut(-(-model.vocab_size // 64) * 64, "padded vocabulary"))


def is_tied(model: ModelConfig, traits: Traits, release: Release) -> bool:
    """Whether embedding and head are one tensor; an absent key means what the family's class says.

    LFM2 has a key of its own. From 0.16 on a multimodal wrapper's word is passed to its language model; elsewhere the head
    is built where the two disagree.
    """
    keys = ("tie_embedding", "tie_word_embeddings")
    wrapper = model.is_nested and (model.architecture or "").endswith("ForConditionalGeneration")
    if wrapper and model.outer.has(*keys) and release.since("0.16.0"):
        return model.outer.flag(*keys)
    stated = [values.flag(*keys) for values in (model.values, model.outer) if values.has(*keys)]
    return all(stated) if stated else traits.tied


def decoder(
    build: Builder, model: ModelConfig, traits: Traits, layers: range, *, layer: LayerBuilder = standard_layer
) -> None:
    """Add the whole language model of a stage that holds ``layers``."""
    tied = is_tied(model, traits, build.release)
    embedding(build, model, traits, tied=tied)
    for index in layers:
        build.prefix = f"model.layers.{index}"
        layer(build, model, traits, index)
    build.prefix = "model"
    head(build, model, traits, tied=tied)
