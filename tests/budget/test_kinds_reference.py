"""Pools of models no log of the fixtures shows.

Every expected figure was made by vLLM 0.32.0's own classes: the model built on the meta device, its layers asked for
their specs, the engine's planner given the bytes (a faked H100, no kernel run).
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.budget import _configs
from vlogcheck.budget.flags import parse_serve_flags
from vlogcheck.budget.model import ModelConfigError, load_model_config
from vlogcheck.budget.plan import KVPlan, plan

GIB = 1 << 30

_DECODER, _LATENT, _QWEN3_NEXT = _configs.DECODER, _configs.LATENT, _configs.QWEN3_NEXT
_DEEPSEEK_V32, _GEMMA4 = _configs.DEEPSEEK_V32, _configs.GEMMA4

_MIMO_V2 = {
    **_DECODER, "architectures": ["MiMoV2FlashForCausalLM"], "model_type": "mimo_v2_flash", "head_dim": 192,
    "v_head_dim": 128, "swa_num_attention_heads": 16, "swa_num_key_value_heads": 8, "swa_head_dim": 192,
    "swa_v_head_dim": 128, "sliding_window": 128, "sliding_window_size": 128, "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
}  # fmt: skip
_AXK1 = {
    **_DECODER, **_LATENT, "architectures": ["AXK1ForCausalLM"], "model_type": "axk1", "num_hidden_layers": 61,
    "num_attention_heads": 64, "num_key_value_heads": 64, "hidden_size": 7168,
}  # fmt: skip
_HY_V4 = {
    **_DECODER, **_LATENT, "architectures": ["HYV4ForCausalLM"], "model_type": "hy_v4", "num_hidden_layers": 34,
    "num_attention_heads": 32, "num_key_value_heads": 32, "index_topk": 2048, "index_head_dim": 128,
    "indexer_types": ["full", *["full", "shared", "shared", "shared"] * 8, "full"],
}  # fmt: skip
_OLMO_HYBRID = {
    **_DECODER, "architectures": ["OlmoHybridForCausalLM"], "model_type": "olmo_hybrid", "hidden_size": 3840,
    "num_attention_heads": 30, "num_key_value_heads": 30, "num_hidden_layers": 32, "linear_num_key_heads": 30,
    "linear_num_value_heads": 30, "linear_key_head_dim": 96, "linear_value_head_dim": 192,
    "layer_types": [*["linear_attention"] * 3, "full_attention"] * 8,
}  # fmt: skip
_NEMOTRON_H = {
    **{key: value for key, value in _DECODER.items() if key != "num_hidden_layers"}, "hidden_size": 4096,
    "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "ssm_state_size": 128, "mamba_num_heads": 128, "mamba_head_dim": 64,
    "n_groups": 8, "conv_kernel": 4, "expand": 2, "mamba_ssm_cache_dtype": "float32",
    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
}  # fmt: skip
_STEP3 = {
    **_DECODER, "architectures": ["Step3TextForCausalLM"], "model_type": "step3_text", "num_attention_groups": 1,
    "head_dim": 256, "share_q_dim": 512,
}  # fmt: skip
_LONGCAT = {
    **_DECODER, **_LATENT, "architectures": ["LongcatFlashForCausalLM"], "model_type": "longcat_flash",
    "num_hidden_layers": None, "num_layers": 4, "num_attention_heads": 64,
}  # fmt: skip
_STEP3P5 = {
    **_DECODER, "architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", "num_attention_groups": 8,
    "num_attention_heads": 64, "num_key_value_heads": None, "head_dim": 128, "sliding_window": 512,
    "layer_types": ["full_attention", *["sliding_attention"] * 3, "full_attention", "sliding_attention"],
}  # fmt: skip
_RING = {
    **_DECODER, **_LATENT, "architectures": ["BailingMoeV2_5ForCausalLM"], "model_type": "bailing_hybrid",
    "num_hidden_layers": 10, "head_dim": 128, "layer_group_size": 5,
}  # fmt: skip
_LOOP_CODER = {
    **_DECODER, "architectures": ["IQuestLoopCoderForCausalLM"], "model_type": "iquestloopcoder", "head_dim": 128,
    "loop_num": 2, "loop_window_size": 64,
}  # fmt: skip
_FALCON = {
    "architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 4,
    "num_attention_heads": 71, "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False,
    "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
}  # fmt: skip
_FALCON_MAMBA = {
    "architectures": ["FalconMambaForCausalLM"], "model_type": "falcon_mamba", "hidden_size": 4096,
    "intermediate_size": 8192, "num_hidden_layers": 64, "state_size": 16, "conv_kernel": 4, "vocab_size": 65024,
    "torch_dtype": "bfloat16",
}  # fmt: skip
_JAMBA_MINI = {**_configs.JAMBA, "num_hidden_layers": 13}
_QWEN3 = {**_configs.QWEN3_06B, "num_hidden_layers": 8}
_QWEN3_WINDOW = {
    **_DECODER, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 64,
    "use_sliding_window": True, "sliding_window": 1024, "max_window_layers": 6,
}  # fmt: skip


def _planned(config: dict[str, Any], words: str, available: int, env: dict[str, str] | None = None) -> KVPlan:
    options = parse_serve_flags(shlex.split(words))
    return plan(load_model_config(config), options, release="0.32.0", available=available, env=env)


@pytest.mark.parametrize(
    ("config", "words", "available", "blocks", "tokens", "concurrency"),
    [
        (_MIMO_V2, "--max-model-len 8192", 20 * GIB, 131072, 837552, "102.24"),
        (_MIMO_V2, "--max-model-len 8192 -tp 8", 20 * GIB, 1048576, 5585133, "681.78"),
        (_MIMO_V2, "--max-model-len 8192 -pp 2", 20 * GIB, 262144, 1675104, "204.48"),
        (_MIMO_V2, "--max-model-len 8192 --kv-cache-dtype fp8", 20 * GIB, 262144, 1675104, "204.48"),
        (_MIMO_V2, "--max-model-len 8192 --disable-hybrid-kv-cache-manager", 20 * GIB, 52428, 838848, "102.40"),
        (_AXK1, "--max-model-len 32768", 40 * GIB, 38199, 611184, "18.65"),
        (_HY_V4, "--max-model-len 32768", 40 * GIB, 16575, 1060800, "32.37"),
        (_OLMO_HYBRID, "--max-model-len 32768", 40 * GIB, 4369, 344142, "10.50"),
        (_NEMOTRON_H, "--max-model-len 4096", 40 * GIB, 10082, 5899410, "1440.29"),
        (_STEP3, "--max-model-len 8192 -tp 4", 20 * GIB, 218453, 3495248, "426.67"),
        (_QWEN3_WINDOW, "--max-model-len 8192", 20 * GIB, 218453, 3495248, "426.67"),
        (
            _QWEN3, "--max-model-len 32768 --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 0 1", 3 * GIB, 4915,
            157280, "4.80",
        ),
    ],
)  # fmt: skip
def test_pools_of_other_kinds(
    config: dict[str, Any], words: str, available: int, blocks: int, tokens: int, concurrency: str
) -> None:
    found = _planned(config, words, available)
    assert (found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text) == (blocks, tokens, concurrency)


@pytest.mark.parametrize(
    ("config", "words", "blocks", "tokens", "concurrency"),
    [
        (_LONGCAT, "--max-model-len 32768 -tp 4", 145635, 2330160, "71.11"),
        (_STEP3P5, "--max-model-len 32768 -tp 2", 327680, 2579869, "78.73"),
        (_RING, "--max-model-len 32768 -tp 2", 36408, 8772186, "267.71"),
        (_LOOP_CODER, "--max-model-len 32768", 109226, 1163184, "35.50"),
    ],
)
def test_pools_of_0_28(config: dict[str, Any], words: str, blocks: int, tokens: int, concurrency: str) -> None:
    config = {key: value for key, value in config.items() if value is not None}
    options = parse_serve_flags(shlex.split(words))
    found = plan(load_model_config(config), options, release="0.28.0", available=20 * GIB)
    assert (found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text) == (blocks, tokens, concurrency)


@pytest.mark.parametrize(
    ("words", "release", "refused"),
    [
        ("-tp 8 -dcp 2", "0.28.0", False),
        ("-tp 8 -dcp 4", "0.28.0", True),  # two copies of each KV head
        ("-tp 4 -dcp 2", "0.28.0", True),  # no copies
        ("-tp 4 -dcp 2", "0.10.2", False),
        ("-tp 4 -dcp 3", "0.10.2", True),
    ],
)
def test_context_parallelism_needs_copies_of_the_heads(words: str, release: str, refused: bool) -> None:
    options = parse_serve_flags(shlex.split(f"--max-model-len 8192 {words}"))
    model = load_model_config({**_DECODER, "architectures": ["LlamaForCausalLM"], "model_type": "llama"})
    found = plan(model, options, release=release, available=GIB)
    assert (found.error is not None) == refused


def test_context_parallelism_does_not_go_with_a_window() -> None:
    config = {
        **_DECODER, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 1024,
        "num_key_value_heads": 1,
    }  # fmt: skip
    model = load_model_config(config)
    options = parse_serve_flags(shlex.split("--max-model-len 8192 -tp 2 -dcp 2"))
    found = plan(model, options, release="0.28.0", available=GIB)
    assert found.error is not None
    assert found.error.kind == "not_supported"


@pytest.mark.parametrize(
    ("words", "release", "refused"),
    [
        ("--block-size 8", "0.32.0", True),
        ("--block-size 48", "0.32.0", False),
        ("--kv-cache-dtype fp8_e5m2", "0.22.1", True),
        ("--kv-cache-dtype fp8_e4m3", "0.22.1", False),
    ],
)
def test_blocks_and_cache_types_no_backend_takes(words: str, release: str, refused: bool) -> None:
    config = {
        **_DECODER, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    options = parse_serve_flags(shlex.split(f"--max-model-len 8192 {words}"))
    assert (plan(load_model_config(config), options, release=release, available=GIB).error is not None) == refused


def test_rounds_over_the_layers_are_bounded() -> None:
    with pytest.raises(ModelConfigError, match="loop_num"):
        _planned({**_LOOP_CODER, "loop_num": 10**9}, "--max-model-len 4096", GIB)


def test_layers_that_follow_another_index_keep_none() -> None:
    specs = {(s.spec.page_size_bytes, s.count) for s in _planned(_HY_V4, "--max-model-len 4096", GIB).specs}
    assert specs == {(64 * 132, 10), (64 * 1152, 10), (64 * 1152, 24)}  # followers' latents are specs of their own


def test_a_stage_of_states_alone_is_not_padded() -> None:
    # eight layers on three stages: the first holds three gated delta nets and no attention
    found = _planned(
        _QWEN3_NEXT, "--max-model-len 4096 -pp 3", 8 * GIB, env={"VLLM_USE_V2_MODEL_RUNNER": "0"}
    )  # fmt: skip
    assert sorted((s.spec.kind, s.spec.block_size, s.spec.page_size_bytes, s.count) for s in found.specs) == [
        ("FullAttentionSpec", 544, 1114112, 2), ("MambaSpec", 16, 1097728, 3), ("MambaSpec", 544, 1114112, 3),
    ]  # fmt: skip
    assert (found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text) == (3855, 986880, "240.94")


def test_blocks_of_delta_nets_hold_whole_checkpoints_from_0_33() -> None:
    # multiples of 64 tokens and of the size asked for; a stage without a delta net is not bound to them
    sizes: list[set[tuple[str, int]]] = []
    for words, env in (("--block-size 48", {}), ("-pp 2", {"VLLM_PP_LAYER_PARTITION": "7,1"})):
        options = parse_serve_flags(shlex.split(f"--max-model-len 32768 {words}"))
        found = plan(load_model_config(_QWEN3_NEXT), options, release="0.33.0", available=GIB, env=env)
        sizes.append({(s.spec.kind, s.spec.block_size) for s in found.specs})
    assert sizes == [
        {("FullAttentionSpec", 576), ("MambaSpec", 576)},
        {("FullAttentionSpec", 576), ("MambaSpec", 576), ("FullAttentionSpec", 544)},
    ]


def test_a_list_of_skipped_layers_may_be_one_json_word() -> None:
    words = "--kv-cache-dtype-skip-layers"
    assert parse_serve_flags([words, '["0", "1"]']) == parse_serve_flags([words, "0", "1"])


@pytest.mark.parametrize(
    ("release", "page"),
    [("0.13.0", 1114112), ("0.17.0", 2162688), ("0.32.0", 2162688)],  # 0.13.0 and 0.32.0 asked, 0.17.0 read
)
def test_the_state_type_of_delta_nets_is_followed_from_0_17(release: str, page: int) -> None:
    options = parse_serve_flags(["--max-model-len", "32768", "--mamba-ssm-cache-dtype", "float32"])
    found = plan(load_model_config(_QWEN3_NEXT), options, release=release, available=GIB)
    assert {spec.spec.page_size_bytes for spec in found.specs} == {page}


@pytest.mark.parametrize(("release", "state"), [("0.16.0", 2), ("0.20.0", 4)])
def test_nemotron_h_that_names_no_state_type_keeps_16_bit_until_0_19(release: str, state: int) -> None:
    config = {key: value for key, value in _NEMOTRON_H.items() if key != "mamba_ssm_cache_dtype"}
    found = plan(
        load_model_config(config), parse_serve_flags(["--max-model-len", "4096"]), release=release, available=GIB
    )
    states = {spec.spec.content_bytes for spec in found.specs if spec.spec.kind == "MambaSpec"}
    assert states == {3 * (128 * 64 + 2 * 8 * 128) * 2 + 128 * 64 * 128 * state}


def test_unequal_pages_are_not_cut_to_the_stage_before_0_17() -> None:
    # DeepSeek-V3.2's latents and indexes: every stage's block was as large as the whole model's
    config = {
        **_DECODER, **_LATENT, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
        "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 16, "index_topk": 2048,
        "index_head_dim": 128,
    }  # fmt: skip
    options = parse_serve_flags(["--max-model-len", "4096", "-pp", "2"])
    whole = 4 * 64 * (1152 + 132)
    for release, size in (("0.16.0", whole), ("0.18.1", whole // 2)):
        found = plan(load_model_config(config), options, release=release, available=GIB)
        assert found.num_blocks == GIB // size


def test_stages_that_group_unlike_could_not_start_until_0_10() -> None:
    # three full and two sliding layers, then two and three: groups of two layers, but not of the same kinds
    config = {
        **_DECODER, "architectures": ["CohereForCausalLM"], "model_type": "cohere2", "num_hidden_layers": 10,
        "sliding_window": 1024, "layer_types": ["full_attention", "sliding_attention"] * 5,
    }  # fmt: skip
    options = parse_serve_flags(["--max-model-len", "4096", "-pp", "2"])
    old = plan(load_model_config(config), options, release="0.10.2", available=GIB)
    assert old.error is not None
    assert old.error.kind == "not_supported"
    tight = plan(load_model_config(config), options, release="0.10.2", available=1 << 20)
    assert tight.error is not None
    assert tight.error.kind == "kv_cache_too_small"  # the memory is asked about first
    assert plan(load_model_config(config), options, release="0.11.2", available=GIB).error is None


def _figures(found: KVPlan) -> tuple[int | None, int | None, str | None]:
    return found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text


def test_sparse_latents_have_no_other_attention_from_0_29() -> None:
    found = _planned(_DEEPSEEK_V32, "--max-model-len 8192 -tp 4", 7 * GIB, env={"VLLM_MLA_DISABLE": "1"})
    assert _figures(found) == (22866, 1463424, "178.64")


@pytest.mark.parametrize(("release", "blocks"), [("0.32.0", 131072), ("0.10.2", 262144)])
def test_falcon_keeps_16_bit_whatever_the_cache_type(release: str, blocks: int) -> None:
    # its class does not hand the type on; until 0.11.0 the layers were not asked
    options = parse_serve_flags(["--max-model-len", "2048", "--kv-cache-dtype", "fp8"])
    found = plan(load_model_config(_FALCON), options, release=release, available=2 * GIB)
    assert found.num_blocks == blocks


def test_tokens_of_a_pure_state_model_were_counted_in_blocks_of_the_flag() -> None:
    options = parse_serve_flags(["--max-model-len", "2048", "-tp", "4"])
    found = plan(load_model_config(_FALCON_MAMBA), options, release="0.10.2", available=12934 * 64 * 77824)
    assert _figures(found) == (12934, 206944, "12934.00")


def test_mamba_1_keeps_every_state_in_chunks_of_2048_tokens() -> None:
    options = parse_serve_flags(
        shlex.split("--max-model-len 32768 -tp 4 --mamba-cache-mode all --enable-prefix-caching")
    )
    found = plan(load_model_config(_JAMBA_MINI), options, release="0.22.1", available=GIB)
    assert {(spec.spec.block_size, spec.spec.page_size_bytes) for spec in found.specs} == {(2048, 2097152)}


@pytest.mark.parametrize(("release", "kind"), [("0.22.1", "TQFullAttentionSpec"), ("0.28.0", "FullAttentionSpec")])
def test_packed_layers_had_a_spec_class_of_their_own(release: str, kind: str) -> None:
    config = {**_DECODER, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "head_dim": 128}
    options = parse_serve_flags(["--max-model-len", "8192", "--kv-cache-dtype", "turboquant_4bit_nc"])
    found = plan(load_model_config(config), options, release=release, available=GIB)
    pages = {(spec.spec.kind, spec.count) for spec in found.specs}
    assert pages == {("FullAttentionSpec", 4), (kind, 2)}


def test_the_last_layer_of_gemma_4_does_not_slide() -> None:
    config = {
        **_GEMMA4, "num_hidden_layers": 4, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention"] * 4,
    }  # fmt: skip
    found = _planned(config, "--max-model-len 4096", GIB)
    assert {(spec.spec.kind, spec.count) for spec in found.specs} == {
        ("SlidingWindowSpec", 3),
        ("FullAttentionSpec", 1),
    }


def test_kimi_k2_was_ordinary_attention_before_0_10() -> None:
    config = {**_AXK1, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2"}
    options = parse_serve_flags(["--max-model-len", "4096", "-tp", "4"])
    pages = {
        release: plan(load_model_config(config), options, release=release, available=GIB).specs[0].spec.page_size_bytes
        for release in ("0.8.5.post1", "0.10.0")
    }
    assert pages == {"0.8.5.post1": 196608, "0.10.0": 73728}


@pytest.mark.parametrize(
    ("architecture", "kind", "key"),
    [("Gemma3TextModel", "gemma3_text", "use_bidirectional_attention"), ("Qwen2Model", "qwen2", "is_causal")],
)
def test_embedding_models_that_look_both_ways_keep_nothing(architecture: str, kind: str, key: str) -> None:
    config = {**_DECODER, "architectures": [architecture], "model_type": kind, "sliding_window": 512}
    kept = {value: _planned({**config, key: value}, "--max-model-len 2048", GIB).num_blocks for value in (True, False)}
    nothing = key != "is_causal"
    assert kept[nothing] == 1
    assert kept[not nothing] != 1


def test_what_is_not_modelled_is_said() -> None:
    llama = {**_DECODER, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    packed = _planned(llama, "--max-model-len 4096 --kv-cache-dtype turboquant_4bit_nc -pp 2", GIB)
    assert packed.unknown is not None
    kimi = {
        **_DECODER, **_LATENT, "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear",
        "linear_attn_config": {"kda_layers": [1, 2, 3], "num_heads": 16, "head_dim": 128},
    }  # fmt: skip
    assert _planned(kimi, "--max-model-len 4096", GIB).unknown is None
    assert _planned(kimi, "--max-model-len 4096", GIB, env={"VLLM_MLA_DISABLE": "1"}).unknown is not None


@pytest.mark.parametrize(("release", "sliding"), [("0.26.0", 33792), ("0.28.0", 17408)])  # 0.26.0 asked, 0.28.0 read
def test_windows_took_the_bytes_of_8_bit_for_int4_until_0_27(release: str, sliding: int) -> None:
    config = {
        **_DECODER, "architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "head_dim": 128,
        "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_pattern": 4, "num_hidden_layers": 12,
    }  # fmt: skip
    options = parse_serve_flags(["--max-model-len", "2048", "--kv-cache-dtype", "int4_per_token_head"])
    found = plan(load_model_config(config), options, release=release, available=GIB)
    assert {(spec.spec.kind, spec.spec.page_size_bytes, spec.count) for spec in found.specs} == {
        ("FullAttentionSpec", 17408, 3), ("SlidingWindowSpec", sliding, 9),
    }  # fmt: skip


_GPT_OSS = {**_configs.GPT_OSS_20B, "num_hidden_layers": 7}


@pytest.mark.parametrize(
    ("release", "kind"),
    [("0.22.1", "FullAttentionSpec"), ("0.24.0", "UniformTypeKVCacheSpecs"), ("0.28.0", "FullAttentionSpec")],
)
def test_windows_kept_as_full_were_not_merged_until_0_26(release: str, kind: str) -> None:
    words = ["--max-model-len", "4096", "--disable-hybrid-kv-cache-manager"]
    found = plan(
        load_model_config(_configs.GPT_OSS_20B), parse_serve_flags(words), release=release, available=GIB
    )  # fmt: skip
    assert [(group.kind, len(group.layers)) for group in found.groups] == [(kind, 24)]


def test_a_length_of_its_own_overrides_the_others() -> None:
    config = {
        **_DECODER, "architectures": ["CohereForCausalLM"], "model_type": "cohere", "max_position_embeddings": 8192,
        "model_max_length": 131072,
    }  # fmt: skip
    assert _planned(config, "", GIB).max_model_len == 131072
    older = {**config, "model_type": "phi3", "original_max_position_embeddings": 4096, "rope_scaling": {"type": "su"}}
    assert _planned({**older, "model_max_length": None}, "", GIB).max_model_len == 4096


@pytest.mark.parametrize(("release", "page"), [("0.28.0", 2), ("0.32.0", 1)])  # read; 0.16.0 asked for another size
def test_mimo_v2_kept_16_bit_whatever_the_cache_type_until_0_31(release: str, page: int) -> None:
    options = parse_serve_flags(["--max-model-len", "8192", "--kv-cache-dtype", "fp8"])
    found = plan(load_model_config(_MIMO_V2), options, release=release, available=GIB)
    assert {(spec.spec.kind, spec.spec.page_size_bytes) for spec in found.specs} == {
        ("FullAttentionSpec", 16 * 4 * 320 * page), ("SlidingWindowSpec", 16 * 8 * 320 * page),
    }  # fmt: skip
