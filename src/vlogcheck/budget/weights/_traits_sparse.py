"""Mixtures of experts and latent attention. A table, long because it has an entry a family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.weights._traits import Traits
from vlogcheck.budget.weights._traits_dense import _cohere, _exaone4, _olmo2

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

__all__ = ["SPARSE"]


def _plain(model: ModelConfig) -> Traits:
    return Traits()


def _glm_lite(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), o_bias=False, router_item=4, correction_item=4)


def _exaone_moe(model: ModelConfig) -> Traits:
    return replace(_exaone4(model), correction_item=4)


def _cohere2_moe(model: ModelConfig) -> Traits:
    return _cohere(model)


def _flex_olmo(model: ModelConfig) -> Traits:
    return replace(_olmo2(model), transformers_since="0.2.0")


def _dots1(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    corrected = model.values.text("topk_method") == "noaux_tc"
    return Traits(qkv_bias=bias, qk_norm="head", correction_item=2 if corrected else 0)


def _bailing(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("use_bias")
    return Traits(
        qkv_bias=bias or values.flag("use_qkv_bias"),
        o_bias=bias,
        mlp_bias=bias,
        qk_norm="head" if values.flag("use_qk_norm") else "",
        router_item=4 if values.text("router_dtype") == "fp32" else None,
        correction_item=4 if values.flag("moe_router_enable_expert_bias") else 0,
    )


def _bailing_hybrid(model: ModelConfig) -> Traits:
    stated = model.values.text("router_dtype")
    return replace(_bailing(model), router_item=4 if stated in {None, "fp32"} else None)


def _glm4_moe(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("attention_bias"),
        qk_norm="head" if values.flag("use_qk_norm") else "",
        router_item=4,
        correction_item=4,
    )


def _olmoe(model: ModelConfig) -> Traits:
    return Traits(qk_norm="whole", embedding="all", final_everywhere=True, head="always", head_all=True)


def _ernie_moe(model: ModelConfig) -> Traits:
    bias = model.values.flag("use_bias")
    return Traits(qkv_bias=bias, mlp_bias=bias, shared_bias=False, tied=True, router_item=4, correction_item=4)


def _deepseek(model: ModelConfig) -> Traits:
    # latent attention has no biases whatever the config says; the first DeepSeek's attention may have them
    bias = model.values.flag("attention_bias") and not model.is_mla
    corrected = model.values.text("topk_method") == "noaux_tc"
    return Traits(qkv_bias=bias, correction_item=4 if corrected else 0, head="always", embedding="first")


def _axk1(model: ModelConfig) -> Traits:
    return replace(_deepseek(model), norms=3, correction_item=4)


def _qwen2_moe(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=True, shared_gate=True, embedding="all", final_everywhere=True, head_all=True)


def _qwen3_next(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("qkv_bias"),
        qk_norm="head",
        query_gate=values.flag("attn_output_gate", default=True),
        shared_gate=True,
        embedding="all",
        head="always",
        head_all=True,
    )


def _qwen3_5(model: ModelConfig) -> Traits:
    return replace(_qwen3_next(model), head="untied", head_all=False)


def _mixtral(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True, head_all=True)


def _gpt_oss(model: ModelConfig) -> Traits:
    return Traits(
        qkv_bias=True,
        o_bias=True,
        sinks=True,
        router_bias=True,
        expert_bias=True,
        rope_item=4,
        head="always",
        head_all=True,
        embedding="all",
        final_everywhere=True,
    )


def _minimax_m2(model: ModelConfig) -> Traits:
    return Traits(
        qkv_bias=model.values.flag("attention_bias"),
        qk_norm="row",
        router_item=4,
        correction_item=4 if model.values.flag("use_routing_bias", default=True) else 0,
    )


def _phimoe(model: ModelConfig) -> Traits:
    return Traits(norm="layer", qkv_bias=True, o_bias=True, head_bias=True, embedding="all", final_everywhere=True)


def _granitemoe(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True)


def _afmoe(model: ModelConfig) -> Traits:
    return Traits(qk_norm="head", router_item=4, correction_item=4)


def _dbrx(model: ModelConfig) -> Traits:
    return Traits(head="always", head_all=True, embedding="all", final_everywhere=True)


def _hunyuan_moe(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias") or model.values.flag("bias")
    norm = "head" if model.values.flag("use_qk_norm") else ""
    return Traits(qkv_bias=bias, o_bias=bias, qk_norm=norm, transformers_since="0.29.0")


def _mellum(model: ModelConfig) -> Traits:
    return Traits(qk_norm="head", transformers_since="0.2.0")


def _mimo_v2(model: ModelConfig) -> Traits:
    return Traits(correction_item=4)


def _minimax_01(model: ModelConfig) -> Traits:
    return Traits(router_item=4, rope_item=4, head="always", head_item=4)


def _step3p5(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), qk_norm="head", router_item=4, correction_item=4)


#: Architecture as vLLM's registry spells it -> the traits of its decoder.
SPARSE: dict[str, Callable[[ModelConfig], Traits]] = {
    "AXK1ForCausalLM": _axk1,
    "AfmoeForCausalLM": _afmoe,
    "BailingMoeForCausalLM": _bailing,
    "BailingMoeV2ForCausalLM": _bailing,
    "BailingMoeV2_5ForCausalLM": _bailing_hybrid,
    "Cohere2MoeForCausalLM": _cohere2_moe,
    "DbrxForCausalLM": _dbrx,
    "DeepseekForCausalLM": _deepseek,
    "DeepseekV2ForCausalLM": _deepseek,
    "DeepseekV32ForCausalLM": _deepseek,
    "DeepseekV3ForCausalLM": _deepseek,
    "Dots1ForCausalLM": _dots1,
    "Ernie4_5_MoeForCausalLM": _ernie_moe,
    "ExaoneMoEForCausalLM": _exaone_moe,
    "ExaoneMoeForCausalLM": _exaone_moe,
    "FlexOlmoForCausalLM": _flex_olmo,
    "Glm4MoeForCausalLM": _glm4_moe,
    "Glm4MoeLiteForCausalLM": _glm_lite,
    "GlmMoeDsaForCausalLM": _deepseek,
    "GptOssForCausalLM": _gpt_oss,
    "GraniteMoeForCausalLM": _granitemoe,
    "GraniteMoeSWAForCausalLM": _granitemoe,
    "GraniteMoeSharedForCausalLM": _granitemoe,
    "HunYuanMoEV1ForCausalLM": _hunyuan_moe,
    "KimiK2ForCausalLM": _deepseek,
    "Llama4ForCausalLM": _plain,
    "LongcatFlashForCausalLM": _plain,
    "MellumForCausalLM": _mellum,
    "MiMoV2FlashForCausalLM": _mimo_v2,
    "MiMoV2ForCausalLM": _mimo_v2,
    "MiniMaxForCausalLM": _minimax_01,
    "MiniMaxM1ForCausalLM": _minimax_01,
    "MiniMaxText01ForCausalLM": _minimax_01,
    "MiniMaxM2ForCausalLM": _minimax_m2,
    "MixtralForCausalLM": _mixtral,
    "OlmoeForCausalLM": _olmoe,
    "PhiMoEForCausalLM": _phimoe,
    "Qwen2MoeForCausalLM": _qwen2_moe,
    "Qwen3NextForCausalLM": _qwen3_next,
    "Qwen3_5ForCausalLM": _qwen3_5,
    "Qwen3_5MoeForCausalLM": _qwen3_5,
    "Step3TextForCausalLM": _plain,
    "Step3p5ForCausalLM": _step3p5,
}
