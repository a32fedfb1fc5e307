"""Decoders of the older kind: layer norms with biases, two feed-forward matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.weights._traits import Traits

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

__all__ = ["CLASSIC"]


def _falcon(model: ModelConfig) -> Traits:
    values = model.values
    parallel = values.flag("parallel_attn", default=True)
    wide = values.flag("new_decoder_architecture")
    two = values.integer("num_ln_in_parallel_attn") or (2 if wide else 1)
    bias = values.flag("bias")
    return Traits(
        norm="layer",
        norms=two if parallel else 2,
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=bias,
        tied=True,
        embedding="all",
        final_everywhere=True,
    )


def _gpt2(model: ModelConfig) -> Traits:
    return Traits(
        norm="layer",
        qkv_bias=True,
        o_bias=True,
        gated=False,
        mlp_bias=True,
        tied=True,
        embedding="all",
        final_everywhere=True,
        positions=model.values.integer("n_positions", "max_position_embeddings") or 1024,
        rope=False,
        head_all=True,
    )


def _bigcode(model: ModelConfig) -> Traits:
    return replace(_gpt2(model), transformers_since="0.25.1")


def _bloom(model: ModelConfig) -> Traits:
    return replace(_gpt2(model), positions=0, embed_norm=True)


def _mpt(model: ModelConfig) -> Traits:
    bias = not model.values.flag("no_bias", default=True)
    norm = "layer" if bias else "rms"
    return replace(_gpt2(model), positions=0, norm=norm, qkv_bias=bias, o_bias=bias, mlp_bias=bias)


def _opt(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("enable_bias", default=True)
    norm = "layer" if values.flag("layer_norm_elementwise_affine", default=True) else "none"
    return Traits(
        norm=norm,
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=bias,
        tied=True,
        embedding="all",
        final_everywhere=True,
        # OPT's table has two rows before position 0
        positions=values.need("max_position_embeddings", minimum=1) + 2,
        rope=False,
        head_all=True,
    )


def _gpt_neox(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias", default=True)
    return Traits(
        norm="layer",
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=True,
        embedding="all",
        final_everywhere=True,
        transformers_since="0.32.0",
    )


def _gptj(model: ModelConfig) -> Traits:
    return Traits(
        norm="layer", norms=1, gated=False, mlp_bias=True, head_bias=True, embedding="all", final_everywhere=True
    )


def _phi(model: ModelConfig) -> Traits:
    return Traits(
        # through the Transformers backend the head's bias is not built
        norm="layer",
        norms=1,
        qkv_bias=True,
        o_bias=True,
        gated=False,
        mlp_bias=True,
        head_bias=True,
        embedding="all",
        final_everywhere=True,
        transformers_since="0.32.0",
    )


def _stablelm(model: ModelConfig) -> Traits:
    return Traits(norm="layer", qkv_bias=model.values.flag("use_qkv_bias"), embedding="all", final_everywhere=True)


def _starcoder2(model: ModelConfig) -> Traits:
    bias = model.values.flag("use_bias", default=True)
    return Traits(
        norm="layer",
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=bias,
        tied=True,
        embedding="all",
        final_everywhere=True,
        transformers_since="0.25.1",
    )


def _nemotron(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias") or model.values.flag("bias")
    return Traits(norm="layer", qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=model.values.flag("mlp_bias"))


def _jais2(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("attention_bias", default=True)
    return Traits(
        norm="layer",
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=values.flag("mlp_bias", default=True),
        transformers_since="0.32.0",
    )


#: Architecture as vLLM's registry spells it -> the traits of its decoder.
CLASSIC: dict[str, Callable[[ModelConfig], Traits]] = {
    "BloomForCausalLM": _bloom,
    "FalconForCausalLM": _falcon,
    "GPT2LMHeadModel": _gpt2,
    "GPTBigCodeForCausalLM": _bigcode,
    "GPTJForCausalLM": _gptj,
    "GPTNeoXForCausalLM": _gpt_neox,
    "Jais2ForCausalLM": _jais2,
    "MPTForCausalLM": _mpt,
    "MptForCausalLM": _mpt,
    "NemotronForCausalLM": _nemotron,
    "OPTForCausalLM": _opt,
    "PhiForCausalLM": _phi,
    "RWForCausalLM": _falcon,
    "StableLMEpochForCausalLM": _stablelm,
    "StableLmForCausalLM": _stablelm,
    "Starcoder2ForCausalLM": _starcoder2,
}
