"""Models shaped layer by layer by a search (Nemotron Super and Ultra): ``block_configs`` says what each layer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError, Values
from vlogcheck.budget.weights._attention import gqa
from vlogcheck.budget.weights._dimensions import NotModelled, pad
from vlogcheck.budget.weights._mlp import dense

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["nas_layer"]


def _part(model: ModelConfig, index: int, key: str) -> Values:
    blocks = model.values.items("block_configs") or []
    block = blocks[index] if index < len(blocks) else None
    part = block.get(key) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise ModelConfigError(f"config key 'block_configs' holds no {key!r} for layer {index}")
    return Values(part, f"block_configs[{index}].{key}")


def nas_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Attention with its own number of KV heads or none, a feed-forward part of its own width or none."""
    attention, ffn = _part(model, index, "attention"), _part(model, index, "ffn")
    if attention.flag("replace_with_linear") or ffn.flag("replace_with_linear"):
        raise NotModelled("layers replaced by one linear projection are not modelled")
    if not attention.flag("no_op"):
        kv_heads = model.num_attention_heads // attention.need("n_heads_in_group", minimum=1)
        gqa(build, model, traits, index, kv_heads=kv_heads)
        build.norm(model.hidden_size, traits.norm)
    if not ffn.flag("no_op"):
        multiple = ffn.number("ffn_mult")
        if multiple is None:
            inner = ffn.need("intermediate_size", minimum=1)
        elif not 0 < multiple <= 64:
            raise ModelConfigError(f"config key {ffn.name('ffn_mult')!r} must lie between 0 and 64, not {multiple:.6g}")
        else:
            inner = pad(int(2 * multiple * model.hidden_size / 3), 256)
        dense(build, model, traits, inner)
        build.norm(model.hidden_size, traits.norm)
