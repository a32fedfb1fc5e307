"""What blocks of host memory say of the V0 engine's ledger, where it prints no memory of the device."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import check
from vlogcheck.expect import Expectation
from vlogcheck.observed import EngineLedger
from vlogcheck.units import GIB

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


def log(blocks: int, cpu: int, swap: float | None = 4.0, extra: str = "", version: str = "0.5.5") -> bytes:
    args = "" if swap is None else f", swap_space={swap}"
    return (
        f"INFO 04-28 16:55:20 api_server.py:340] args: Namespace(model='m', block_size=16{args}{extra})\n"
        f"INFO 04-28 16:55:20 llm_engine.py:184] Initializing an LLM engine (v{version}) with config: model='m',"
        " dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, kv_cache_dtype=auto\n"
        "INFO 04-28 16:55:27 model_runner.py:890] Loading model weights took 13.5083 GB\n"
        f"INFO 04-28 16:55:29 gpu_executor.py:121] # GPU blocks: {blocks}, # CPU blocks: {cpu}\n"
    ).encode()


def engine(data: bytes, **stated: Any) -> EngineLedger:
    result = check(data, Expectation(**stated) if stated else None)
    return result.contexts[0].observation.engines[0]


@settings(max_examples=40, deadline=None)
@given(
    layers=st.integers(1, 96), heads=st.sampled_from([1, 2, 4, 8, 32]), dim=st.sampled_from([64, 96, 128]),
    swap=st.sampled_from([1.0, 4.0, 8.0, 0.5]), blocks=st.integers(100, 10**5),
)  # fmt: skip
def test_a_block_lies_between_its_bounds(layers: int, heads: int, dim: int, swap: float, blocks: int) -> None:
    block = 2 * 16 * layers * heads * dim * 2
    found = engine(log(blocks, int(swap * GIB) // block, swap), total_memory="79.1GiB")
    token, pool = found.ledger["kv_bytes_per_token"], found.ranks[0].ledger["kv_cache"]
    assert token.lo is not None
    assert token.hi is not None
    assert token.lo < block / 16 <= token.hi
    assert token.status == "derived"
    assert pool.lo is not None
    assert pool.hi is not None
    assert pool.lo <= blocks * block <= pool.hi


def test_the_default_swap_space_is_assumed() -> None:
    assert engine(log(10786, 2048, None)).ledger["kv_bytes_per_token"].status == "assumed"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (log(10786, 0), "nothing is swapped"),
        (log(10786, 2048, extra=", speculative_model='d'"), "a drafter takes part of the device's blocks"),
        (log(10786, 2048, version="0.11.0"), "the release has no V0 engine"),
    ],
)
def test_where_host_blocks_say_nothing(data: bytes, why: str) -> None:
    assert "kv_bytes_per_token" not in engine(data).ledger, why


def test_the_device_ledger_gets_what_the_blocks_take() -> None:
    """33.31 GiB requested, 13.51 of weights, 10,786 blocks of 2 MiB are 21.07: more than there is, so the total is wrong."""
    ledger = engine(log(8000, 2048, extra=", gpu_memory_utilization=0.75"), total_memory="44.42GiB").ranks[0].ledger
    rest = ledger["rest"]
    assert rest.origin == "non-torch memory and peak activation"
    assert rest.lo is not None
    assert rest.hi is not None
    assert rest.lo <= (33.315 - 13.5083 - 15.625) * GIB <= rest.hi
    set_by_hand = log(8000, 2048, extra=", gpu_memory_utilization=0.75, num_gpu_blocks_override=8000")
    assert "kv_cache" not in engine(set_by_hand, total_memory="44.42GiB").ranks[0].ledger


def test_bytes_per_token_are_held_against_the_configuration() -> None:
    right = check(log(10786, 2048), model=CONFIG, select=["VL304"])
    assert not right.findings
    half = {**CONFIG, "num_key_value_heads": 4}
    wrong = check(log(10786, 2048), model=half, select=["VL304"])
    assert [finding.code for finding in wrong.findings] == ["VL304"]
    assert "swap space" in wrong.findings[0].observed


def test_a_hand_figure_is_held_against_the_blocks() -> None:
    told = check(log(10786, 2048), Expectation(kv_bytes_per_token="64KiB"), select=["VL307"])
    assert [finding.code for finding in told.findings] == ["VL307"]
