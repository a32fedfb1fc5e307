"""Rules of the weights: sharing over ranks, quantised layouts, allocator, hostile configurations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfigError, load_model_config
from vlogcheck.budget.weights import WeightEstimate, allocated_bytes, estimate_weights

MIB = 1 << 20


def llama(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
    }
    return {**base, **changes}


def one(config: dict[str, Any], release: str = "0.32.0", **options: Any) -> WeightEstimate:
    return estimate_weights(load_model_config(config), ServeOptions(**options), release)[0]


# By hand -------------------------------------------------------------------------------------------------------------


def test_llama_by_hand() -> None:
    vocabulary = 1024 * 256  # 1000 rows padded to 1024
    layer = 256 * (8 + 2 * 2) * 32 + 8 * 32 * 256 + 3 * 256 * 512 + 2 * 256
    found = one(llama())
    assert found.param_bytes == 2 * (2 * vocabulary + 3 * layer + 256)
    assert found.by_part["embedding"] == found.by_part["lm_head"] == 2 * vocabulary
    assert found.by_part["norms"] == 2 * (3 * 2 * 256 + 256)
    # rotary cache of every position the model has, and four scalars per attention layer from 0.14 on
    assert found.buffer_bytes == 2048 * 32 * 2 + 3 * 16
    assert one(llama(), "0.13.0").buffer_bytes == 2048 * 32 * 2


def test_tied_head_costs_nothing_but_on_two_stages_it_is_there_twice() -> None:
    table = 2 * 1024 * 256
    whole = one(llama(tie_word_embeddings=True))
    assert one(llama()).param_bytes - whole.param_bytes == table
    model = load_model_config(llama(tie_word_embeddings=True))
    stages = estimate_weights(model, ServeOptions(pipeline_parallel_size=3), "0.32.0")
    assert [stage.by_part.get("embedding", 0) for stage in stages] == [table, 0, table]
    assert sum(stage.param_bytes for stage in stages) == whole.param_bytes + table


def test_layer_partition_of_the_environment() -> None:
    model = load_model_config(llama())
    options = ServeOptions(pipeline_parallel_size=2)
    default = estimate_weights(model, options, "0.32.0")
    moved = estimate_weights(model, options, "0.32.0", {"VLLM_PP_LAYER_PARTITION": "1,2"})
    assert default[0].by_part["mlp"] == 2 * default[1].by_part["mlp"]
    assert 2 * moved[0].by_part["mlp"] == moved[1].by_part["mlp"]
    with pytest.raises(ModelConfigError, match="does not split"):
        estimate_weights(model, options, "0.32.0", {"VLLM_PP_LAYER_PARTITION": "1,1"})


def test_key_value_heads_are_copied_when_there_are_more_ranks() -> None:
    attention = [one(llama(), tensor_parallel_size=tp).by_part["attention"] for tp in (2, 4, 8)]
    # 8 query heads and 2 key/value heads: from 2 ranks on every rank keeps one K and one V head
    assert [size // (2 * 3 * 256 * 32) for size in attention] == [4 + 2 + 4, 2 + 2 + 2, 1 + 2 + 1]


def test_what_vllm_refuses_is_unknown() -> None:
    found = one(llama(), tensor_parallel_size=3)
    assert found.unknown
    assert "cannot be divided by 3" in found.tolerance_reason
    assert found.param_bytes == 0


def test_float32_doubles_the_parameters() -> None:
    assert one(llama(), dtype="float32").param_bytes == 2 * one(llama()).param_bytes


@pytest.mark.parametrize("name", ["NobodyForCausalLM", "", "LlamaForCausalLM\x00"])
def test_unknown_architecture(name: str) -> None:
    found = one(llama(architectures=[name]))
    assert found.unknown
    assert found.allocated_bytes == 0
    assert "not modelled" in found.tolerance_reason


# Experts -------------------------------------------------------------------------------------------------------------


def moe(**changes: Any) -> dict[str, Any]:
    sizes = {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 16, "moe_intermediate_size": 64}
    return llama(**{**sizes, "decoder_sparse_step": 1, **changes})


def test_expert_parallelism_deals_experts_out_and_tensor_parallelism_cuts_them() -> None:
    whole = one(moe()).by_part["experts"]
    assert whole == 2 * 3 * 16 * 3 * 256 * 64
    cut = one(moe(), tensor_parallel_size=4)
    dealt = one(moe(), tensor_parallel_size=4, enable_expert_parallel=True)
    assert cut.by_part["experts"] == dealt.by_part["experts"] == whole // 4
    # the router is whole on every rank, and dealt experts need a map of 4 bytes per expert and layer
    assert cut.by_part["router"] == one(moe()).by_part["router"] == 2 * 3 * 256 * 16
    assert dealt.buffer_bytes - cut.buffer_bytes == 3 * 4 * 16


def test_data_parallel_ranks_share_the_experts_only() -> None:
    alone = one(moe())
    shared = one(moe(), data_parallel_size=2)
    assert shared.by_part["experts"] * 2 == alone.by_part["experts"]
    assert shared.by_part["attention"] == alone.by_part["attention"]
    assert one(moe(), data_parallel_size=2, enable_expert_parallel=True).by_part["experts"] == shared.by_part["experts"]


def test_which_layers_are_sparse() -> None:
    every_other = one(moe(decoder_sparse_step=3)).by_part
    assert every_other["experts"] * 3 == one(moe()).by_part["experts"]
    assert every_other["mlp"] == 2 * 2 * 3 * 256 * 512
    assert one(moe(mlp_only_layers=[0, 1])).by_part["experts"] == every_other["experts"]


# Quantisation --------------------------------------------------------------------------------------------------------


def quantised(config: dict[str, Any], release: str = "0.32.0") -> int:
    """Bytes of the linear layers of one 256x512 feed-forward layer."""
    return one(llama(quantization_config=config, num_hidden_layers=1), release).by_part["mlp"]


def test_awq_and_gptq_layouts() -> None:
    weights = 3 * 256 * 512
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    assert quantised(awq) == weights // 2 + weights // 128 * 2 + weights // 128 // 2
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}
    assert quantised(gptq) == quantised(awq)
    # releases to 0.29 keep a group index per input of each fused layer
    assert quantised(gptq, "0.20.2") == quantised(awq) + 4 * (256 + 512)
    assert quantised({**gptq, "bits": 8}) == weights + weights // 128 * 2 + weights // 128
    assert quantised({**gptq, "group_size": -1}) == weights // 2 + (1024 + 256) * 5 // 2


def test_fp8_layouts() -> None:
    weights = 3 * 256 * 512
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert quantised(block) == weights + 4 * weights // (128 * 128)
    assert quantised({"quant_method": "fp8"}) == weights + 4 * 3
    assert quantised({"quant_method": "fp8", "activation_scheme": "static"}) == weights + 8 * 3


def test_modules_left_in_16_bit() -> None:
    weights = 3 * 256 * 512
    block: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert quantised({**block, "modules_to_not_convert": ["model.layers.0.mlp.down_proj"]}) > quantised(block)
    names = [f"model.layers.0.mlp.{part}_proj" for part in ("gate", "up", "down")]
    assert quantised({**block, "modules_to_not_convert": names}) == 2 * weights
    assert quantised({**block, "ignored_layers": ["re:.*mlp.*"]}) == 2 * weights
    assert quantised({**block, "modules_to_not_convert": ["lm_head"]}) == quantised(block)


def test_compressed_tensors_formats() -> None:
    def packed(**weights: Any) -> dict[str, Any]:
        return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}

    weights = 3 * 256 * 512
    int4 = packed(num_bits=4, type="int", strategy="group", group_size=64, symmetric=True)
    # two int64 of a shape tensor per fused layer
    assert quantised(int4) == weights // 2 + weights // 64 * 2 + 2 * 16
    assert quantised(packed(num_bits=8, type="float", strategy="channel")) == weights + 4 * (1024 + 256)
    nvfp4 = packed(num_bits=4, type="float", strategy="tensor_group", group_size=16)
    assert quantised(nvfp4) == weights // 2 + weights // 16 + 8 * 3
    assert one(llama(quantization_config=packed(num_bits=5, type="int"))).unknown


@pytest.mark.parametrize("method", ["gguf", "torchao", "quark", "nobody"])
def test_methods_without_a_known_layout_are_unknown(method: str) -> None:
    found = one(llama(quantization_config={"quant_method": method}))
    assert found.unknown
    assert method in found.tolerance_reason


def test_tolerance_widens_with_what_is_less_certain() -> None:
    plain = one(llama())
    quantised_ = one(llama(quantization_config={"quant_method": "awq", "bits": 4, "group_size": 128}))
    assert plain.tolerance < quantised_.tolerance
    assert plain.tolerance_reason != quantised_.tolerance_reason
    assert one(llama(), enable_lora=True).tolerance > plain.tolerance
    assert one(llama(), cpu_offload_gib=4.0).unknown


# Drafters ------------------------------------------------------------------------------------------------------------


def test_a_drafter_whose_configuration_is_not_there_leaves_the_sum_unknown() -> None:
    alone = one(llama())
    drafted = one(llama(), speculative_config={"method": "eagle3", "model": "somebody/drafter"})
    assert drafted.unknown
    assert "drafter" in drafted.tolerance_reason
    assert drafted.param_bytes == alone.param_bytes
    assert not one(llama(), speculative_config={"method": "ngram", "num_speculative_tokens": 3}).unknown


# Latent attention ----------------------------------------------------------------------------------------------------


def mla(**changes: Any) -> dict[str, Any]:
    sizes = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "kv_lora_rank": 64,
        "q_lora_rank": 96,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    }
    return llama(**{**sizes, **changes})


def test_absorbed_projections_appear_after_loading() -> None:
    found = one(mla(), tensor_parallel_size=2)
    assert found.post_load_bytes == 3 * 4 * (32 + 32) * 64 * 2
    model = load_model_config(mla())
    disabled = estimate_weights(model, ServeOptions(), "0.32.0", {"VLLM_MLA_DISABLE": "1"})[0]
    assert disabled.post_load_bytes == 0
    assert disabled.param_bytes == one(mla()).param_bytes


def test_latent_projections_are_whole_on_every_rank() -> None:
    down = 256 * (96 + 64 + 16)
    up = 96 * 8 * 48 + 64 * 8 * 64 + 8 * 32 * 256
    assert one(mla(), "0.12.0").by_part["attention"] == 2 * 3 * (down + up)
    assert one(mla(), "0.12.0", tensor_parallel_size=4).by_part["attention"] == 2 * 3 * (down + up // 4)


# Allocator -----------------------------------------------------------------------------------------------------------


def test_allocator_by_hand() -> None:
    assert allocated_bytes([1, 513, 0]) == 512 + 1024
    # a remainder of 1 MiB or less stays with its block, a larger one is split off and used again
    assert allocated_bytes([11 * MIB]) == 12 * MIB
    assert allocated_bytes([10 * MIB + 512]) == 10 * MIB + 512
    assert allocated_bytes([2 * MIB, 17 * MIB + 512]) == 2 * MIB + 18 * MIB
    assert allocated_bytes([21 * MIB - 512], max_split_size=20 * MIB) == 22 * MIB
    assert allocated_bytes([21 * MIB - 512], expandable=True) == 21 * MIB - 512


SIZES = st.lists(st.integers(0, 64 * MIB), max_size=60)


@given(SIZES, st.sampled_from([None, 20 * MIB]))
@settings(max_examples=150, deadline=None)
def test_allocator_counts_each_tensor_and_little_more(sizes: list[int], limit: int | None) -> None:
    rounded = sum(-(-size // 512) * 512 for size in sizes)
    counted = allocated_bytes(sizes, max_split_size=limit)
    per_tensor = 22 * MIB if limit else MIB
    assert rounded <= counted <= rounded + per_tensor * len(sizes)
    assert allocated_bytes(sizes, expandable=True) == rounded


# Any sizes -----------------------------------------------------------------------------------------------------------


@given(
    layers=st.integers(1, 12),
    heads=st.sampled_from([4, 8, 16]),
    kv=st.sampled_from([4, 8, 16]),
    head=st.sampled_from([16, 64]),
    inner=st.integers(1, 40),
    vocab=st.integers(1, 5000),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.integers(1, 4),
)
@settings(max_examples=100, deadline=None)
def test_shares_add_up_to_the_model(
    layers: int, heads: int, kv: int, head: int, inner: int, vocab: int, tp: int, pp: int
) -> None:
    config = llama(
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=min(kv, heads),
        head_dim=head,
        intermediate_size=inner * 8,
        vocab_size=vocab,
    )
    whole = one(config)
    stages = estimate_weights(
        load_model_config(config), ServeOptions(tensor_parallel_size=tp, pipeline_parallel_size=pp), "0.32.0"
    )
    norms = whole.by_part["norms"]
    assert sum(stage.param_bytes - stage.by_part.get("norms", 0) for stage in stages) * tp == whole.param_bytes - norms
    assert sum(stage.by_part.get("norms", 0) for stage in stages) == norms


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size", "layer_types",
    "intermediate_size", "moe_intermediate_size", "num_experts", "quantization_config", "rope_scaling", "rope_parameters",
    "max_position_embeddings", "attention_bias", "kv_lora_rank", "vision_config", "linear_attn_config", "mlp_only_layers",
    "hybrid_override_pattern", "tie_word_embeddings", "per_layer_config", "moe_layer_freq", "partial_rotary_factor",
])  # fmt: skip
ARCHITECTURES = st.sampled_from([
    "LlamaForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV3ForCausalLM", "Gemma3ForConditionalGeneration",
    "Qwen3NextForCausalLM", "NemotronHForCausalLM", "JambaForCausalLM", "Lfm2ForCausalLM", "KimiLinearForCausalLM",
    "Gemma4ForCausalLM", "WhisperForConditionalGeneration", "BertModel", "FalconH1ForCausalLM", "Zamba2ForCausalLM",
    "Qwen3_5MoeForConditionalGeneration", "Llama4ForConditionalGeneration", "GptOssForCausalLM", "MambaForCausalLM",
])  # fmt: skip


@given(ARCHITECTURES, st.dictionaries(KEYS, JSON, max_size=5))
@settings(max_examples=400, deadline=None)
def test_any_configuration_gives_an_estimate_or_a_clear_error(name: str, changes: dict[str, Any]) -> None:
    config = llama(architectures=[name], **changes)
    try:
        found = one(config, tensor_parallel_size=2)
    except ModelConfigError:
        return  # the only error there may be
    assert found.param_bytes >= 0
    assert found.unknown or found.allocated_bytes > 0


TOWERS = st.sampled_from([
    "Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration", "Qwen3VLForConditionalGeneration", "LlavaForConditionalGeneration",
    "Mistral3ForConditionalGeneration", "InternVLChatModel", "PaliGemmaForConditionalGeneration",
])  # fmt: skip
TOWER_SIZES = {
    "hidden_size": 64, "embed_dim": 64, "intermediate_size": 128, "num_hidden_layers": 2, "depth": 2, "num_heads": 4,
    "num_attention_heads": 4, "image_size": 56, "patch_size": 14, "num_position_embeddings": 16, "out_hidden_size": 256,
    "projector_input_dim": 64, "projector_output_dim": 64, "vision_output_dim": 64, "pixel_shuffle_ratio": 0.5,
    "deepstack_visual_indexes": [0], "vision_feature_layer": -2,
}  # fmt: skip


@given(TOWERS, st.dictionaries(st.sampled_from(sorted(TOWER_SIZES)), JSON, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_tower_gives_an_estimate_or_a_clear_error(name: str, changes: dict[str, Any]) -> None:
    text = {**llama(), "model_type": "llama"}
    config = {"architectures": [name], "text_config": text, "vision_config": {**TOWER_SIZES, **changes}}
    try:
        found = one(config, tensor_parallel_size=2)
    except ModelConfigError:
        return  # the only error there may be
    assert found.unknown or found.by_part["vision"] > 0


def test_towers_can_be_left_out_or_copied() -> None:
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": llama(), "vision_config": TOWER_SIZES}
    cut = one(config, tensor_parallel_size=2).by_part["vision"]
    assert one(config).by_part["vision"] > cut
    copied = one(config, tensor_parallel_size=2, unused={"mm_encoder_tp_mode": "data"})
    assert copied.by_part["vision"] == one(config).by_part["vision"]
    assert "vision" not in one(config, unused={"language_model_only": True}).by_part
    limits = {"limit_mm_per_prompt": {"image": 0, "video": 0}}
    assert "vision" not in one(config, unused=limits).by_part
    assert "vision" in one(config, "0.13.0", unused=limits).by_part


def test_the_second_runner_builds_no_tower_behind_the_first_stage() -> None:
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": llama(), "vision_config": TOWER_SIZES}
    model, options = load_model_config(config), ServeOptions(pipeline_parallel_size=2)
    held = {
        release: ["vision" in stage.by_part for stage in estimate_weights(model, options, release)]
        for release in ("0.32.0", "0.33.0")
    }
    assert held == {"0.32.0": [True, True], "0.33.0": [True, False]}
    first = estimate_weights(model, options, "0.33.0", env={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    assert all("vision" in stage.by_part for stage in first)


def test_positions_of_a_tower_were_cut_over_the_ranks_until_0_13() -> None:
    vision = {**TOWER_SIZES, "image_size": 896}  # 4096 patches
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": llama(), "vision_config": vision}
    parts = [one(config, release, tensor_parallel_size=2).by_part["vision"] for release in ("0.13.0", "0.14.0")]
    assert parts[1] - parts[0] == 4096 * 64 * 2 // 2
