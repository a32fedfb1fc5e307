"""Factor diagnosis: a planted mistake is named, or listed among the few that give the same figure.

The planted figures are computed here by hand, not by the code under test.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import load_model_config
from vlogcheck.diagnose import (
    MISTAKES,
    Case,
    Diagnosis,
    diagnose_bytes_per_token,
    diagnose_concurrency,
    diagnose_ratio,
    diagnose_stated_bytes,
    diagnose_tokens,
    diagnose_weights,
)
from vlogcheck.diagnose.ratios import Parallel
from vlogcheck.expected import Setup
from vlogcheck.units import GIB, Interval

LENGTH = 4096


class Hand(NamedTuple):
    """The terms of a hand ledger of uniform attention."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    element: int
    tp: int
    pp: int

    def bytes(
        self, *, layers: Fraction | int | None = None, heads: Fraction | int | None = None, dim: int | None = None,
        element: int | None = None, both: int = 2,
    ) -> Fraction:  # fmt: skip
        held = max(1, self.kv_heads // self.tp) if heads is None else heads
        count = self.layers // self.pp if layers is None else layers
        return Fraction(both) * count * held * (dim or self.head_dim) * (element or self.element)


@st.composite
def hands(draw: st.DrawFn, key: str = "") -> Hand:
    """Ledgers in which the mistake changes something: copies need more ranks than heads, shares need several ranks."""
    kv_heads = draw(st.sampled_from([1, 2, 4] if key == "replication_forgotten" else [2, 4, 8, 16]))
    tp = draw(
        st.sampled_from([8, 16] if key == "replication_forgotten" else [2, 4, 8, 16] if key else [1, 2, 4, 8, 16])
    )
    staged = key in ("all_pipeline_stages", "pp_share_taken_twice", "whole_model")
    pp = draw(st.sampled_from([2, 3, 4] if staged else [1, 2, 3]))
    group = draw(st.sampled_from([2, 3, 4, 5, 7, 8, 16]))
    heads = kv_heads * group
    heads *= tp // gcd(heads, tp)
    dim, other = draw(st.sampled_from([(64, 80), (96, 64), (128, 64), (128, 80), (192, 128), (256, 100)]))
    return Hand(
        layers=pp * draw(st.integers(2, 40)), heads=heads, kv_heads=kv_heads, head_dim=dim, hidden=heads * other,
        element=draw(st.sampled_from([1, 2])), tp=tp, pp=pp,
    )  # fmt: skip


def case(hand: Hand, memory: Interval | None = None, **options: Any) -> Case:
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": hand.layers,
        "hidden_size": hand.hidden, "num_attention_heads": hand.heads, "num_key_value_heads": hand.kv_heads,
        "head_dim": hand.head_dim, "intermediate_size": 4 * hand.hidden, "vocab_size": 1000,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    }  # fmt: skip
    return case_of_config(
        config, memory, tensor_parallel_size=hand.tp, pipeline_parallel_size=hand.pp,
        kv_cache_dtype={1: "fp8", 2: "auto"}[hand.element], **options,
    )  # fmt: skip


def case_of_config(config: dict[str, Any], memory: Interval | None = None, **options: Any) -> Case:
    model = load_model_config(config)
    setup = Setup(model, ServeOptions(max_model_len=LENGTH, **options), "0.32.0", memory, {}, None, None, True)
    plan = setup.plan()
    assert plan.pool is not None
    assert plan.settings is not None
    return Case(setup, model, plan.settings, plan.pool.layers, () if memory is None else (memory,))


