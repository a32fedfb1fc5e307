"""Figures known from public logs and from the rules' own examples, and properties that hold for every model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import _configs
from vlogcheck.budget.flags import ServeOptions, parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import KVPlan, plan
from vlogcheck.units import Interval

GIB = 1 << 30


def planned(config: dict[str, Any], words: str = "", release: str | None = "0.32.0", **more: Any) -> KVPlan:
    return plan(load_model_config(config), parse_serve_flags(words.split()), release=release, **more)


def test_tokens_of_the_newest_rule_depend_on_the_length() -> None:
    found = planned(_configs.QWEN3_06B, "--max-model-len 1000", available=12345678901)
    assert (found.num_blocks, found.kv_cache_tokens) == (6727, 106777)
    older = planned(_configs.QWEN3_06B, "--max-model-len 1000", "0.13.0", available=12345678901)
    assert (older.num_blocks, older.kv_cache_tokens) == (6727, 6727 * 16)


def test_a_window_in_every_layer_prints_more_tokens_than_there_are() -> None:
    found = planned(_configs.MISTRAL_7B_V01, "--max-model-len 32768", available=59055800320)
    assert [(s.spec.kind, s.count) for s in found.specs] == [("SlidingWindowSpec", 32)]
    assert found.num_blocks is not None
    assert (found.num_blocks * 16, found.kv_cache_tokens) == (450560, 720333)


def test_half_of_the_layers_sliding() -> None:
    older = planned(_configs.GPT_OSS_20B, "--max-model-len 131072", "0.13.0", available=61418032332)
    newer = planned(_configs.GPT_OSS_20B, "--max-model-len 131072", "0.32.0", available=61418032332)
    assert (older.kv_cache_tokens, newer.kv_cache_tokens) == (1249552, 2219258)
    flat = planned(
        _configs.GPT_OSS_20B, "--max-model-len 131072 --disable-hybrid-kv-cache-manager", available=61418032332
    )
    assert (len(flat.groups), flat.num_blocks) == (1, 78097)


def test_hybrid_block_size_of_a_public_log() -> None:
    found = planned(_configs.QWEN35_35B, "--max-model-len 262144", "0.24.0")
    full = next(s.spec for s in found.specs if s.spec.kind == "FullAttentionSpec")
    state = next(s.spec for s in found.specs if s.spec.kind == "MambaSpec")
    assert full.block_size == 1056
    assert f"{100 * (state.page_size_bytes - state.content_bytes) / state.content_bytes:.2f}" == "0.76"


def test_latents_are_not_shared_out_and_can_be_switched_off() -> None:
    one = planned(_configs.DEEPSEEK_V2_LITE, "-tp 1", available=41553808588)
    four = planned(_configs.DEEPSEEK_V2_LITE, "-tp 4", available=41553808588)
    assert one.num_blocks == four.num_blocks == 83497
    off = planned(_configs.DEEPSEEK_V2_LITE, available=41553808588, env={"VLLM_MLA_DISABLE": "1"})
    assert [(s.spec.kind, s.spec.head_size, s.spec.num_kv_heads) for s in off.specs] == [("FullAttentionSpec", 192, 16)]


def test_heads_are_replicated_beyond_their_number() -> None:
    pages = [planned(_configs.QWEN25_7B, f"-tp {tp}").specs[0].spec.page_size_bytes for tp in (1, 2, 4)]
    assert pages == [32768, 16384, 8192]
    assert planned(_configs.QWEN3_06B, "-tp 16").specs[0].spec.page_size_bytes == 8192


@pytest.mark.parametrize(
    ("layers", "ranks", "partition", "expected"),
    [(36, 3, None, [12, 12, 12]), (28, 3, None, [9, 10, 9]), (28, 2, "20,8", [20, 8]),
     (61, 8, None, [7, 7, 8, 8, 8, 8, 8, 7])],
)  # fmt: skip
def test_pipeline_stages(layers: int, ranks: int, partition: str | None, expected: list[int]) -> None:
    config = {**_configs.QWEN3_06B, "num_hidden_layers": layers}
    env = {"VLLM_PP_LAYER_PARTITION": partition} if partition else {}
    found = planned(config, f"-pp {ranks}", env=env)
    assert found.pool is not None
    assert [len(rank) for rank in found.pool.ranks] == expected


def test_the_tightest_stage_decides() -> None:
    found = planned(_configs.QWEN3_06B, "-tp 2 -pp 2 --max-model-len 32768", available=[64531883622, 64102386892])
    assert (found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text) == (139732, 2235712, "68.23")


def test_the_null_block_is_held_back_from_0_29() -> None:
    exact = 2048 * 28 * 65536
    words = "--max-model-len 32768"
    assert planned(_configs.QWEN3_06B, words, "0.28.0", available=exact).num_blocks == 2048
    refused = planned(_configs.QWEN3_06B, words, "0.30.0", available=exact)
    assert refused.error is not None
    assert refused.error.estimated_max_model_len == 32752
    assert planned(_configs.QWEN3_06B, words, "0.30.0", available=exact + 28 * 65536).num_blocks == 2049


@pytest.mark.parametrize(
    ("release", "needed", "estimate"),
    [("0.8.5.post1", "3.50", None), ("0.10.2", "3.50", 9360), ("0.16.0", "3.5", 9360), ("0.32.0", "3.5", 9344)],
)
def test_refusals_have_the_release_s_own_figures(release: str, needed: str, estimate: int | None) -> None:
    error = planned(_configs.QWEN3_06B, "--max-model-len 32768", release, available=GIB).error
    assert error is not None
    assert (error.kind, error.needed_gib, error.estimated_max_model_len) == ("kv_cache_too_small", needed, estimate)
    none = planned(_configs.QWEN3_06B, "", release, available=-5).error
    assert none is not None
    assert none.kind == "no_kv_cache_memory"


def test_the_length_is_fitted_when_asked() -> None:
    found = planned(_configs.QWEN3_06B, "--max-model-len -1", available=GIB)
    assert (found.error, found.max_model_len) == (None, 9344)
    fits = planned(_configs.QWEN3_06B, "--max-model-len auto", available=60 * GIB)
    assert fits.max_model_len == 40960


def test_overriding_the_number_of_blocks() -> None:
    words = "--num-gpu-blocks-override 4096 --max-model-len 32768"
    for release in ("0.8.5", "0.9.2", "0.13.0", "0.32.0"):
        assert planned(_configs.QWEN3_06B, words, release, available=60 * GIB).num_blocks == 4096
    assert planned(_configs.QWEN3_06B, words, "0.9.1", available=60 * GIB).num_blocks == 60 * GIB // (28 * 65536)
    assert planned(_configs.QWEN3_06B, words).num_blocks == 4096


def test_bytes_given_on_the_command_line() -> None:
    assert planned(_configs.QWEN3_06B, "--kv-cache-memory-bytes 8G").num_blocks == 8 * GIB // (28 * 65536)


def test_the_v0_engine() -> None:
    found = planned(_configs.QWEN25_7B, "", "0.6.6.post1", available=45 * GIB)
    block = 2 * 16 * 4 * 128 * 2 * 28
    assert found.num_blocks == 45 * GIB // block
    assert found.cpu_blocks == 4681  # what this model's public logs print
    refused = planned(_configs.QWEN25_7B, "", "0.6.6.post1", available=GIB)
    assert refused.error is not None
    assert "maximum number of tokens that can be stored" in refused.error.message


def test_drafters_add_their_layers() -> None:
    mtp = {**_configs.DEEPSEEK_V2_LITE, "num_nextn_predict_layers": 1, "model_type": "deepseek_v3"}
    found = planned(mtp, "-sc.method mtp -sc.num_speculative_tokens 1")
    assert [s.count for s in found.specs] == [28]
    drafter = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 1, "num_attention_heads": 16,
               "num_key_value_heads": 2, "architectures": ["LlamaForCausalLMEagle3"]}  # fmt: skip
    eagle = plan(
        load_model_config(_configs.QWEN3_06B),
        ServeOptions(speculative_config={"method": "eagle3", "model": drafter, "num_speculative_tokens": 3}),
        release="0.32.0", available=8 * GIB,
    )  # fmt: skip
    assert [(s.count, s.spec.num_kv_heads, s.spec.head_size) for s in eagle.specs] == [(28, 8, 128), (1, 2, 64)]
    assert eagle.num_blocks == 8 * GIB // (28 * 65536 + 2 * 16 * 2 * 64 * 2)
    ngram = planned(_configs.QWEN3_06B, "-sc.method ngram -sc.num_speculative_tokens 4")
    assert [s.count for s in ngram.specs] == [28]
    missing = planned(
        _configs.QWEN3_06B, "-sc.method draft_model -sc.model nowhere/at-all -sc.num_speculative_tokens 4"
    )
    assert missing.unknown is not None


def test_unknown_architectures_are_not_guessed() -> None:
    odd = {**_configs.QWEN3_06B, "model_type": "something_new", "architectures": ["SomethingNew"]}
    plain = planned(odd, available=8 * GIB)
    assert plain.num_blocks == 8 * GIB // (28 * 65536)
    assert any("not known by name" in note for note in plain.assumptions)
    exotic = planned({**odd, "kv_lora_rank": 512}, available=8 * GIB)
    assert exotic.unknown is not None
    assert exotic.num_blocks is None
    assert exotic.unknown.checkable
    assert planned({**odd, "num_attention_heads": None}).unknown is not None


@pytest.mark.parametrize(
    "release",
    ["0.11.2.dev690+g67475a6e8", "0.1.dev1", None, "", "nightly", "0.99.0", "0.10.1.1", "v0.20.2", "0.8.5.post1"],
)
def test_any_version_has_rules(release: str | None) -> None:
    found = planned(_configs.QWEN3_06B, "--max-model-len 4096", release, available=8 * GIB)
    assert found.num_blocks == 8 * GIB // (28 * 65536)
    labelled = any("rules of" in note for note in found.assumptions)
    assert labelled == (release not in {"0.10.1.1", "v0.20.2", "0.8.5.post1"})


CONFIGS = [v for k, v in sorted(vars(_configs).items()) if isinstance(v, dict) and k.isupper()]
RELEASES = ["0.6.6", "0.8.5", "0.9.2", "0.10.2", "0.13.0", "0.16.0", "0.18.1", "0.22.1", "0.26.0", "0.30.0", "0.33.0"]


@settings(deadline=None)
@given(
    config=st.sampled_from(CONFIGS),
    release=st.sampled_from(RELEASES),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 3]),
    low=st.integers(GIB, 100 * GIB),
    more=st.integers(0, 10 * GIB),
)
def test_more_bytes_never_give_less_and_blocks_fit(
    config: dict[str, Any], release: str, tp: int, pp: int, low: int, more: int
) -> None:
    words = f"-tp {tp} -pp {pp} --max-model-len 4096"
    small, large = (planned(config, words, release, available=size) for size in (low, low + more))
    if small.unknown is not None or small.error is not None:
        return
    assert small.num_blocks is not None
    assert large.num_blocks is not None
    assert small.kv_cache_tokens is not None
    assert large.kv_cache_tokens is not None
    assert small.num_blocks <= large.num_blocks
    assert small.kv_cache_tokens <= large.kv_cache_tokens
    assert small.pool is not None
    for rank in range(pp):
        assert small.num_blocks * small.pool.bytes_per_block(rank) <= low
    both = planned(config, words, release, available=Interval(low, low + more))
    assert both.blocks_interval == Interval(small.num_blocks, large.num_blocks)
    lengths = [1, 100, 1000, 4096]
    needs = [small.blocks_per_request(length) or 0 for length in lengths]
    assert needs == sorted(needs)
    assert all(small.concurrency_at(length) for length in lengths)


@pytest.mark.parametrize(("tp", "said"), [(3, "attention heads"), (5, "attention heads")])
def test_heads_that_cannot_be_split_are_refused(tp: int, said: str) -> None:
    error = planned(_configs.QWEN3_06B, f"-tp {tp}", available=8 * GIB).error
    assert error is not None
    assert error.kind == "not_supported"
    assert said in error.message


def test_overrides_of_the_configuration() -> None:
    found = planned(_configs.QWEN3_06B, '--hf-overrides {"num_hidden_layers":14}')
    assert [s.count for s in found.specs] == [14]
    nested = plan(
        load_model_config(_configs.QWEN35_35B),
        ServeOptions(hf_overrides={"text_config": {"num_hidden_layers": 8}}),
        release="0.32.0",
    )
    assert [s.count for s in nested.specs] == [6, 2]


def test_a_length_beyond_the_model_s_own_is_noted() -> None:
    found = planned(_configs.QWEN3_06B, "--max-model-len 100000", available=60 * GIB)
    assert any("VLLM_ALLOW_LONG_MAX_MODEL_LEN" in note for note in found.assumptions)
