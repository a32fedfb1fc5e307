"""Estimates against what servers printed and against checkpoints on disk."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import shared
from vlogcheck.budget._device import parse_device
from vlogcheck.budget.flags import options_from_mapping
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.weights import estimate_weights

LOADED = re.compile(r"(?:Loading model weights|Model loading) took (\d+(?:\.(\d+))?) G")
MARLIN_GPU = "NVIDIA GB10 (sm121)"

FP8_CHANNEL: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
        }
    },
}


def config(name: str, **changes: Any) -> dict[str, Any]:
    inner = json.loads(shared("oracle", "configs", f"{name}.json").read_text())["hf_config"]
    merged = {**inner, **changes}
    return {key: value for key, value in merged.items() if value is not None}


#: log, release, model, options, environment, GiB the estimate may miss (beyond the printed rounding)
LOGS: list[tuple[str, str, str, dict[str, Any], dict[str, Any], dict[str, str], float]] = [
    ("46bca075a5", "0.6.4.post1", "Llama-3.1-8B", {}, {"tensor_parallel_size": 2}, {}, 0.001),
    ("90dc541099", "0.6.3.post1", "Llama-3.1-8B", {}, {"pipeline_parallel_size": 4}, {}, 0.001),
    (
        "b68f536547",
        "0.11.2",
        "Llama-3.1-8B",
        {"max_position_embeddings": 8192, "rope_scaling": None},
        {},
        {},
        0.001,
    ),
    (
        "06993bbf4d",
        "0.13.0",
        "Llama-3.1-8B",
        {"max_position_embeddings": 8192, "rope_scaling": None},
        {"tensor_parallel_size": 4},
        {},
        0.001,
    ),
    ("dcc8cb9281", "0.5.5", "Mistral-7B-v0.3", {}, {}, {}, 0.001),
    (
        "811259b746",
        "0.13.0",
        "Qwen2.5-7B",
        {},
        {},
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        0.001,
    ),
    ("486db9a55a", "0.26.0", "Qwen3-30B-A3B", {"max_position_embeddings": 262144}, {}, {}, 0.001),
    ("060dd25f98", "0.11.0", "DeepSeek-R1-Distill-Qwen-32B", {"quantization_config": FP8_CHANNEL}, {}, {}, 0.02),
]


@pytest.mark.parametrize("row", LOGS, ids=lambda row: f"{row[0]}-{row[2]}")
def test_printed_weights(row: tuple[str, str, str, dict[str, Any], dict[str, Any], dict[str, str], float]) -> None:
    log, release, name, changes, options, env, slack = row
    text = shared("corpus", f"{log}.log").read_text(encoding="utf-8", errors="replace")
    printed = {(float(m[1]), len(m[2] or "")) for m in LOADED.finditer(text)}
    assert printed
    estimates = estimate_weights(
        load_model_config(config(name, **changes)), options_from_mapping(options), release, env
    )
    for value, digits in printed:
        near = min(estimates, key=lambda e: abs(e.allocated_bytes / 2**30 - value))
        assert abs(near.allocated_bytes / 2**30 - value) <= slack + 0.5 * 10**-digits
        assert near.low_bytes <= value * 2**30 <= near.high_bytes
    # every stage is seen in the log, none is invented
    for found in estimates:
        assert min(abs(found.allocated_bytes / 2**30 - value) for value, _ in printed) <= slack + 0.005


def test_marlin_pads_gpt_oss_on_small_blackwell() -> None:
    text = shared("corpus", "e74a47b0ff.log").read_text(encoding="utf-8", errors="replace")
    printed = float(next(LOADED.finditer(text))[1])
    found = estimate_weights(
        load_model_config(config("gpt-oss-20b")), options_from_mapping({}), "0.13.0", {}, parse_device(MARLIN_GPU)
    )[0]
    assert found.low_bytes <= printed * 2**30 <= found.high_bytes
    assert abs(found.allocated_bytes / 2**30 - printed) < 0.05


#: Elements vLLM keeps in float32 although the checkpoint stores them in 16 bits: state matrices of the small models.
WIDENED = {
    "falcon-h1-tiny": 2 * 8,
    "jamba-tiny": 3 * 256 * 16,
    "mamba-tiny": 2 * 256 * 16,
    "qwen3-next-tiny": 3 * 4,
}


def models() -> list[str]:
    return sorted(json.loads(shared("recorded", "models", "weights_bytes.json").read_text()))


@pytest.mark.parametrize("name", models())
def test_parameters_equal_the_checkpoint(name: str) -> None:
    folder = shared("recorded", "models")
    stored = json.loads((folder / "weights_bytes.json").read_text())[name]["tensor_bytes"]
    found = estimate_weights(load_model_config(folder / name), options_from_mapping({}), "0.32.0")[0]
    if name == "bert-embed-tiny":
        # the pooler (one square matrix, one bias) is not loaded, two token types are padded to 64 rows
        assert found.param_bytes == stored - 2 * (128 * 128 + 128) + 2 * 62 * 128
    else:
        assert found.param_bytes == stored + 2 * WIDENED.get(name, 0)
