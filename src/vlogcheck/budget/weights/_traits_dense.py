"""Dense decoders in Llama's line: gated feed-forward layers, RMS norms. A table, long because it has an entry a family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget.weights._traits import Traits

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

__all__ = ["DENSE"]


def _llama(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("attention_bias") or values.flag("bias")
    qkv = values.flag("qkv_bias") if values.has("qkv_bias") else bias
    return Traits(qkv_bias=qkv, o_bias=bias, mlp_bias=values.flag("mlp_bias"))


def _qwen2(model: ModelConfig) -> Traits:
    return Traits(
        qkv_bias=model.values.flag("qkv_bias", default=True), qk_norm="head" if model.values.flag("qk_norm") else ""
    )


def _qwen3(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), qk_norm="head")


def _qwen3_moe(model: ModelConfig) -> Traits:
    # the router is quantised with the rest unless the checkpoint excludes it
    return replace(_qwen3(model), router_quantised=True, final_everywhere=True)


def _qwen3_vl_moe(model: ModelConfig) -> Traits:
    return replace(_qwen3_moe(model), embedding="all", head_all=True)


def _gemma(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, normalizer=True, head_all=True)


def _gemma2(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        norms=4,
        tied=True,
        qkv_bias=bias,
        o_bias=bias,
        embedding="all",
        final_everywhere=True,
        normalizer=True,
        head="never",
    )


def _gemma3(model: ModelConfig) -> Traits:
    return replace(_gemma2(model), qk_norm="head", head="untied", head_all=True)


def _gemma3n(model: ModelConfig) -> Traits:
    return Traits(tied=True, qk_norm="head", normalizer=True)


def _vaultgemma(model: ModelConfig) -> Traits:
    return Traits(tied=True, transformers_since="0.2.0")


def _gemma4(model: ModelConfig) -> Traits:
    return replace(_gemma3(model), norms=0)


def _minicpm3(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, head_all=True, absorbed=False)


def _cohere(model: ModelConfig) -> Traits:
    return Traits(
        norms=1,
        tied=True,
        qk_norm="heads" if model.values.flag("use_qk_norm") else "",
        embedding="all",
        final_everywhere=True,
        head="never",
    )


def _apertus(model: ModelConfig) -> Traits:
    return replace(_llama(model), qk_norm="head", gated=False, activation_scalars=2)


def _everywhere(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True, head_all=True)


def _orion(model: ModelConfig) -> Traits:
    return replace(_everywhere(model), norm="layer")


def _arcee(model: ModelConfig) -> Traits:
    return replace(_llama(model), gated=False, transformers_since="0.32.0")


def _through_transformers(model: ModelConfig) -> Traits:
    return replace(_llama(model), transformers_since="0.2.0")


def _hyperclovax(model: ModelConfig) -> Traits:
    return replace(_llama(model), norms=4 if model.values.flag("use_post_norm") else 2)


def _chatglm(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("add_bias_linear")
    norm = "rms" if values.flag("rmsnorm", default=True) else "layer"
    return Traits(
        norm=norm,
        qkv_bias=bias or values.flag("add_qkv_bias"),
        o_bias=bias,
        mlp_bias=bias,
        embedding="all",
        final_everywhere=True,
    )


def _baichuan(model: ModelConfig) -> Traits:
    # the 13B models use ALiBi: 5120 wide, no rotary cache
    return Traits(embedding="all", final_everywhere=True, rope=model.hidden_size != 5120)


def _hunyuan(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        qkv_bias=bias,
        o_bias=bias,
        qk_norm="head" if model.values.flag("use_qk_norm", default=True) else "",
        transformers_since="0.29.0",
    )


def _exaone4(model: ModelConfig) -> Traits:
    return replace(_llama(model), qk_norm="head")


def _glm4(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), norms=4)


def _glm(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), transformers_since="0.32.0")


def _olmo(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        norm="none", qkv_bias=bias, o_bias=bias, embedding="all", final_everywhere=True, transformers_since="0.26.0"
    )


def _olmo2(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        qkv_bias=bias, o_bias=bias, qk_norm="row", embedding="all", final_everywhere=True, transformers_since="0.26.0"
    )


def _seed_oss(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("attention_bias", default=True),
        o_bias=values.flag("attention_out_bias"),
        mlp_bias=values.flag("mlp_bias"),
        transformers_since="0.32.0",
    )


def _ernie(model: ModelConfig) -> Traits:
    # the dense models run as Llama, whose bias keys they do not have
    return Traits(tied=True)


#: Architecture as vLLM's registry spells it -> the traits of its decoder.
DENSE: dict[str, Callable[[ModelConfig], Traits]] = {
    "ApertusForCausalLM": _apertus,
    "AquilaForCausalLM": _llama,
    "AquilaModel": _llama,
    "ArceeForCausalLM": _arcee,
    "BaiChuanForCausalLM": _baichuan,
    "BaichuanForCausalLM": _baichuan,
    "ChatGLMForConditionalGeneration": _chatglm,
    "ChatGLMModel": _chatglm,
    "Cohere2ForCausalLM": _cohere,
    "CohereForCausalLM": _cohere,
    "CwmForCausalLM": _through_transformers,
    "Ernie4_5ForCausalLM": _ernie,
    "Ernie4_5_ForCausalLM": _ernie,
    "Exaone4ForCausalLM": _exaone4,
    "ExaoneForCausalLM": _llama,
    "Fairseq2LlamaForCausalLM": _llama,
    "Gemma2ForCausalLM": _gemma2,
    "Gemma3ForCausalLM": _gemma3,
    "Gemma3nForCausalLM": _gemma3n,
    "Gemma4ForCausalLM": _gemma4,
    "DeciLMForCausalLM": _llama,
    "GemmaForCausalLM": _gemma,
    "Glm4ForCausalLM": _glm4,
    "GlmForCausalLM": _glm,
    "GraniteForCausalLM": _llama,
    "GraniteSWAForCausalLM": _llama,
    "HunYuanDenseV1ForCausalLM": _hunyuan,
    "HyperCLOVAXForCausalLM": _hyperclovax,
    "IQuestCoderForCausalLM": _llama,
    "IQuestLoopCoderForCausalLM": _everywhere,
    "InternLM2ForCausalLM": _llama,
    "InternLM3ForCausalLM": _llama,
    "InternLMForCausalLM": _llama,
    "LLaMAForCausalLM": _llama,
    "LlamaForCausalLM": _llama,
    "MiMoForCausalLM": _qwen2,
    "MiniCPM3ForCausalLM": _minicpm3,
    "MiniCPMForCausalLM": _everywhere,
    "Ministral3ForCausalLM": _llama,
    "MistralForCausalLM": _llama,
    "Olmo2ForCausalLM": _olmo2,
    "Olmo3ForCausalLM": _olmo2,
    "OlmoForCausalLM": _olmo,
    "OrionForCausalLM": _orion,
    "Phi3ForCausalLM": _llama,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3,
    "Qwen3MoeForCausalLM": _qwen3_moe,
    "Qwen3MoeLLMForCausalLM": _qwen3_vl_moe,
    "SeedOssForCausalLM": _seed_oss,
    "SmolLM3ForCausalLM": _through_transformers,
    "SolarForCausalLM": _llama,
    "TeleChat2ForCausalLM": _llama,
    "TeleChat3ForCausalLM": _llama,
    "VaultGemmaForCausalLM": _vaultgemma,
    "XverseForCausalLM": _llama,
}
