"""Mistakes planted in the weights of random models: the diagnosis names them, or lists them among three candidates at most."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import check
from vlogcheck.budget._device import parse_device
from vlogcheck.budget.flags import options_from_mapping
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.weights import estimate_weights
from vlogcheck.diagnose import diagnose_weights
from vlogcheck.expect import Expectation
from vlogcheck.expected import Setup
from vlogcheck.units import GIB, Interval

QUANTISED = {
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic"},
}


@st.composite
def served(draw: st.DrawFn, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    tp = draw(st.sampled_from([2, 4, 8] if key.startswith("tp_") else [1, 2, 4, 8]))
    pp = draw(st.sampled_from([2, 4] if key == "all_pipeline_stages" else [1, 1, 2]))
    head, heads = draw(st.sampled_from([64, 128])), 8 * draw(st.integers(1, 8))
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_hidden_layers": pp * draw(st.integers(4, 20)),
        "hidden_size": heads * head, "num_attention_heads": heads, "num_key_value_heads": draw(st.sampled_from([8, heads])),
        "intermediate_size": 1024 * draw(st.integers(4, 28)), "vocab_size": draw(st.sampled_from([32000, 152064])),
        "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": draw(st.booleans()),
    }  # fmt: skip
    method = draw(st.sampled_from(["awq", "gptq", "fp8"] if key == "quantisation_not_applied" else [None, None, "fp8"]))
    if method is not None and key != "bytes_per_element":
        config["quantization_config"] = QUANTISED[method]
    return config, {"max_model_len": 4096, "tensor_parallel_size": tp, "pipeline_parallel_size": pp}


def setup(config: dict[str, Any], options: dict[str, Any]) -> Setup:
    return Setup(load_model_config(config), options_from_mapping(options), "0.13.0", None, {}, None, None, True)


def stages(config: dict[str, Any], options: dict[str, Any]) -> list[Fraction]:
    """Bytes of one rank of each stage: the middle of the estimate."""
    known = setup(config, options)
    found = estimate_weights(known.config, known.options, known.release, {}, parse_device(None, None))
    return [Fraction(stage.low_bytes + stage.high_bytes, 2) for stage in found]


PLANTS = {
    "tp_share_not_taken": lambda c, o: stages(c, {**o, "tensor_parallel_size": 1})[0],
    "tp_share_taken_twice": lambda c, o: stages(c, o)[0] / o["tensor_parallel_size"],
    "all_pipeline_stages": lambda c, o: sum(stages(c, o)),
    "quantisation_not_applied": lambda c, o: stages({k: v for k, v in c.items() if k != "quantization_config"}, o)[0],
    "bytes_per_element": lambda c, o: stages(c, {**o, "dtype": "float32"})[0],
    "gb_for_gib": lambda c, o: stages(c, o)[0] * 10**9 / GIB,
}


@pytest.mark.parametrize("key", PLANTS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_planted_mistake_in_the_weights_is_named(key: str, data: st.DataObject) -> None:
    config, options = data.draw(served(key))
    told = PLANTS[key](config, options)
    found = diagnose_weights(setup(config, options), Interval.exactly(int(told)))
    assert key in found.keys, found.text
    assert len(found.candidates) <= 3
    assert all(reading.text in found.text for reading in found.readings)


def test_a_figure_of_unquantised_weights_is_named_beside_a_log_of_quantised_ones() -> None:
    """The recomputed weights explain what no ratio of a hand figure does."""
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584,
        "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
        "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "quantization_config": QUANTISED["awq"],
    }  # fmt: skip
    quantised = stages(config, {"max_model_len": 4096})[0] / GIB
    log = (
        "INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.13.0) with config: model='m',"
        " dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1, quantization=awq\n"
        f"INFO 03-01 10:00:40 [gpu_model_runner.py:2392] Model loading took {float(quantised):.4f} GiB memory and 8.3 seconds\n"
    )
    finding = check(log.encode(), Expectation(weights="14.25GiB"), config, select=["VL201"]).findings[0]
    assert finding.explanation == "the weights are not quantised"