PLANTS = {
    "bytes_per_element": lambda h: h.bytes(element=4),
    "kv_counted_once": lambda h: h.bytes(both=1),
    "attention_heads": lambda h: h.bytes(heads=max(1, h.heads // h.tp)),
    "tp_share_not_taken": lambda h: h.bytes(heads=h.kv_heads),
    "tp_share_taken_twice": lambda h: h.bytes() / h.tp,
    "replication_forgotten": lambda h: h.bytes(heads=Fraction(h.kv_heads, h.tp)) if h.tp > h.kv_heads else h.bytes(),
    "all_pipeline_stages": lambda h: h.bytes(layers=h.layers),
    "pp_share_taken_twice": lambda h: h.bytes() / h.pp,
    "whole_model": lambda h: h.bytes(layers=h.layers, heads=h.kv_heads) if h.pp > 1 and h.tp > 1 else h.bytes(),
    "head_dim_from_hidden": lambda h: h.bytes(dim=h.hidden // h.heads),
    "gb_for_gib": lambda h: h.bytes() * 1000 / 1024,
}


def named(diagnosis: Diagnosis, key: str) -> None:
    """Named alone, or listed among three candidates at most, in words."""
    assert key in diagnosis.keys
    assert len(diagnosis.candidates) <= 3
    told = [found.text for found in diagnosis.readings if found.key == key]
    assert any(text in diagnosis.text for text in told)
    assert diagnosis.text.startswith("explained" if diagnosis.unique else "ambiguous")


@pytest.mark.parametrize("key", PLANTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_planted_mistake_in_bytes_per_token_is_named(key: str, data: st.DataObject) -> None:
    hand = data.draw(hands(key))
    planted, right = PLANTS[key](hand), hand.bytes()
    assume(planted != right)
    found = case(hand)
    named(diagnose_bytes_per_token(found, (planted, planted)), key)


@settings(max_examples=60, deadline=None)
@given(gib=st.integers(300, 900), key=st.sampled_from(sorted(set(PLANTS) - {"gb_for_gib"})), data=st.data())
def test_a_planted_mistake_in_tokens_is_named(gib: int, key: str, data: st.DataObject) -> None:
    hand = data.draw(hands(key))
    planted, right = PLANTS[key](hand), hand.bytes()
    assume(planted != right)
    memory = Interval(gib * GIB // 10, gib * GIB // 10 + GIB // 100)
    blocks = [int(end // (planted * 16)) for end in memory]
    assume(blocks[0] > LENGTH // 16)
    tokens = int(blocks[0] / (LENGTH // 16) * LENGTH), int(blocks[1] / (LENGTH // 16) * LENGTH)
    named(diagnose_tokens(case(hand, memory), tokens, LENGTH), key)
    requests = Fraction(blocks[0], LENGTH // 16), Fraction(blocks[1], LENGTH // 16)
    named(diagnose_concurrency(case(hand, memory), requests, LENGTH), key)


@settings(max_examples=40, deadline=None)
@given(hand=hands())
def test_the_right_figure_needs_no_explanation(hand: Hand) -> None:
    right = hand.bytes()
    for candidate in diagnose_bytes_per_token(case(hand), (right, right)).readings:
        raise AssertionError(candidate)


@settings(max_examples=30, deadline=None)
@given(hand=hands())
def test_what_no_single_mistake_gives_is_unexplained(hand: Hand) -> None:
    odd = hand.bytes() * Fraction(1013, 1009)
    assert diagnose_bytes_per_token(case(hand), (odd, odd)).text.startswith("unexplained")


WHOLE = {
    "bytes_per_element": lambda h: h.bytes(layers=h.layers, heads=h.kv_heads, element=4),
    "kv_counted_once": lambda h: h.bytes(layers=h.layers, heads=h.kv_heads, both=1),
    "attention_heads": lambda h: h.bytes(layers=h.layers, heads=h.heads),
    "head_dim_from_hidden": lambda h: h.bytes(layers=h.layers, heads=h.kv_heads, dim=h.hidden // h.heads),
}


@pytest.mark.parametrize("key", WHOLE)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_mistake_in_the_whole_models_figure_is_named(key: str, data: st.DataObject) -> None:
    hand = data.draw(hands(key))
    planted = WHOLE[key](hand)
    named(diagnose_stated_bytes(case(hand), (planted, planted)), key)


OSS = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128, "vocab_size": 1000,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16", "intermediate_size": 2880, "num_local_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip
LATENT = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 1000, "max_position_embeddings": 163840,
    "torch_dtype": "bfloat16",
}  # fmt: skip
STATES = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "num_hidden_layers": 48,
    "full_attention_interval": 4, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "intermediate_size": 5120, "vocab_size": 1000,
    "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_sliding_layers_counted_as_full_attention() -> None:
    memory = Interval(40 * GIB, 40 * GIB + GIB // 100)
    found = case_of_config(OSS, memory)
    page = 2 * 8 * 64 * 2 * 16 * 24
    tokens = memory.lo // page * 16, memory.hi // page * 16
    assert diagnose_tokens(found, tokens, LENGTH).keys == ("local_layers_as_full",)


@pytest.mark.parametrize(
    ("key", "planted"),
    [
        ("latent_as_k_and_v", 2 * 27 * 576 * 2),
        ("latent_as_full_attention", 27 * 2 * 16 * 192 * 2),
        ("latent_divided", 27 * 576 * 2 // 4),
    ],
)
def test_latent_attention_counted_as_something_else(key: str, planted: int) -> None:
    tp = {"latent_divided": 4}.get(key, 1)
    found = case_of_config(LATENT, tensor_parallel_size=tp)
    named(diagnose_bytes_per_token(found, (planted, planted)), key)


def test_states_counted_as_full_attention() -> None:
    planted = 2 * 48 * 2 * 256 * 2
    assert diagnose_bytes_per_token(case_of_config(STATES), (planted, planted)).keys == ("states_as_full_attention",)


def test_a_drafter_forgotten() -> None:
    config = {**LATENT, "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
              "num_nextn_predict_layers": 1}  # fmt: skip
    found = case_of_config(config, speculative_config={"method": "mtp", "num_speculative_tokens": 1})
    planted = 27 * 576 * 2
    assert diagnose_bytes_per_token(found, (planted, planted)).keys == ("drafter_forgotten",)


def test_whole_blocks_left_out() -> None:
    hand = Hand(28, 16, 8, 128, 1024, 2, 1, 1)
    size = 40 * GIB + 12345
    tokens = size // (28 * 2 * 8 * 128 * 2)
    assert tokens % 16
    found = case(hand, Interval.exactly(size))
    assert diagnose_tokens(found, (tokens, tokens), LENGTH).keys == ("block_rounding",)


def test_all_engines_taken_for_one() -> None:
    hand = Hand(28, 16, 8, 128, 1024, 2, 1, 1)
    size = 40 * GIB
    tokens = size // (28 * 2 * 8 * 128 * 2 * 16) * 16 * 3
    found = case(hand, Interval.exactly(size), data_parallel_size=3)
    assert "all_engines" in diagnose_tokens(found, (tokens, tokens), LENGTH).keys


RATIOS = {
    "tp_share_not_taken": lambda tp, pp: Fraction(tp),
    "tp_share_taken_twice": lambda tp, pp: Fraction(1, tp),
    "all_pipeline_stages": lambda tp, pp: Fraction(pp),
    "pp_share_taken_twice": lambda tp, pp: Fraction(1, pp),
    "whole_model": lambda tp, pp: Fraction(tp * pp),
    "bytes_per_element": lambda tp, pp: Fraction(2),
    "bytes_per_element_4": lambda tp, pp: Fraction(4),
    "bytes_per_element_quarter": lambda tp, pp: Fraction(1, 4),
    "kv_counted_once": lambda tp, pp: Fraction(1, 2),
    "attention_heads": lambda tp, pp: Fraction(8),
    "gb_for_gib": lambda tp, pp: Fraction(1024, 1000),
    "gb_for_gib_inverse": lambda tp, pp: Fraction(1000, 1024),
}


@pytest.mark.parametrize("key", RATIOS)
@settings(max_examples=20, deadline=None)
@given(
    size=st.integers(1 << 10, 1 << 20), tp=st.sampled_from([2, 4, 8, 16]), pp=st.sampled_from([2, 3, 4]),
    width=st.sampled_from([1, 10, 200]),
)  # fmt: skip
def test_without_a_configuration_the_ratio_names_it(key: str, size: int, tp: int, pp: int, width: int) -> None:
    told = size * RATIOS[key](tp, pp)
    seen = Fraction(size) * Fraction(10**4 - width, 10**4), Fraction(size) * Fraction(10**4 + width, 10**4)
    named(diagnose_ratio((told, told), seen, Parallel(tp, pp)), key)


def test_weights() -> None:
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_hidden_layers": 64, "hidden_size": 5120,
        "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 27648, "vocab_size": 152064,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    }  # fmt: skip
    setup = Setup(
        load_model_config(config), ServeOptions(max_model_len=LENGTH, tensor_parallel_size=4), "0.13.0", None, {}, None,
        None, True,
    )  # fmt: skip
    whole = int(61.05 * GIB)
    assert diagnose_weights(setup, Interval.exactly(whole)).keys == ("tp_share_not_taken",)
    assert diagnose_weights(setup, Interval.exactly(int(15.4155 * GIB) // 4)).keys == ("tp_share_taken_twice",)
    assert diagnose_weights(setup, Interval.exactly(int(30.83 * GIB))).keys == ("bytes_per_element",)


def test_the_registry_says_what_each_mistake_is() -> None:
    for key, mistake in MISTAKES.items():
        assert mistake.key == key
        assert mistake.summary
