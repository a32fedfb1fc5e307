"""Parameters of models whose layers have an arrangement of their own.

Every expected figure is the sum over the parameters of vLLM 0.28.0's own model class, built on the meta device.
"""

from __future__ import annotations

from typing import Any

import pytest

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.weights import estimate_weights

_BASE: dict[str, Any] = {
    "torch_dtype": "bfloat16", "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
}  # fmt: skip
_SLIDING = ["sliding_attention"] * 3

AFMOE = {
    **_BASE, "architectures": ["AfmoeForCausalLM"], "model_type": "afmoe", "hidden_size": 1024,
    "intermediate_size": 3072, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 128, "vocab_size": 200192, "max_position_embeddings": 131072, "sliding_window": 2048,
    "layer_types": [*_SLIDING, "full_attention"] * 2, "num_experts": 8, "num_experts_per_tok": 8,
    "num_shared_experts": 1, "num_dense_layers": 2, "moe_intermediate_size": 256,
}  # fmt: skip
DBRX = {
    **_BASE, "architectures": ["DbrxForCausalLM"], "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 3,
    "max_seq_len": 32768, "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "rope_theta": 500000},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}  # fmt: skip
GEMMA3N = {
    **_BASE, "architectures": ["Gemma3nForCausalLM"], "model_type": "gemma3n_text", "hidden_size": 2048,
    "intermediate_size": [8192] * 30, "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 256, "vocab_size": 262400, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
    "max_position_embeddings": 32768, "sliding_window": 512, "num_kv_shared_layers": 10, "altup_num_inputs": 4,
    "layer_types": ["sliding_attention", *_SLIDING, "full_attention"] * 6, "laurel_rank": 64,
    "tie_word_embeddings": True, "rope_local_base_freq": 10000.0,
}  # fmt: skip
HUNYUAN = {
    **_BASE, "architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", "hidden_size": 4096,
    "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 128167, "max_position_embeddings": 32768, "num_experts": 8,
    "moe_topk": [2] * 4, "num_shared_expert": [1] * 4, "moe_intermediate_size": [3072] * 4, "use_mixed_mlp_moe": True,
    "use_qk_norm": True, "tie_word_embeddings": True,
}  # fmt: skip
_LATENT = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LONGCAT = {
    **_BASE, **_LATENT, "architectures": ["LongcatFlashForCausalLM"], "model_type": "longcat_flash",
    "hidden_size": 6144, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "num_layers": 4,
    "num_attention_heads": 64, "vocab_size": 131072, "max_position_embeddings": 131072, "n_routed_experts": 8,
    "zero_expert_num": 4, "moe_topk": 2,
}  # fmt: skip
MIMO_V2 = {
    **_BASE, "architectures": ["MiMoV2FlashForCausalLM"], "model_type": "mimo_v2_flash", "hidden_size": 4096,
    "intermediate_size": 16384, "num_hidden_layers": 6, "num_attention_heads": 64, "num_key_value_heads": 4,
    "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
    "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
    "moe_layer_freq": [0, 1, 1, 1, 1, 1], "n_routed_experts": 16, "moe_intermediate_size": 2048,
    "sliding_window": 128, "add_swa_attention_sink_bias": True, "vocab_size": 152576, "max_position_embeddings": 262144,
}  # fmt: skip
STEP3 = {
    **_BASE, "architectures": ["Step3TextForCausalLM"], "model_type": "step3_text", "hidden_size": 7168,
    "intermediate_size": 18432, "num_attention_heads": 64, "num_attention_groups": 1, "num_hidden_layers": 6,
    "max_seq_len": 65536, "vocab_size": 128815, "moe_intermediate_size": 5120, "moe_num_experts": 8,
    "share_expert_dim": 5120, "share_q_dim": 2048, "head_dim": 256, "moe_layers_enum": "4,5",
}  # fmt: skip
STEP3P5 = {
    **_BASE, "architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", "hidden_size": 4096,
    "intermediate_size": 11264, "num_hidden_layers": 6, "num_attention_heads": 64, "num_attention_groups": 8,
    "head_dim": 128, "vocab_size": 128896, "max_position_embeddings": 262144, "sliding_window": 512,
    "layer_types": ["full_attention", *_SLIDING, "full_attention", "sliding_attention"],
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96},
    "moe_num_experts": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280, "moe_layers_enum": "3,4,5",
    "use_head_wise_attn_gate": True, "num_nextn_predict_layers": 3,
}  # fmt: skip
LOOP_CODER = {
    **_BASE, "architectures": ["IQuestLoopCoderForCausalLM"], "model_type": "iquestloopcoder", "hidden_size": 2048,
    "intermediate_size": 4096, "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 4,
    "head_dim": 128, "vocab_size": 76800, "max_position_embeddings": 131072, "loop_num": 2, "loop_window_size": 64,
}  # fmt: skip
MINICPM = {
    **_BASE, "architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", "hidden_size": 2304,
    "intermediate_size": 5760, "num_hidden_layers": 4, "num_attention_heads": 36, "num_key_value_heads": 36,
    "vocab_size": 122753, "max_position_embeddings": 4096, "tie_word_embeddings": True,
}  # fmt: skip
_ATTENDS = {
    "attention": {"n_heads_in_group": 8, "no_op": False, "replace_with_linear": False},
    "ffn": {"ffn_mult": 2.625, "no_op": False, "replace_with_linear": False},
}  # fmt: skip
_SKIPS = {
    "attention": {"n_heads_in_group": None, "no_op": True, "replace_with_linear": False},
    "ffn": {"ffn_mult": 1.3125, "no_op": False, "replace_with_linear": False},
}  # fmt: skip
NAS = {
    **_BASE, "architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas", "hidden_size": 8192,
    "num_hidden_layers": 8, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "block_configs": [_ATTENDS] * 5 + [_SKIPS] * 3,
}  # fmt: skip
ORION = {
    **_BASE, "architectures": ["OrionForCausalLM"], "model_type": "orion", "hidden_size": 5120,
    "intermediate_size": 15360, "num_hidden_layers": 2, "num_attention_heads": 40, "num_key_value_heads": 40,
    "vocab_size": 84608, "max_position_embeddings": 4096,
}  # fmt: skip
RING = {
    **_BASE, **_LATENT, "architectures": ["BailingMoeV2_5ForCausalLM"], "model_type": "bailing_hybrid",
    "hidden_size": 2048, "intermediate_size": 5120, "num_hidden_layers": 10, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 128, "q_lora_rank": None, "vocab_size": 157184, "layer_group_size": 5,
    "max_position_embeddings": 131072, "num_experts": 8, "num_shared_experts": 1, "moe_intermediate_size": 512,
    "moe_shared_expert_intermediate_size": 512, "first_k_dense_replace": 1, "moe_router_enable_expert_bias": True,
    "use_qk_norm": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "tp", "pp", "expected"),
    [
        (AFMOE, 2, 2, [252807232, 248156288]),
        (DBRX, 2, 1, [11010723840]),
        (GEMMA3N, 2, 1, [4488494272]),
        (HUNYUAN, 2, 1, [2052139008]),
        (LOOP_CODER, 1, 1, [1057042624]),
        (MINICPM, 1, 2, [810146304, 810146304]),
        (NAS, 2, 1, [5146640384]),
        (ORION, 2, 1, [1548062720]),
        (RING, 2, 1, [1128442144]),
        (LONGCAT, 4, 1, [2834673856]),
        (LONGCAT, 1, 2, [5355782240, 5355794528]),
        (MIMO_V2, 2, 1, [4021658176]),
        (STEP3, 4, 1, [3380721664]),
        (STEP3P5, 2, 1, [2485628000]),
    ],
)
def test_parameters_of_vllms_own_classes(config: dict[str, Any], tp: int, pp: int, expected: list[int]) -> None:
    options = ServeOptions(tensor_parallel_size=tp, pipeline_parallel_size=pp)
    found = estimate_weights(load_model_config(config), options, "0.28.0")
    assert [stage.param_bytes for stage in found] == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {
                **_BASE, "architectures": ["VaultGemmaForCausalLM"], "model_type": "vaultgemma", "hidden_size": 2304,
                "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
                "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192, "tie_word_embeddings": True,
                "layer_types": ["sliding_attention", "full_attention"] * 13, "sliding_window": 4096,
            },
            5228444160,
        ),
        (
            {
                **_BASE, "architectures": ["MellumForCausalLM"], "model_type": "mellum", "hidden_size": 2304,
                "intermediate_size": 7168, "num_hidden_layers": 28, "num_attention_heads": 32, "num_key_value_heads": 4,
                "head_dim": 128, "vocab_size": 98304, "max_position_embeddings": 131072, "num_local_experts": 64,
                "moe_intermediate_size": 896, "mlp_layer_types": ["sparse"] * 28,
            },
            24299846144,
        ),
    ],
)  # fmt: skip
def test_parameters_through_the_transformers_back_end(config: dict[str, Any], expected: int) -> None:
    assert estimate_weights(load_model_config(config), ServeOptions(), "0.32.0")[0].param_bytes == expected


