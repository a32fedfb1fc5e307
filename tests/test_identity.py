"""Engine banners and server arguments: every field that is printed is read, whatever stands around it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck._literals import read_arguments, read_config, read_literal
from vlogcheck.records import EngineConfig, EngineDump, ServedModel, ServerArgs, ServerVersion
from vlogcheck.scan import parse_lines

if TYPE_CHECKING:
    from vlogcheck.template import Record

PREFIX = "INFO 03-01 10:00:00 [core.py:58] "

V0 = (
    "Initializing an LLM engine (v0.6.1) with config: model='org/model-7b', speculative_config=None,"
    " tokenizer='org/model-7b', skip_tokenizer_init=False, tokenizer_mode=auto, revision=None, rope_scaling=None,"
    " trust_remote_code=True, dtype=torch.float16, max_seq_len=32768, download_dir=None,"
    " load_format=LoadFormat.AUTO, tensor_parallel_size=4, pipeline_parallel_size=2, disable_custom_all_reduce=False,"
    " quantization=awq, enforce_eager=True, kv_cache_dtype=fp8_e5m2, quantization_param_path=None, device_config=cuda,"
    " decoding_config=DecodingConfig(guided_decoding_backend='outlines'),"
    " observability_config=ObservabilityConfig(otlp_traces_endpoint=None, collect_model_execute_time=False), seed=0,"
    " served_model_name=org/model-7b, use_v2_block_manager=False, num_scheduler_steps=1,"
    " enable_prefix_caching=False, use_async_output_proc=True)"
)
V1 = (
    "Initializing a V1 LLM engine (v0.23.1rc1.dev12+gabcdef0.d20260101) with config: model='/models/x, y=(z)',"
    " speculative_config=SpeculativeConfig(method='mtp', model=None, num_spec_tokens=1), tokenizer='/models/x',"
    " dtype=torch.bfloat16, max_seq_len=131072, download_dir=None, tensor_parallel_size=8, pipeline_parallel_size=1,"
    " data_parallel_size=2, decode_context_parallel_size=4, disable_custom_all_reduce=False,"
    " quantization=compressed-tensors, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda,"
    " structured_outputs_config=StructuredOutputsConfig(backend='auto', reasoning_parser=''), seed=0,"
    " enable_prefix_caching=True, enable_chunked_prefill=True, pooler_config=None,"
    " compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'cudagraph_mode':"
    " <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'custom_ops': ['+quant_fp8', 'none'], 'inductor_passes': {},"
    " 'dynamic_shapes_config': {'type': <DynamicShapesType.BACKED: 'backed'>}, 'local_cache_dir': None}"
)


def one(message: str, kind: type[Record]) -> Record:
    records = list(parse_lines([PREFIX + message]))
    assert [type(record) for record in records] == [kind], message
    json.dumps(records[0].to_dict(), allow_nan=False)
    return records[0]


def engine(message: str) -> EngineConfig:
    record = one(message, EngineConfig)
    assert isinstance(record, EngineConfig)
    return record


def arguments(message: str) -> dict[str, object]:
    record = one(message, ServerArgs)
    assert isinstance(record, ServerArgs)
    assert isinstance(record.args, dict)
    return record.args


def test_a_v0_banner_ends_with_a_bracket_nobody_opened() -> None:
    banner = engine(V0)
    assert (banner.version, banner.engine_generation, banner.model) == ("0.6.1", None, "org/model-7b")
    assert (banner.dtype, banner.kv_cache_dtype, banner.quantization) == ("float16", "fp8_e5m2", "awq")
    assert (banner.max_model_len, banner.enforce_eager, banner.enable_prefix_caching) == (32768, True, False)
    assert (banner.tensor_parallel_size, banner.pipeline_parallel_size, banner.data_parallel_size) == (4, 2, None)
    assert banner.config["use_async_output_proc"] is True
    assert banner.config["seed"] == 0
    assert banner.config["decoding_config"] == {"guided_decoding_backend": "outlines"}
    assert engine(V0.removesuffix(")") + ", mm_processor_kwargs=None)").config["mm_processor_kwargs"] is None


def test_a_v1_banner_holds_objects_and_quoted_brackets() -> None:
    banner = engine(V1)
    assert banner.version == "0.23.1rc1.dev12+gabcdef0.d20260101"
    assert (banner.engine_generation, banner.model) == ("V1", "/models/x, y=(z)")
    assert (banner.dtype, banner.kv_cache_dtype, banner.quantization) == ("bfloat16", "auto", "compressed-tensors")
    assert (banner.max_model_len, banner.enforce_eager, banner.enable_prefix_caching) == (131072, False, True)
    assert (banner.tensor_parallel_size, banner.pipeline_parallel_size, banner.data_parallel_size) == (8, 1, 2)
    assert (banner.decode_context_parallel_size, banner.enable_chunked_prefill, banner.device) == (4, True, "cuda")
    assert banner.speculative_config == {"method": "mtp", "model": None, "num_spec_tokens": 1}
    compilation = banner.config["compilation_config"]
    assert compilation["mode"] == "<CompilationMode.VLLM_COMPILE: 3>"
    assert compilation["custom_ops"] == ["+quant_fp8", "none"]
    assert compilation["dynamic_shapes_config"] == {"type": "<DynamicShapesType.BACKED: 'backed'>"}
    assert compilation["local_cache_dir"] is None


def test_a_banner_without_a_version_or_quotes() -> None:
    banner = engine(
        "Initializing an LLM engine with config: model=/data/bob's/llama, tokenizer=/data/bob's/llama,"
        " dtype=torch.float16, max_seq_len=4096, load_format=auto, tensor_parallel_size=2, quantization=None, seed=0)"
    )
    assert (banner.version, banner.model, banner.max_model_len) == (None, "/data/bob's/llama", 4096)
    assert (banner.tensor_parallel_size, banner.quantization, banner.config["seed"]) == (2, None, 0)


def test_a_banner_that_is_the_repr_of_the_configuration() -> None:
    banner = engine(
        "Initializing an LLM engine (v0.6.4) with config: VllmConfig(model_config=ModelConfig(model='m',"
        " dtype=torch.bfloat16, max_model_len=8192, enforce_eager=True), cache_config=CacheConfig(cache_dtype='fp8',"
        " enable_prefix_caching=True), parallel_config=ParallelConfig(pipeline_parallel_size=1,"
        " tensor_parallel_size=2), load_config=<vllm.config.LoadConfig object at 0x7f00>)"
    )
    assert (banner.model, banner.dtype, banner.max_model_len) == ("m", "bfloat16", 8192)
    assert (banner.kv_cache_dtype, banner.enforce_eager, banner.enable_prefix_caching) == ("fp8", True, True)
    assert (banner.tensor_parallel_size, banner.pipeline_parallel_size) == (2, 1)


@pytest.mark.parametrize("banner", [V0, V1])
@given(data=st.data())
def test_a_banner_cut_anywhere_keeps_what_stands_before(banner: str, data: st.DataObject) -> None:
    full = engine(banner)
    cut = data.draw(st.integers(banner.index("max_seq_len"), len(banner)))
    part = engine(banner[:cut].rstrip() + ", ")
    assert (part.model, part.dtype, part.version) == (full.model, full.dtype, full.version)
    if cut > banner.index("kv_cache_dtype"):
        assert part.max_model_len == full.max_model_len
        assert part.tensor_parallel_size == full.tensor_parallel_size
        assert part.quantization == full.quantization


def test_a_crash_dump_is_not_another_engine() -> None:
    for start in ("Dumping input data for V1 LLM engine", "V1 LLM engine"):
        record = one(start + " (v0.12.0) with config: model='m', max_seq_len=4096, seed=0, ", EngineDump)
        assert isinstance(record, EngineDump)
        assert record.config == {"model": "m", "max_seq_len": 4096, "seed": 0}


def test_arguments_of_a_namespace() -> None:
    args = arguments(
        "args: Namespace(host=None, port=8000, allowed_origins=['*'], lora_modules=[LoRAModulePath(name='a,b',"
        " path='/x', base_model_name=None)], config_format=<ConfigFormat.AUTO: 'auto'>, gpu_memory_utilization=0.95,"
        " compilation_config=CompilationConfig(level=3, inner=Namespace(x=(1, 2))), swap_space=4,"
        " middleware=[], dispatch_function=<function serve at 0x7f8a>, model='m', max_model_len=4096)"
    )
    assert args["host"] is None
    assert args["allowed_origins"] == ["*"]
    assert args["lora_modules"] == [{"name": "a,b", "path": "/x", "base_model_name": None}]
    assert args["config_format"] == "<ConfigFormat.AUTO: 'auto'>"
    assert (args["gpu_memory_utilization"], args["swap_space"], args["middleware"]) == (0.95, 4, [])
    assert args["compilation_config"] == {"level": 3, "inner": {"x": (1, 2)}}
    assert args["dispatch_function"] == "<function serve at 0x7f8a>"
    assert (args["model"], args["max_model_len"]) == ("m", 4096)


def test_a_model_given_as_a_path() -> None:
    found = engine(
        "Initializing an LLM engine with config: model=PosixPath('/runs/a-1/merged'), max_seq_len=4096, seed=0)"
    )
    assert (found.model, found.max_model_len) == ("/runs/a-1/merged", 4096)


def test_arguments_of_a_dict() -> None:
    args = arguments(
        "non-default args: {'model_tag': 'm', 'api_key': '***', 'max_model_len': 4096,"
        " 'load_format': <LoadFormat.DUMMY: 'dummy'>,"
        " 'compilation_config': {'mode': <CompilationMode.NONE: 0>, 'sizes': [1, 2]}, 'x': float('inf'),"
        " 'hf_overrides': {0: 'a', 'b': PosixPath('/x')}, 'tags': {'p', 'q'}}"
    )
    assert (args["model_tag"], args["max_model_len"]) == ("m", 4096)
    assert args["load_format"] == "<LoadFormat.DUMMY: 'dummy'>"
    assert args["compilation_config"] == {"mode": "<CompilationMode.NONE: 0>", "sizes": [1, 2]}
    assert args["hf_overrides"] == {"0": "a", "b": "PosixPath('/x')"}
    assert args["tags"] == "{'p', 'q'}"
    assert arguments("non-default args: {}") == {}


@pytest.mark.parametrize(
    "text",
    ["args: Namespace(model='m', tensor_parallel_size=1", "non-default args: {'model': 'm', 'tensor_parallel_size': 1"],
)
def test_the_last_argument_of_a_cut_line_is_in_doubt(text: str) -> None:
    assert arguments(text) == {"model": "m"}


@pytest.mark.parametrize("text", ["args: {positions: %l_positions_, q: %view_3}})", "args: foo", "args: ()"])
def test_what_only_begins_like_arguments_is_not_recognised(text: str) -> None:
    assert list(parse_lines([PREFIX + text])) == []


def test_versions_and_the_logo() -> None:
    logo = [
        "       █     █     █▄   ▄█",
        " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.15.1",
        "  █▄█▀ █     █     █     █  model   org/model 7b",
    ]
    version, model = parse_lines([PREFIX + line for line in logo])
    assert isinstance(version, ServerVersion)
    assert isinstance(model, ServedModel)
    assert (version.version, model.model) == ("0.15.1", "org/model 7b")
    plain = one("vLLM server version 0.20.2, serving model org/model-7b", ServerVersion)
    assert isinstance(plain, ServerVersion)
    assert (plain.version, plain.model) == ("0.20.2", "org/model-7b")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab_", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), PLAIN, min_size=1, max_size=5))
def test_what_python_prints_is_read_back(values: dict[str, object]) -> None:
    words = ", ".join(f"{key}={value!r}" for key, value in values.items())
    assert read_literal(repr(values)) == values
    assert read_arguments(repr(values)) == values
    assert read_arguments(f"Namespace({words})") == values
    assert read_config(words) == values
    assert read_config(words + ")") == values
    broken = {**values, "odd": "\N{SNOWMAN}"}
    assert read_literal(repr(broken).replace("'\N{SNOWMAN}'", "<odd object at 0x1>")) == {
        **values, "odd": "<odd object at 0x1>",
    }  # fmt: skip


@given(st.text("{}[]()<>=:,'\"\\ a1.", max_size=60))
def test_any_text_is_read_into_something_json_holds(text: str) -> None:
    for value in (read_literal(text), read_config(text), read_arguments(text)):
        json.dumps(value, allow_nan=False)
