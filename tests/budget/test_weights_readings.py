"""One set of weights, read in four places."""

from __future__ import annotations

import pytest

from tests.budget.test_weights_rules import llama
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.safetensors import CheckpointBytes, SafetensorsFile
from vlogcheck.budget.weights import estimate_weights, weight_readings

#: DeepSeek-R1-Distill-Qwen-32B, sizes from public knowledge.
QWEN_32B = llama(
    architectures=["Qwen2ForCausalLM"],
    model_type="qwen2",
    hidden_size=5120,
    intermediate_size=27648,
    num_hidden_layers=64,
    num_attention_heads=40,
    num_key_value_heads=8,
    head_dim=128,
    vocab_size=152064,
    max_position_embeddings=131072,
)


def test_32b_in_16_bit_on_four_cards() -> None:
    estimates = estimate_weights(load_model_config(QWEN_32B), ServeOptions(tensor_parallel_size=4), "0.11.2")
    found = weight_readings(estimates, 4)
    # the field's "15.4 GB" per card was GiB, and per card already
    assert found.largest_rank / 2**30 == pytest.approx(15.4155, abs=0.0001)
    gib, gb = found.labelled()["stage 0 per rank"]
    assert gb / gib == pytest.approx(2**30 / 1e9)
    assert round(found.labelled()["all ranks"][0], 1) == 61.7
    assert round(found.labelled()["all ranks"][1], 1) == 66.2


def test_32b_in_4_bit_on_two_cards_reads_nine_gib_per_card() -> None:
    config = {**QWEN_32B, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    estimates = estimate_weights(load_model_config(config), ServeOptions(tensor_parallel_size=2), "0.8.5.post1")
    found = weight_readings(estimates, 2)
    assert 9.0 < found.largest_rank / 2**30 < 9.3
    assert 18.0 < found.labelled()["all ranks"][0] < 18.6


def test_stages_and_checkpoint() -> None:
    options = ServeOptions(pipeline_parallel_size=3, tensor_parallel_size=2)
    estimates = estimate_weights(load_model_config(QWEN_32B), options, "0.11.2")
    file = SafetensorsFile("model.safetensors", 1100, 1000, 1, {"BF16": 1000})
    checkpoint = CheckpointBytes(files=(file,), tensor_bytes=1000, file_bytes=1100)
    found = weight_readings(estimates, 2, checkpoint)
    assert len(found.per_rank) == 3
    assert found.all_ranks == 2 * sum(found.per_rank)
    assert found.largest_rank == max(found.per_rank)
    assert (found.checkpoint_tensors, found.checkpoint_files) == (1000, 1100)
    assert weight_readings(estimates, 2, CheckpointBytes()).checkpoint_tensors is None
