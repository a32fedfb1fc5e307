"""Which configurations can be read, and why others cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget import _traits
from vlogcheck.budget._drafts import unknown_drafter
from vlogcheck.budget._pattern import STATE_KINDS, layer_kinds
from vlogcheck.budget.model import ModelConfig, ModelConfigError

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.releases import Release

#: Model types whose layers are read as they are in vLLM; other names are read as plain decoders where their keys allow.
_KNOWN = frozenset({
    "llama", "llama4", "llama4_text", "mistral", "mistral3", "ministral", "ministral3", "mixtral", "pixtral",
    "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl_text", "qwen2_5_omni",
    "qwen2_5_omni_text", "qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_text", "qwen3_vl_moe", "qwen3_vl_moe_text",
    "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_omni_moe_text", "gemma",
    "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "gpt_oss", "deepseek_v2",
    "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_linear", "glm", "glm4", "glm4v_text",
    "glm4v_moe_text", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa", "chatglm", "phi", "phi3", "phimoe", "phi3small",
    "phi4mm", "starcoder2", "gpt_bigcode", "gpt2", "gpt_neox", "gptj", "gpt_j", "bloom", "falcon", "RefinedWeb",
    "RefinedWebModel", "mpt", "dbrx", "opt", "stablelm", "granite", "granitemoe", "granitemoehybrid",
    "granitemoeshared", "olmo", "olmo2", "olmo3", "olmoe", "exaone", "exaone4", "seed_oss", "smollm3", "minicpm",
    "minicpm3", "internlm", "internlm2", "internlm3", "baichuan", "cohere", "cohere2", "command-r", "jamba",
    "mamba", "mamba2", "falcon_mamba", "bamba", "nemotron", "nemotron_h", "nemotron-nas", "falcon_h1", "zamba2",
    "lfm2", "lfm2_moe", "minimax", "minimax_text_01", "minimax_m1", "minimax_m2", "ernie4_5", "ernie4_5_moe",
    "hunyuan_v1_dense", "hunyuan_v1_moe", "whisper", "bert", "arcee", "apertus", "dots1", "bailing_moe", "qwen",
    "xverse", "solar", "orion", "persimmon", "mimo", "helium", "eagle", "llava", "internvl_chat", "aria_text",
    "deci", "axk1", "hy_v4", "olmo_hybrid", "cohere2_moe", "cwm", "exaone_moe", "flex_olmo", "gpt-sw3", "granite_swa",
    "granitemoe_swa", "hrm_text", "hyperclovax", "jais2", "laguna", "mellum", "vaultgemma", "mimo_v2",
    "mimo_v2_flash", "step3_text", "step3p5", "longcat_flash", "pangu_ultra_moe", "bailing_hybrid", "iquestloopcoder",
})  # fmt: skip

#: Keys of layers that are not modelled; a configuration with one of them is not read as a plain decoder.
_EXOTIC = (
    "kv_lora_rank", "linear_attn_config", "ssm_cfg", "ssm_state_size", "mamba_d_state", "rwkv_hidden_size",
    "mamba_step",
    "hybrid_override_pattern", "attn_layer_indices", "hybrid_layer_pattern", "compress_ratios", "rswa_window",
    "linear_num_key_heads", "block_configs", "dual_chunk_attention_config", "cross_attention_layers",
    "num_attention_groups", "attention_other_setting", "encoder_layers",
)  # fmt: skip


def is_known_name(model: ModelConfig) -> bool:
    """Whether the model type is one whose layers are read by a rule of its own."""
    return (model.text_model_type or model.model_type) in _KNOWN


def _skips_known(model: ModelConfig, options: ServeOptions, release: Release) -> bool:
    """Whether the layers kept out of the cache's quantisation are modelled.

    Plain full attention from 0.20.2 on in any format of one size; with windows and states for fp8 from 0.26.0 on, when a
    page came to be shared.
    """
    name, stated = options.kv_cache_dtype, _traits.checkpoint_cache_dtype(model, release)
    if name in {"bfloat16", "float16"} or (name == "auto" and stated is None):
        return True  # nothing is quantised
    kinds = {kind for layer in layer_kinds(model) for kind in layer}
    if release.before("0.20.2") or name.startswith("turboquant"):
        return False
    if kinds == {"full"}:
        return True
    eight_bit = name in {"fp8", "fp8_e4m3", "fp8_e5m2"} or (name == "auto" and stated == "fp8")
    return release.since("0.26.0") and eight_bit and kinds <= STATE_KINDS | {"full", "sliding", "cross"}


def unknown_reason(model: ModelConfig, options: ServeOptions, release: Release) -> str | None:
    """Return why the model's caches are not modelled, ``None`` where they are."""
    values = model.values
    if model.is_encoder_decoder and model.model_type not in {"whisper"}:
        return "encoder-decoder models other than Whisper are not modelled"
    if not model.text_model_type.startswith("mimo_v2") and (
        "hybrid_layer_pattern" in model.text or values.has("swa_num_key_value_heads")
    ):
        return "layers with their own number of KV heads are not modelled"
    if options.kv_cache_dtype_skip_layers and not _skips_known(model, options, release):
        return "layers excluded from KV-cache quantisation are not modelled for this model, cache type and release"
    turboquant = options.kv_cache_dtype.startswith("turboquant")
    if turboquant and {"sliding", "chunked", "cross", "loop"} & {
        kind for layer in layer_kinds(model) for kind in layer
    }:
        return "turboquant is modelled for full attention and states only"
    if turboquant and options.pipeline_parallel_size > 1 and release.since("0.30.0"):
        return "turboquant on pipeline stages, which may each choose a block size of their own, is not modelled"
    if values.has("dual_chunk_attention_config"):
        return "dual-chunk attention is not modelled"
    if model.text_model_type == "deepseek_v4":
        if release.before("0.29.0") or options.speculative_config or not options.kv_cache_dtype.startswith("fp8"):
            return "DeepSeek-V4 is modelled from 0.29.0 on, with an fp8 KV cache and without a drafter"
        return None
    if values.has("rswa_window"):
        return "R-SWA layers are not modelled"
    if (drafter := unknown_drafter(model, options)) is not None:
        return drafter
    if is_known_name(model):
        if release.before("0.10.0") and _traits.has_state(model):
            if release.before("0.9.2") and _traits.has_attention(model):
                return None  # the V0 engine, whose blocks are those of the attention layers
            return "state layers before 0.10.0 were kept outside the KV cache"
        return None
    exotic = [key for key in _EXOTIC if model.text.get(key) not in (None, [], {}, 0)]
    if exotic:
        return f"the configuration has {exotic[0]!r}, whose layers are not known for this architecture"
    try:
        if model.num_layers and model.num_attention_heads and model.num_kv_heads and model.hidden_size:
            listed = model.layer_types
            if listed and set(listed) - {"full_attention", "attention", "sliding_attention"}:
                return "the configuration lists layer types that are not known for this architecture"
            return None
    except ModelConfigError as error:
        return str(error)
    return "the configuration lacks the keys of a plain decoder"
