from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import _configs
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfigError, load_model_config
from vlogcheck.budget.plan import plan
from vlogcheck.budget.releases import parse_release

if TYPE_CHECKING:
    from pathlib import Path


def test_file_directory_and_mapping_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(_configs.QWEN25_7B))
    for source in (file, str(file), tmp_path, _configs.QWEN25_7B):
        model = load_model_config(source)
        assert (model.num_layers, model.num_kv_heads, model.head_dim) == (28, 4, 128)
        assert model.architecture == "Qwen2ForCausalLM"


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "not JSON"), ("{", "not JSON"), ("[1]", "not a JSON object"), ("3", "not a JSON object"), ("{}", "empty"),
     ("[" * 200_000, "config.json"), ('{"num_hidden_layers": 1' + "0" * 5000 + "}", "config.json")],
)  # fmt: skip
def test_unreadable_files(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(ModelConfigError, match=said):
        load_model_config(file)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match="no model configuration"):
        load_model_config(tmp_path / "nowhere")
    with pytest.raises(ModelConfigError):
        load_model_config("a\0b")


@pytest.mark.parametrize("value", [-1, 0, float("nan"), float("inf"), 10**30, "28", [28], {}, True, 1.5])
def test_impossible_numbers(value: object) -> None:
    model = load_model_config({**_configs.QWEN3_06B, "num_hidden_layers": value})
    with pytest.raises(ModelConfigError, match="num_hidden_layers"):
        _ = model.num_layers


@pytest.mark.parametrize(
    ("extra", "heads"),
    [
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": False}, 1),
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
        ({"model_type": "gpt_bigcode", "multi_query": True}, 1),
        ({"model_type": "dbrx", "attn_config": {"kv_n_heads": 8}}, 8),
        ({"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 2}, 2),
        ({"num_key_value_heads": 4}, 4),
        ({"n_head_kv": 2}, 2),
        ({}, 32),
    ],
)
def test_spellings_of_kv_heads(extra: dict[str, Any], heads: int) -> None:
    base = {"model_type": "x", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32}
    assert load_model_config({**base, **extra}).num_kv_heads == heads


def test_spellings_of_sizes() -> None:
    gpt2 = load_model_config({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024})
    assert (gpt2.hidden_size, gpt2.num_layers, gpt2.head_dim, gpt2.derived_max_model_len) == (768, 12, 64, 1024)
    mpt = load_model_config({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "max_seq_len": 2048})
    assert (mpt.hidden_size, mpt.num_layers, mpt.num_kv_heads, mpt.derived_max_model_len) == (4096, 32, 32, 2048)


def test_nested_text_config_and_its_class_defaults() -> None:
    model = load_model_config(
        {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
         "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                         "sliding_window": 1024},
         "vision_config": {"hidden_size": 1152}}
    )  # fmt: skip
    assert model.is_nested
    assert (model.num_attention_heads, model.num_kv_heads, model.head_dim) == (8, 4, 256)
    assert "num_attention_heads" in model.filled
    assert any("num_attention_heads" in note for note in plan(model).assumptions)


def test_length_with_scaled_positions() -> None:
    yarn = {
        **_configs.QWEN25_7B,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    }
    model = load_model_config(yarn)
    assert model.default_max_model_len(parse_release("0.10.2")) == 131072
    assert model.default_max_model_len(parse_release("0.32.0")) == 32768
    linear = load_model_config({**_configs.QWEN25_7B, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert linear.default_max_model_len(parse_release("0.32.0")) == 65536
    llama3 = load_model_config({**_configs.QWEN25_7B, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})
    assert llama3.default_max_model_len(parse_release("0.32.0")) == 32768


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(
    base=st.sampled_from([v for k, v in sorted(vars(_configs).items()) if isinstance(v, dict) and k.isupper()]),
    changes=st.dictionaries(st.integers(0, 30), VALUES, max_size=3),
    release=st.sampled_from(["0.6.3", "0.8.5", "0.10.2", "0.14.1", "0.20.2", "0.30.0", "0.33.0", None]),
)
def test_any_value_under_any_key_gives_a_plan_or_a_config_error(
    base: dict[str, Any], changes: dict[int, object], release: str | None
) -> None:
    changed = json.loads(json.dumps(base))
    target = changed.get("text_config", changed)
    keys = sorted(target)
    for place, value in changes.items():
        target[keys[place % len(keys)]] = value
    with suppress(ModelConfigError):
        model = load_model_config(changed)
        plan(model, ServeOptions(max_model_len=4096), release=release, available=10 << 30)