def test_lightning_attention_has_a_gate_and_the_head_is_in_full_precision() -> None:
    # vLLM 0.22.1's own class; its output head is in float32
    config = {
        **_BASE, "architectures": ["MiniMaxM1ForCausalLM"], "model_type": "minimax_m1", "hidden_size": 6144,
        "intermediate_size": 9216, "num_hidden_layers": 8, "attn_type_list": [0] * 7 + [1], "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 200064, "max_position_embeddings": 10240000,
        "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 64, "shared_intermediate_size": 0,
    }  # fmt: skip
    options = ServeOptions(tensor_parallel_size=2)
    assert estimate_weights(load_model_config(config), options, "0.22.1")[0].param_bytes == 10999304192


def test_layers_that_reuse_keys_have_no_projection_for_them_from_0_30() -> None:
    model = load_model_config(GEMMA3N)
    old, new = (estimate_weights(model, ServeOptions(), release)[0].param_bytes for release in ("0.29.0", "0.30.0"))
    keys_and_values = 2 * 2 * 256 * 2048 * 2  # two heads each of keys and values, 16 bit
    assert old - new == 10 * (keys_and_values + 256 * 2)  # and the norm of the keys


def test_tiles_are_made_smaller_where_experts_are_not_whole_ones_from_0_29() -> None:
    config = {
        **_BASE, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 1024,
        "intermediate_size": 3072, "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 1024, "max_position_embeddings": 4096, "num_experts": 4,
        "moe_intermediate_size": 1536,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    options = ServeOptions(tensor_parallel_size=8)
    old, new = (
        estimate_weights(load_model_config(config), options, release)[0].param_bytes for release in ("0.28.0", "0.29.0")
    )
    # 192 wide: two tiles of 128, or three of 64 in both directions
    assert new - old == 4 * 4 * ((2 * 3 * 16 - 2 * 2 * 8) + (16 * 3 - 8 * 2))


@pytest.mark.parametrize(
    ("quantisation", "per_weight"),
    [
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}, 1),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}},
            },
            0.53125,
        ),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig"}}}, 1),
        (
            {
                "quant_method": "torchao",
                "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}}},
            },
            0.5 + 2.5 / 128,
        ),
    ],
)  # fmt: skip
def test_formats_of_other_exporters(quantisation: dict[str, Any], per_weight: float) -> None:
    config = {
        **_BASE, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 1024, "max_position_embeddings": 4096, "quantization_config": quantisation,
    }  # fmt: skip
    found = estimate_weights(load_model_config(config), ServeOptions(), "0.32.0")[0]
    weights = 2 * (4 * 2048 * 2048 + 3 * 2048 * 8192)
    linear = found.by_part["attention"] + found.by_part["mlp"]
    assert linear == pytest.approx(weights * per_weight, rel=0.002)
    assert found.tolerance == 0.05


