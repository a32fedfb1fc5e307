from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck.budget.flags import FlagError, ServeOptions, options_from_mapping, parse_serve_flags


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("--tensor-parallel-size 4", "tensor_parallel_size", 4),
        ("--tensor_parallel_size=4", "tensor_parallel_size", 4),
        ("-tp 4", "tensor_parallel_size", 4),
        ("-tp=4", "tensor_parallel_size", 4),
        ("-pp 2", "pipeline_parallel_size", 2),
        ("-dp 2", "data_parallel_size", 2),
        ("-dcp 8", "decode_context_parallel_size", 8),
        ("-pcp 2", "prefill_context_parallel_size", 2),
        ("--max-model-len 32768", "max_model_len", 32768),
        ("--max-model-len 32k", "max_model_len", 32000),
        ("--max-model-len 32K", "max_model_len", 32768),
        ("--max-model-len 25.6k", "max_model_len", 25600),
        ("--max-model-len 1m", "max_model_len", 1_000_000),
        ("--max-model-len -1", "max_model_len", -1),
        ("--max-model-len auto", "max_model_len", -1),
        ("--kv-cache-memory-bytes 80G", "kv_cache_memory_bytes", 80 << 30),
        ("--kv-cache-memory 1.5g", "kv_cache_memory_bytes", 1_500_000_000),
        ("--kv-cache-memory-bytes 2GiB", "kv_cache_memory_bytes", 2 << 30),
        ("--gpu-memory-utilization 0.85", "gpu_memory_utilization", 0.85),
        ("--kv-cache-dtype fp8", "kv_cache_dtype", "fp8"),
        ("--enforce-eager", "enforce_eager", True),
        ("--no-enable-prefix-caching", "enable_prefix_caching", False),
        ("--enable-prefix-caching", "enable_prefix_caching", True),
        ("--enable_prefix_caching=false", "enable_prefix_caching", False),
        ("--disable-hybrid-kv-cache-manager", "disable_hybrid_kv_cache_manager", True),
        ("--no-disable-hybrid-kv-cache-manager", "disable_hybrid_kv_cache_manager", False),
        ("-q awq", "quantization", "awq"),
        ("--swap-space 8", "swap_space_gib", 8.0),
        ("-O3 some/model", "model", "some/model"),
        ("-O3", "compilation_config", {"mode": 3}),
        ("--served-model-name a b c --block-size 32", "block_size", 32),
        ("meta-llama/Llama-3.1-8B", "model", "meta-llama/Llama-3.1-8B"),
        ("vllm serve some/model --port 8000", "model", "some/model"),
    ],
)
def test_one_flag(words: str, field: str, value: object) -> None:
    assert getattr(parse_serve_flags(words.split()), field) == value


def test_json_and_dotted_json() -> None:
    whole = parse_serve_flags(["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}'])
    dotted = parse_serve_flags(["--speculative-config.method", "mtp", "--speculative-config.num_speculative_tokens=2"])
    short = parse_serve_flags(["-sc.method", "mtp", "-sc.num-speculative-tokens", "2"])
    assert whole.speculative_config == {"method": "mtp", "num_speculative_tokens": 2}
    assert dotted == whole == short
    both = parse_serve_flags(
        ["--speculative-config", '{"method": "mtp"}', "--speculative-config.num_speculative_tokens", "2"]
    )
    assert both == whole


def test_unknown_flags_are_kept_and_named() -> None:
    options = parse_serve_flags(["--some-new-flag", "7", "--other-new", "--port=8000", "-tp", "2"])
    assert options.tensor_parallel_size == 2
    assert dict(options.unused) == {"some_new_flag": "7", "other_new": True, "port": "8000"}


@pytest.mark.parametrize(
    "words",
    [
        ["--max-model-len", "many"], ["--max-model-len", "0"], ["--max-model-len", "-5"], ["--max-model-len", "1.5"],
        ["--max-model-len", "1.5K"], ["--max-model-len", "9" * 50], ["-tp"], ["-tp", "0"], ["-tp", "two"],
        ["--gpu-memory-utilization", "1.5"], ["--gpu-memory-utilization", "nan"], ["--gpu-memory-utilization", "inf"],
        ["--speculative-config", "{"], ["--speculative-config", "[1]"], ["--enforce-eager=perhaps"],
        ["--block-size", "-16"], ["--kv-cache-dtype"], ["--speculative-config", "[" * 100_000],
    ],
)  # fmt: skip
def test_a_bad_value_of_a_known_flag_is_an_error_that_names_it(words: list[str]) -> None:
    name = {"-tp": "-t"}.get(words[0], words[0].split("=")[0])
    with pytest.raises(FlagError, match=name):
        parse_serve_flags(words)


def test_typed_values_of_a_log() -> None:
    options = options_from_mapping(
        {"model_tag": "m", "max_model_len": 4096, "tensor_parallel_size": 2, "gpu_memory_utilization": 0.9,
         "enable_prefix_caching": None, "port": 80, "max_num_seqs": 16.0}
    )  # fmt: skip
    assert options == ServeOptions(
        model="m", max_model_len=4096, tensor_parallel_size=2, gpu_memory_utilization=0.9, max_num_seqs=16,
        unused=options.unused,
    )  # fmt: skip
    assert dict(options.unused) == {"port": 80}


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_words_give_options_or_a_flag_error(words: list[str]) -> None:
    with suppress(FlagError):
        parse_serve_flags(words)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([name for name in ServeOptions.__dataclass_fields__ if name != "unused"]) | st.text(max_size=8)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_mapping_gives_options_or_a_flag_error(given_values: dict[str, object]) -> None:
    with suppress(FlagError):
        options_from_mapping(given_values)
