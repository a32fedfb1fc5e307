"""Tensors of one attention layer, by kind: grouped-query, multi-head latent (with or without an indexer)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget._values import Values
from vlogcheck.budget.weights._rope import rope_cache

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["gqa", "latent", "per_layer"]


def per_layer(model: ModelConfig, key: str, layer: int, default: int) -> int:
    """Return a size that may be one number, a list per layer, or an entry of ``per_layer_config``."""
    table = model.text.get("per_layer_config")
    if isinstance(table, Mapping):
        entry = table.get(str(layer), table.get(f"{layer:02d}"))
        if isinstance(entry, Mapping) and entry.get(key) is not None:
            return Values(entry, "per_layer_config").need(key)
    value = model.text.get(key)
    if isinstance(value, list) and layer < len(value):
        return Values({key: value[layer]}).need(key)
    return default


def gqa(
    build: Builder,
    model: ModelConfig,
    traits: Traits,
    layer: int,
    *,
    head: int | None = None,
    kv_heads: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    values_too: bool = True,
    rope: bool = True,
) -> None:
    """Full, sliding or chunked attention with grouped keys and values; the window changes no weights."""
    hidden = model.hidden_size if hidden is None else hidden
    heads = model.num_attention_heads if heads is None else heads
    kv_heads = model.num_kv_heads if kv_heads is None else kv_heads
    head = model.head_dim if head is None else head
    tp = build.share.tp
    mine = build.cut(heads, "attention heads")
    # fewer key/value heads than ranks: every rank holds a copy of one
    kept = build.cut(kv_heads, "key/value heads") if kv_heads >= tp else 1
    queries = mine * head * (2 if traits.query_gate else 1)
    outs = [queries, kept * head] + ([kept * head] if values_too else [])
    build.linear(
        "attention", "self_attn.qkv_proj", hidden, outs, bias=traits.qkv_bias, pieces=("q_proj", "k_proj", "v_proj")
    )
    build.row("attention", "self_attn.o_proj", heads * head, hidden, bias=traits.o_bias)
    if traits.sinks:
        build.add("attention", mine)
    widths = {
        "head": (head, head),
        "heads": (mine * head, kept * head),
        "row": (mine * head, kept * head),
        "whole": (heads * head, kv_heads * head),
    }.get(traits.qk_norm)
    if widths is not None:
        for width in widths:
            build.norm(width, traits.qk_norm_kind)
    if rope and traits.rope:
        rope_cache(build, model, traits, head, layer)
    build.attention_scales()


def latent(
    build: Builder, model: ModelConfig, traits: Traits, layer: int, *, hidden: int | None = None, rope: bool = True
) -> None:
    """Multi-head latent attention (deepseek_v2.py): down-projections on every rank, up-projections cut over heads."""
    values = model.values
    hidden = model.hidden_size if hidden is None else hidden
    heads = model.num_attention_heads
    nope, rotary = model.qk_nope_head_dim, model.qk_rope_head_dim
    value = values.need("v_head_dim", minimum=1)
    rank_kv, rank_q = model.kv_lora_rank, model.q_lora_rank
    bias = traits.qkv_bias
    if rank_q is not None and traits.absorbed:
        build.linear(
            "attention",
            "self_attn.fused_qkv_a_proj",
            hidden,
            [rank_q, rank_kv + rotary],
            bias=bias,
            pieces=("q_a_proj", "kv_a_proj_with_mqa"),
        )
        build.norm(rank_q)
        build.column("attention", "self_attn.q_b_proj", rank_q, [heads * (nope + rotary)])
    elif rank_q is not None:
        build.linear("attention", "self_attn.q_a_proj", hidden, [rank_q], bias=bias)
        build.norm(rank_q)
        build.column("attention", "self_attn.q_b_proj", rank_q, [heads * (nope + rotary)])
        build.linear("attention", "self_attn.kv_a_proj_with_mqa", hidden, [rank_kv + rotary], bias=bias)
    else:
        build.linear("attention", "self_attn.kv_a_proj_with_mqa", hidden, [rank_kv + rotary], bias=bias)
        build.column("attention", "self_attn.q_proj", hidden, [heads * (nope + rotary)])
    build.norm(rank_kv)
    build.column("attention", "self_attn.kv_b_proj", rank_kv, [heads * (nope + value)])
    build.row("attention", "self_attn.o_proj", heads * value, hidden, bias=traits.o_bias)
    if values.has("index_topk") and values.has("index_n_heads") and values.has("index_head_dim"):
        _indexer(build, model, layer)
        rope_cache(build, model, traits, rotary, layer, latent=True, copy="indexer")
    if rope:
        rope_cache(build, model, traits, rotary, layer, latent=True)
    build.attention_scales(mla=traits.absorbed)
    if not traits.absorbed or not build.absorb:
        return
    # the decode path keeps the two halves of kv_b_proj once more, in the model's type (mla_attention.py)
    build.later("attention", build.cut(heads, "attention heads") * (nope + value) * rank_kv * build.item)


def _indexer(build: Builder, model: ModelConfig, layer: int) -> None:
    """Add the sparse-attention indexer of DeepSeek-V3.2 and GLM with DSA; replicated on every rank."""
    values = model.values
    heads, width = values.need("index_n_heads"), values.need("index_head_dim")
    rank_q = model.q_lora_rank or model.hidden_size
    build.linear("attention", "self_attn.indexer.wq_b", rank_q, [heads * width])
    if build.release.since("0.20.0"):
        build.plain("attention", model.hidden_size, width + heads)
    else:  # two layers, the keys' quantised like the rest
        build.linear("attention", "self_attn.indexer.wk", model.hidden_size, [width])
        build.plain("attention", model.hidden_size, heads, bias=build.release.before("0.14.0"))
    build.norm(width, "layer", item=4)