def test_index_keys_were_quantised_like_the_rest_until_0_19() -> None:
    config = {
        **_BASE, **_LATENT, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
        "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 1, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 1024, "max_position_embeddings": 4096, "index_topk": 2048,
        "index_n_heads": 64, "index_head_dim": 128,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    model = load_model_config(config)
    biased, split, merged = (
        estimate_weights(model, ServeOptions(), release)[0].param_bytes for release in ("0.13.0", "0.19.1", "0.20.0")
    )
    assert merged - split == 1024 * 128 - 8 * 4  # a second byte each, no scales
    assert biased - split == 64 * 2


@pytest.mark.parametrize(("release", "width"), [("0.16.0", 4), ("0.17.0", 2)])
def test_the_router_of_nemotron_h_was_in_full_precision_until_0_16(release: str, width: int) -> None:
    config = {
        **_BASE, "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hidden_size": 1024,
        "intermediate_size": 512, "num_hidden_layers": 1, "hybrid_override_pattern": "E", "num_attention_heads": 8,
        "num_key_value_heads": 2, "vocab_size": 1024, "max_position_embeddings": 4096, "n_routed_experts": 16,
        "moe_intermediate_size": 512, "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 512,
    }  # fmt: skip
    found = estimate_weights(load_model_config(config), ServeOptions(), release)[0]
    assert found.by_part["router"] == 16 * 1024 * width + 16 * 4  # and the correction per expert


_WRAPPED: dict[str, Any] = {
    "model_type": "llava", "torch_dtype": "float16", "tie_word_embeddings": False,
    "text_config": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 16, "num_attention_heads": 32, "vocab_size": 32064, "max_position_embeddings": 4096,
    },
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
    },
}  # fmt: skip


@pytest.mark.parametrize("tp", [1, 4])
def test_towers_that_are_not_modelled_are_counted_roughly_and_said_to_be(tp: int) -> None:
    options = ServeOptions(tensor_parallel_size=tp)

    def of(architecture: str) -> Any:
        config = {**_WRAPPED, "architectures": [architecture]}
        return estimate_weights(load_model_config(config), options, "0.32.0")[0]

    known, rough = of("LlavaForConditionalGeneration"), of("NobodyForConditionalGeneration")
    assert rough.low_bytes <= known.allocated_bytes <= rough.high_bytes
    assert known.tolerance < rough.tolerance < 0.5
    assert any("plain transformers" in note for note in rough.assumptions)


def test_a_tower_without_sizes_leaves_the_sum_unknown_unless_it_is_not_built() -> None:
    config = {
        **_WRAPPED, "architectures": ["NobodyForConditionalGeneration"],
        "vision_config": {"model_type": "gemma3n_vision", "architecture": "mobilenetv5_300m_enc"},
    }  # fmt: skip
    model = load_model_config(config)
    assert estimate_weights(model, ServeOptions(), "0.32.0")[0].unknown
    text = estimate_weights(model, ServeOptions(unused={"language_model_only": True}), "0.32.0")[0]
    assert not text.unknown
    assert "vision" not in text.by_part
