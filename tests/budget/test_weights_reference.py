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


@pytest.mark.parametrize(
    ("config", "tp", "pp", "expected"),
    [
        (AFMOE, 2, 2, [252807232, 248156288]),
        (DBRX, 2, 1, [11010723840]),
        (GEMMA3N, 2, 1, [4488494272]),
        (HUNYUAN, 2, 1, [2052139008]),
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
