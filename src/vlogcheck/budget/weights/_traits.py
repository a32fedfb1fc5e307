"""What a decoder layer is made of, where ``config.json`` alone does not say it.

A :class:`Traits` holds the structural choices a family's code makes (biases, norms, gates). The factories read the keys that
steer them; families that share a factory share vLLM's class or its structure. Source: ``vllm/model_executor/models/*.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vlogcheck.budget._values import Values
from vlogcheck.budget.model import ModelConfig

__all__ = ["TRAITS", "Traits", "through_transformers"]



@dataclass(frozen=True, slots=True)
class Traits:
    """Structural choices of a family.

    Attributes:
        norm: kind of the layer norms: ``rms`` (weight), ``layer`` (weight and bias), ``none`` (no parameters).
        norms: full-width norms in a layer.
        qkv_bias: bias on the fused query/key/value projection.
        o_bias: bias on the output projection.
        qk_norm: query/key norms: ``head`` (one head wide each), ``heads`` (a weight per head on the rank), ``row`` (all heads,
            cut over ranks), ``whole`` (all heads, on every rank), ``latent`` none here.
        qk_norm_kind: kind of those norms.
        gated: three matrices in the feed-forward layer instead of two.
        mlp_bias: bias on the feed-forward matrices.
        head_bias: bias on the output head.
        head: when the output head has a tensor of its own: ``untied``, ``always``, ``never``.
        head_all: the head, where it has one, is built on every pipeline stage.
        embedding: pipeline stages with an embedding: ``ends`` (first, and last where tied), ``first``, ``all``.
        final_everywhere: the closing norm is built on every pipeline stage.
        tied: what ``tie_word_embeddings`` means when the key is absent.
        router_item: bytes per router weight, ``None`` for the model's type.
        router_bias: bias on the router itself.
        correction_item: bytes per entry of a per-expert score correction, 0 without one.
        expert_bias: biases inside the routed experts.
        shared_bias: bias on the shared expert's matrices, ``None`` for the dense layers' choice.
        shared_gate: a one-column gate on the shared expert.
        sinks: one attention sink per query head.
        query_gate: the query projection is doubled by an output gate.
        router_quantised: the router follows the quantisation (unless the checkpoint excludes it).
        activation_scalars: learned scalars of the activation, with as many scalar buffers.
        positions: rows of a learned position table.
        embed_norm: a norm behind the embedding.
        normalizer: one scalar buffer that scales the embedding.
        transformers_since: the release from which the model runs through the Transformers backend, which keeps rotary
            frequencies instead of a cache.
        absorbed: latent attention keeps its cache compressed and absorbs the up-projections (vLLM's MLA).
        rope: whether positions are rotary.
        rope_item: bytes per element of the rotary cache, ``None`` for the model's type.

    """

    norm: str = "rms"
    norms: int = 2
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: str = ""
    qk_norm_kind: str = "rms"
    gated: bool = True
    mlp_bias: bool = False
    head_bias: bool = False
    head: str = "untied"
    head_all: bool = False
    embedding: str = "ends"
    final_everywhere: bool = False
    tied: bool = False
    router_item: int | None = None
    router_bias: bool = False
    correction_item: int = 0
    expert_bias: bool = False
    shared_bias: bool | None = None
    shared_gate: bool = False
    sinks: bool = False
    query_gate: bool = False
    router_quantised: bool = False
    activation_scalars: int = 0
    positions: int = 0
    embed_norm: bool = False
    normalizer: bool = False
    transformers_since: str | None = None
    absorbed: bool = True
    rope: bool = True
    rope_item: int | None = None


def through_transformers(traits: Traits) -> Traits:
    """The traits as the Transformers backend builds them: tables and the closing norm on their stages, whole norms on every rank."""
    norm = "whole" if traits.qk_norm == "row" else traits.qk_norm
    return replace(traits, embedding="ends", final_everywhere=False, head_all=False, head_bias=False, qk_norm=norm)


def _bias(values: Values, *keys: str, default: bool = False) -> bool:
    return any(values.flag(key, default=default) for key in keys)


def _llama(model: ModelConfig) -> Traits:
    values = model.values
    bias = _bias(values, "attention_bias", "bias")
    qkv = values.flag("qkv_bias") if values.has("qkv_bias") else bias
    return Traits(qkv_bias=qkv, o_bias=bias, mlp_bias=values.flag("mlp_bias"))


def _qwen2(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("qkv_bias", default=True), qk_norm="head" if model.values.flag("qk_norm") else "")


def _qwen3(model: ModelConfig) -> Traits:
    # Qwen3's dense and MoE attention; only the MoE layers have a router, whose quantisation follows the checkpoint
    return Traits(qkv_bias=model.values.flag("attention_bias"), qk_norm="head", router_quantised=True)


def _plain(model: ModelConfig) -> Traits:
    return Traits()


def _phi3(model: ModelConfig) -> Traits:
    return _llama(model)


def _gemma(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, normalizer=True, head_all=True)


def _gemma2(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        norms=4, tied=True, qkv_bias=bias, o_bias=bias, embedding="all", final_everywhere=True, normalizer=True, head="never"
    )


def _gemma3(model: ModelConfig) -> Traits:
    return replace(_gemma2(model), qk_norm="head", head="untied", head_all=True)


def _gemma4(model: ModelConfig) -> Traits:
    return replace(_gemma3(model), norms=0)


def _minicpm3(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, absorbed=False)


def _glm_lite(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), o_bias=False, router_item=4, correction_item=4)


def _cohere(model: ModelConfig) -> Traits:
    return Traits(
        norms=1, tied=True, qk_norm="heads" if model.values.flag("use_qk_norm") else "", embedding="all", final_everywhere=True,
        head="never",
    )  # fmt: skip


def _falcon(model: ModelConfig) -> Traits:
    values = model.values
    parallel = values.flag("parallel_attn", default=True)
    wide = values.flag("new_decoder_architecture")
    two = values.integer("num_ln_in_parallel_attn") or (2 if wide else 1)
    bias = values.flag("bias")
    return Traits(
        norm="layer", norms=two if parallel else 2, qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=bias, tied=True,
        embedding="all", final_everywhere=True,
    )  # fmt: skip


def _gpt2(model: ModelConfig) -> Traits:
    return Traits(
        norm="layer", qkv_bias=True, o_bias=True, gated=False, mlp_bias=True, tied=True, embedding="all", final_everywhere=True,
        positions=model.values.integer("n_positions", "max_position_embeddings") or 1024, rope=False, head_all=True,
    )  # fmt: skip


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
        norm=norm, qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=bias, tied=True, embedding="all", final_everywhere=True,
        # OPT's table has two rows before position 0
        positions=values.need("max_position_embeddings", minimum=1) + 2, rope=False,
    )  # fmt: skip


def _gpt_neox(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias", default=True)
    return Traits(
        norm="layer", qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=True, embedding="all", final_everywhere=True,
        transformers_since="0.32.0",
    )  # fmt: skip


def _gptj(model: ModelConfig) -> Traits:
    return Traits(norm="layer", norms=1, gated=False, mlp_bias=True, head_bias=True, embedding="all", final_everywhere=True)


def _phi(model: ModelConfig) -> Traits:
    return Traits(
        # through the Transformers backend the head's bias is not built
        norm="layer", norms=1, qkv_bias=True, o_bias=True, gated=False, mlp_bias=True, head_bias=True, embedding="all",
        final_everywhere=True, transformers_since="0.32.0",
    )  # fmt: skip


def _stablelm(model: ModelConfig) -> Traits:
    return Traits(norm="layer", qkv_bias=model.values.flag("use_qkv_bias"), embedding="all", final_everywhere=True)


def _starcoder2(model: ModelConfig) -> Traits:
    bias = model.values.flag("use_bias", default=True)
    return Traits(
        norm="layer", qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=bias, tied=True, embedding="all", final_everywhere=True,
        transformers_since="0.25.1",
    )  # fmt: skip


def _nemotron(model: ModelConfig) -> Traits:
    bias = _bias(model.values, "attention_bias", "bias")
    return Traits(norm="layer", qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=model.values.flag("mlp_bias"))


def _apertus(model: ModelConfig) -> Traits:
    return replace(_llama(model), qk_norm="head", gated=False, activation_scalars=2)


def _arcee(model: ModelConfig) -> Traits:
    return replace(_llama(model), gated=False, transformers_since="0.32.0")


def _through_transformers(model: ModelConfig) -> Traits:
    return replace(_llama(model), transformers_since="0.2.0")


def _exaone_moe(model: ModelConfig) -> Traits:
    return replace(_exaone4(model), correction_item=4)


def _cohere2_moe(model: ModelConfig) -> Traits:
    return _cohere(model)


def _hyperclovax(model: ModelConfig) -> Traits:
    return replace(_llama(model), norms=4 if model.values.flag("use_post_norm") else 2)


def _jais2(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("attention_bias", default=True)
    return Traits(
        norm="layer", qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=values.flag("mlp_bias", default=True),
        transformers_since="0.32.0",
    )  # fmt: skip


def _flex_olmo(model: ModelConfig) -> Traits:
    return replace(_olmo2(model), transformers_since="0.2.0")


def _chatglm(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("add_bias_linear")
    norm = "rms" if values.flag("rmsnorm", default=True) else "layer"
    return Traits(
        norm=norm, qkv_bias=bias or values.flag("add_qkv_bias"), o_bias=bias, mlp_bias=bias, embedding="all", final_everywhere=True,
    )  # fmt: skip


def _baichuan(model: ModelConfig) -> Traits:
    # the 13B models use ALiBi: 5120 wide, no rotary cache
    return Traits(embedding="all", final_everywhere=True, rope=model.hidden_size != 5120)


def _dots1(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    corrected = model.values.text("topk_method") == "noaux_tc"
    return Traits(qkv_bias=bias, qk_norm="head", correction_item=4 if corrected else 0)


def _hunyuan(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        qkv_bias=bias, o_bias=bias, qk_norm="head" if model.values.flag("use_qk_norm", default=True) else "",
        transformers_since="0.29.0",
    )  # fmt: skip


def _bailing(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("use_bias")
    return Traits(
        qkv_bias=bias or values.flag("use_qkv_bias"), o_bias=bias, mlp_bias=bias, qk_norm="head" if values.flag("use_qk_norm") else "",
        router_item=4 if values.text("router_dtype") == "fp32" else None,
        correction_item=4 if values.flag("moe_router_enable_expert_bias") else 0,
    )  # fmt: skip


def _exaone4(model: ModelConfig) -> Traits:
    return replace(_llama(model), qk_norm="head")


def _glm4(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), norms=4)


def _glm(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("attention_bias"), transformers_since="0.32.0")


def _glm4_moe(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("attention_bias"), qk_norm="head" if values.flag("use_qk_norm") else "", router_item=4, correction_item=4
    )


def _olmo(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(norm="none", qkv_bias=bias, o_bias=bias, embedding="all", final_everywhere=True, transformers_since="0.26.0")


def _olmo2(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(qkv_bias=bias, o_bias=bias, qk_norm="row", embedding="all", final_everywhere=True, transformers_since="0.26.0")


def _olmoe(model: ModelConfig) -> Traits:
    return Traits(qk_norm="row", embedding="all", final_everywhere=True)


def _seed_oss(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("attention_bias", default=True), o_bias=values.flag("attention_out_bias"), transformers_since="0.32.0"
    )


def _ernie(model: ModelConfig) -> Traits:
    # the dense models run as Llama, whose bias keys they do not have
    return Traits(tied=True)


def _ernie_moe(model: ModelConfig) -> Traits:
    bias = model.values.flag("use_bias")
    return Traits(qkv_bias=bias, mlp_bias=bias, shared_bias=False, tied=True, router_item=4, correction_item=4)


def _deepseek(model: ModelConfig) -> Traits:
    # latent attention has no biases whatever the config says; the first DeepSeek's attention may have them
    bias = model.values.flag("attention_bias") and not model.is_mla
    corrected = model.values.text("topk_method") == "noaux_tc"
    return Traits(qkv_bias=bias, correction_item=4 if corrected else 0, head="always", embedding="first")


def _mixtral(model: ModelConfig) -> Traits:
    return Traits()


def _qwen2_moe(model: ModelConfig) -> Traits:
    return Traits(qkv_bias=model.values.flag("qkv_bias", default=True), shared_gate=True, embedding="all", final_everywhere=True)


def _qwen3_next(model: ModelConfig) -> Traits:
    values = model.values
    return Traits(
        qkv_bias=values.flag("qkv_bias"), qk_norm="head", query_gate=values.flag("attn_output_gate", default=True), shared_gate=True
    )


def _gpt_oss(model: ModelConfig) -> Traits:
    return Traits(
        qkv_bias=True, o_bias=True, sinks=True, router_bias=True, expert_bias=True, rope_item=4, head="always",
        head_all=True, embedding="all", final_everywhere=True,
    )  # fmt: skip


def _minimax_m2(model: ModelConfig) -> Traits:
    return Traits(
        qkv_bias=model.values.flag("attention_bias"), qk_norm="row", router_item=4,
        correction_item=4 if model.values.flag("use_routing_bias", default=True) else 0,
    )  # fmt: skip


def _phimoe(model: ModelConfig) -> Traits:
    return Traits(norm="layer", qkv_bias=True, o_bias=True, head_bias=True, embedding="all", final_everywhere=True)


def _granitemoe(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True)


def _mamba(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, head_all=True)


def _hybrid(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True)


def _jamba(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True, head="always", head_all=True)


def _bamba(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(qkv_bias=bias, o_bias=bias, mlp_bias=model.values.flag("mlp_bias"), embedding="all", final_everywhere=True)


def _nemotron_h(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("attention_bias")
    return Traits(
        qkv_bias=bias, o_bias=bias, gated=False, mlp_bias=values.flag("mlp_bias"), correction_item=4, embedding="all",
        final_everywhere=True,
    )  # fmt: skip


def _kimi_linear(model: ModelConfig) -> Traits:
    return Traits(embedding="first")


def _lfm2(model: ModelConfig) -> Traits:
    return Traits(
        qk_norm="head", tied=model.values.flag("tie_embedding", default=True), embedding="all",
        correction_item=4 if model.values.flag("use_expert_bias") else 0,
    )  # fmt: skip


#: Architecture as vLLM's registry spells it -> the traits of its decoder.
TRAITS: dict[str, Callable[[ModelConfig], Traits]] = {
    "LlamaForCausalLM": _llama,
    "LLaMAForCausalLM": _llama,
    "AquilaForCausalLM": _llama,
    "AquilaModel": _llama,
    "InternLMForCausalLM": _llama,
    "InternLM3ForCausalLM": _llama,
    "IQuestCoderForCausalLM": _llama,
    "CwmForCausalLM": _through_transformers,
    "MistralForCausalLM": _llama,
    "Ministral3ForCausalLM": _llama,
    "Fairseq2LlamaForCausalLM": _llama,
    "XverseForCausalLM": _llama,
    "GraniteForCausalLM": _llama,
    "SmolLM3ForCausalLM": _through_transformers,
    "Phi3ForCausalLM": _phi3,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3,
    "MiMoForCausalLM": _qwen2,
    "Qwen3MoeForCausalLM": _qwen3,
    "Qwen2MoeForCausalLM": _qwen2_moe,
    "GemmaForCausalLM": _gemma,
    "Gemma2ForCausalLM": _gemma2,
    "Gemma3ForCausalLM": _gemma3,
    "Gemma4ForCausalLM": _gemma4,
    "MiniCPM3ForCausalLM": _minicpm3,
    "Glm4MoeLiteForCausalLM": _glm_lite,
    "GlmMoeDsaForCausalLM": _deepseek,
    "CohereForCausalLM": _cohere,
    "Cohere2ForCausalLM": _cohere,
    "FalconForCausalLM": _falcon,
    "RWForCausalLM": _falcon,
    "GPT2LMHeadModel": _gpt2,
    "GPTBigCodeForCausalLM": _bigcode,
    "BloomForCausalLM": _bloom,
    "MPTForCausalLM": _mpt,
    "MptForCausalLM": _mpt,
    "OPTForCausalLM": _opt,
    "GPTNeoXForCausalLM": _gpt_neox,
    "GPTJForCausalLM": _gptj,
    "PhiForCausalLM": _phi,
    "StableLmForCausalLM": _stablelm,
    "StableLMEpochForCausalLM": _stablelm,
    "Starcoder2ForCausalLM": _starcoder2,
    "NemotronForCausalLM": _nemotron,
    "ApertusForCausalLM": _apertus,
    "ArceeForCausalLM": _arcee,
    "Exaone4ForCausalLM": _exaone4,
    "ExaoneForCausalLM": _llama,
    "ExaoneMoEForCausalLM": _exaone_moe,
    "ExaoneMoeForCausalLM": _exaone_moe,
    "Cohere2MoeForCausalLM": _cohere2_moe,
    "HyperCLOVAXForCausalLM": _hyperclovax,
    "Jais2ForCausalLM": _jais2,
    "FlexOlmoForCausalLM": _flex_olmo,
    "ChatGLMModel": _chatglm,
    "ChatGLMForConditionalGeneration": _chatglm,
    "BaiChuanForCausalLM": _baichuan,
    "BaichuanForCausalLM": _baichuan,
    "InternLM2ForCausalLM": _llama,
    "SolarForCausalLM": _llama,
    "TeleChat2ForCausalLM": _llama,
    "Dots1ForCausalLM": _dots1,
    "HunYuanDenseV1ForCausalLM": _hunyuan,
    "BailingMoeForCausalLM": _bailing,
    "BailingMoeV2ForCausalLM": _bailing,
    "GraniteMoeSharedForCausalLM": _granitemoe,
    "Glm4ForCausalLM": _glm4,
    "GlmForCausalLM": _glm,
    "Glm4MoeForCausalLM": _glm4_moe,
    "OlmoForCausalLM": _olmo,
    "Olmo2ForCausalLM": _olmo2,
    "Olmo3ForCausalLM": _olmo2,
    "OlmoeForCausalLM": _olmoe,
    "SeedOssForCausalLM": _seed_oss,
    "Ernie4_5ForCausalLM": _ernie,
    "Ernie4_5_ForCausalLM": _ernie,
    "Ernie4_5_MoeForCausalLM": _ernie_moe,
    "DeepseekForCausalLM": _deepseek,
    "DeepseekV2ForCausalLM": _deepseek,
    "DeepseekV3ForCausalLM": _deepseek,
    "DeepseekV32ForCausalLM": _deepseek,
    "KimiK2ForCausalLM": _deepseek,
    "MixtralForCausalLM": _mixtral,
    "GptOssForCausalLM": _gpt_oss,
    "Llama4ForCausalLM": _plain,
    "MiniMaxM2ForCausalLM": _minimax_m2,
    "PhiMoEForCausalLM": _phimoe,
    "GraniteMoeForCausalLM": _granitemoe,
    "Qwen3NextForCausalLM": _qwen3_next,
    "Qwen3_5ForCausalLM": _qwen3_next,
    "Qwen3_5MoeForCausalLM": _qwen3_next,
    "MambaForCausalLM": _mamba,
    "FalconMambaForCausalLM": _mamba,
    "Mamba2ForCausalLM": _mamba,
    "JambaForCausalLM": _jamba,
    "FalconH1ForCausalLM": _hybrid,
    "BambaForCausalLM": _bamba,
    "GraniteMoeHybridForCausalLM": _bamba,
    "NemotronHForCausalLM": _nemotron_h,
    "NemotronHPuzzleForCausalLM": _nemotron_h,
    "KimiLinearForCausalLM": _kimi_linear,
    "Zamba2ForCausalLM": _mamba,
    "Lfm2ForCausalLM": _lfm2,
    "Lfm2MoeForCausalLM": _lfm2,
}
