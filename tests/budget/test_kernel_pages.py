"""Pools whose blocks follow the kernel of a card, and layers kept out of a quantised cache.

Figures were made by vLLM 0.32.0's own classes on a faked B200 or H100, as in test_kinds_reference.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.budget import _configs
from vlogcheck.budget.flags import parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import KVPlan, plan

GIB = 1 << 30

_DECODER, _QWEN3_NEXT, _GEMMA4 = _configs.DECODER, _configs.QWEN3_NEXT, _configs.GEMMA4
_DEEPSEEK_V32, _GLM_DSA = _configs.DEEPSEEK_V32, _configs.GLM_DSA
_WINDOWED = {**_configs.MISTRAL_7B_V01, "num_hidden_layers": 13}
_GPT_OSS = {**_configs.GPT_OSS_20B, "num_hidden_layers": 7}


def _planned(config: dict[str, Any], words: str, available: int) -> KVPlan:
    options = parse_serve_flags(shlex.split(words))
    return plan(load_model_config(config), options, release="0.32.0", available=available)


def _figures(found: KVPlan) -> tuple[int | None, int | None, str | None]:
    return found.num_blocks, found.kv_cache_tokens, found.max_concurrency_text


@pytest.mark.parametrize(
    ("config", "words", "available", "figures"),
    [
        # FlashInfer reads plain fp8 latents, not DeepSeek's own layout
        (_DEEPSEEK_V32, "--max-model-len 8192 --kv-cache-dtype fp8_e4m3", 314572800, (1735, 111040, "13.55")),
        # heads of 256 elements in pages of 128 tokens, those of 512 in any
        (_GEMMA4, "--max-model-len 16384 -tp 8 --no-async-scheduling", 2 * GIB, (4096, 74482, "4.55")),
    ],
)
def test_pools_on_blackwell(
    config: dict[str, Any], words: str, available: int, figures: tuple[int, int, str]
) -> None:  # fmt: skip
    options = parse_serve_flags(shlex.split(words))
    found = plan(load_model_config(config), options, release="0.32.0", available=available, device="NVIDIA B200")
    assert _figures(found) == figures


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("", {128}),
        ("--kv-cache-dtype fp8", {16}),
        ("--block-size 48", {48}),
        ("--attention-backend TRITON_ATTN", {16}),
    ],
)
def test_pages_of_128_tokens_are_one_kernel_s(words: str, sizes: set[int]) -> None:
    config = {**_DECODER, "architectures": ["GemmaForCausalLM"], "model_type": "gemma", "head_dim": 256}
    options = parse_serve_flags(shlex.split(f"--max-model-len 4096 {words}"))
    for card, expected in (("NVIDIA B200", sizes), ("NVIDIA H100", {48} if "48" in words else {16})):
        found = plan(load_model_config(config), options, release="0.32.0", available=GIB, device=card)
        assert {spec.spec.block_size for spec in found.specs} == expected
    capped = load_model_config({**config, "attn_logit_softcapping": 50.0})
    found = plan(capped, options, release="0.32.0", available=GIB, device="NVIDIA B200")
    assert {spec.spec.block_size for spec in found.specs} == ({48} if "48" in words else {16})


@pytest.mark.parametrize(
    ("card", "release", "latent"),
    [("NVIDIA B200", "0.32.0", 576), ("NVIDIA B200", "0.31.0", 1152), ("NVIDIA H100", "0.32.0", 1152)],
)
def test_glm_takes_fp8_on_blackwell_from_0_32(card: str, release: str, latent: int) -> None:
    options = parse_serve_flags(["--max-model-len", "8192"])
    found = plan(load_model_config(_GLM_DSA), options, release=release, available=GIB, device=card)
    assert {spec.spec.page_size_bytes for spec in found.specs} == {64 * 132, 64 * latent}


@pytest.mark.parametrize(
    ("release", "heads", "latent"),
    [("0.17.0", 16, 656), ("0.19.0", 16, 576), ("0.19.0", 32, 656), ("0.21.0", 32, 576)],  # read
)
def test_sparse_fp8_latents_on_blackwell(release: str, heads: int, latent: int) -> None:
    config = {**_DEEPSEEK_V32, "num_attention_heads": heads, "num_key_value_heads": heads}
    options = parse_serve_flags(["--max-model-len", "8192", "--kv-cache-dtype", "fp8"])
    found = plan(load_model_config(config), options, release=release, available=GIB, device="NVIDIA B200")
    assert {spec.spec.page_size_bytes for spec in found.specs} == {64 * 132, 64 * latent}


@pytest.mark.parametrize(
    ("words", "specs"),
    [
        ("", {("SlidingWindowSpec", 64, 65536, 20), ("FullAttentionSpec", 64, 131072, 4)}),
        ("--block-size 32", {("SlidingWindowSpec", 32, 32768, 20), ("FullAttentionSpec", 32, 65536, 4)}),
    ],
)
def test_hopper_reads_fp8_heads_of_512_elements_in_pages_of_64_tokens(
    words: str, specs: set[tuple[str, int, int, int]]
) -> None:
    found = _planned(_GEMMA4, f"--max-model-len 8192 --kv-cache-dtype fp8 {words}", GIB)
    shapes = {(s.spec.kind, s.spec.block_size, s.spec.page_size_bytes, s.count) for s in found.specs}
    assert shapes == specs


@pytest.mark.parametrize(
    ("config", "words", "figures"),
    [
        (_WINDOWED, "--kv-cache-dtype-skip-layers 3 7", (163840, 653127, "79.73")),
        (_QWEN3_NEXT, "--kv-cache-dtype-skip-layers 3 7 --block-size 32", (4818, 2819218, "344.14")),
        (_QWEN3_NEXT, "--kv-cache-dtype-skip-layers sliding_window -tp 2", (19562, 11446564, "1397.29")),
        (_GPT_OSS, "--kv-cache-dtype-skip-layers 2 3 5", (None, None, None)),  # vLLM fails an assertion
    ],
)
def test_layers_kept_out_of_an_fp8_cache(
    config: dict[str, Any], words: str, figures: tuple[int | None, int | None, str | None]
) -> None:
    found = _planned(config, f"--max-model-len 8192 --kv-cache-dtype fp8 {words}", 20 * GIB)
    assert found.unknown is None
    assert _figures(found) == figures
    assert (found.error is None) == (figures[0] is not None)


def test_layers_kept_out_of_a_plain_cache_are_like_others() -> None:
    found = _planned(_GPT_OSS, "--max-model-len 8192 --kv-cache-dtype-skip-layers 2 3", GIB)
    assert found.specs == _planned(_GPT_OSS, "--max-model-len 8192", GIB).specs


def test_layers_kept_out_are_unknown_where_not_modelled() -> None:
    for words, release in (("fp8", "0.25.1"), ("int8_per_token_head", "0.32.0")):
        options = parse_serve_flags(shlex.split(f"--kv-cache-dtype {words} --kv-cache-dtype-skip-layers 2"))
        assert plan(load_model_config(_GPT_OSS), options, release=release, available=GIB).unknown is not None


@pytest.mark.parametrize(
    ("card", "words", "block"),
    [
        ("NVIDIA H100", "", 576),
        ("NVIDIA H100", "--gdn-prefill-backend triton", 544),
        ("NVIDIA A100-SXM4-80GB", "", 544),
        ("NVIDIA L40S", "", 544),
    ],
)
def test_only_flashinfer_s_prefill_keeps_states_on_its_way(card: str, words: str, block: int) -> None:  # 0.33.0 read
    options = parse_serve_flags(shlex.split(f"--max-model-len 32768 {words}"))
    found = plan(load_model_config(_QWEN3_NEXT), options, release="0.33.0", available=20 * GIB, device=card)
    sizes = {spec.spec.block_size for spec in found.specs}
    assert sizes == {block}
    # three groups of states each keep two or three, beside the tokens
    assert found.blocks_per_request() == 3 * (3 if block == 576 else 2) + -(-32768 // block)


@pytest.mark.parametrize(("release", "page"), [("0.17.0", 294912), ("0.18.1", 278528)])  # 0.18.1 asked, 0.17.0 read
def test_states_on_blackwell_were_held_in_multiples_of_32_tokens_until_0_17(release: str, page: int) -> None:
    options = parse_serve_flags(["--max-model-len", "32768", "-tp", "4"])
    found = plan(load_model_config(_QWEN3_NEXT), options, release=release, available=GIB, device="NVIDIA B200")
    assert {spec.spec.page_size_bytes for spec in found.specs if spec.spec.kind == "MambaSpec"} == {page}
