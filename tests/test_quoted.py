"""Messages quoted in documents and in source code: what stands around them there is no part of them."""

from __future__ import annotations

import pytest

from vlogcheck.api import check
from vlogcheck.records import (
    DeviceBlocks,
    FreeMemoryTooLow,
    KVCacheCapacity,
    KVCacheMemory,
    KVCacheTooSmall,
    MaxConcurrency,
    NoKVCacheMemory,
    Ready,
    ServerStarting,
    WeightsLoaded,
)
from vlogcheck.scan import parse_lines
from vlogcheck.template import Record


def read(*lines: str) -> list[Record]:
    return list(parse_lines(lines))


@pytest.mark.parametrize(
    "head", ["INFO: ", "INFO ... ", "INFO … ", "INFO [...] ", "INFO: [...] ", "INFO ... gpu_worker.py] ", "DEBUG: "]
)
def test_level_is_all_that_is_left_of_a_prefix(head: str) -> None:
    (record,) = read(f"{head}Available KV cache memory: 6.5 GiB")
    assert isinstance(record, KVCacheMemory)
    assert record.gib == 6.5


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("end", [",", "", ")", "\\n,"])
def test_string_in_source_code(quote: str, end: str) -> None:
    newline, end = ("\\n", ",") if end.startswith("\\n") else ("", end)
    records = read(
        f"    {quote}(EngineCore pid=7) INFO 03-04 05:06:07 [kv_cache_utils.py:9] GPU KV cache size: 4,096 tokens"
        f"{newline}{quote}{end}",
        f"    {quote}INFO:     Application startup complete.{newline}{quote}{end}",
    )
    assert [type(record) for record in records] == [KVCacheCapacity, Ready]


def test_source_line_of_a_traceback_is_no_message() -> None:
    assert not read('    "No available memory for the cache blocks. "', '    f"GPU KV cache size: 4,096 tokens",')


@pytest.mark.parametrize("remark", ["   # see above", "  // 40 s", "   ← this one", "  -- second try"])
def test_remark_behind_a_message(remark: str) -> None:
    (record,) = read(f"(EngineCore pid=7) INFO [kv_cache_utils.py:9] GPU KV cache size: 4,096 tokens{remark}")
    assert isinstance(record, KVCacheCapacity)
    assert record.tokens == 4096


def test_second_number_is_no_remark() -> None:
    assert not read("INFO 03-04 05:06:07 [executor_base.py:9] # cuda blocks: 512  # cpu blocks: 128")


def test_multiplication_sign() -> None:
    (record,) = read("INFO: Maximum concurrency for 4,096 tokens per request: 3.25×")
    assert isinstance(record, MaxConcurrency)
    assert record.max_concurrency == 3.25


def test_web_server_in_a_log_put_into_one_line() -> None:
    records = read(
        "It prints INFO 03-04 05:06:07 llm_engine.py:9] # GPU blocks: 512, # CPU blocks: 128 INFO: Started server process [3]"
        " INFO: Waiting for application startup. INFO: Application startup complete. ``` What now?"
    )
    assert [type(record) for record in records if isinstance(record, (DeviceBlocks, Ready))] == [DeviceBlocks]
    records = read(
        "It prints INFO 03-04 05:06:07 llm_engine.py:9] # GPU blocks: 512, # CPU blocks: 128 INFO: Started server process [3]"
        " INFO: Application startup complete. INFO: Uvicorn running on http://localhost:5000 (Press CTRL+C to quit)"
    )
    assert [type(record) for record in records if isinstance(record, (DeviceBlocks, Ready))] == [DeviceBlocks, Ready]
    *_, blocks, ready = read(
        "``` (EngineCore_DP0 pid=7) INFO 03-04 05:06:07 [a.py:9] Hello (EngineCore_DP0 pid=7) INFO 03-04 05:06:07 [a.py:9]"
        ' # GPU blocks: 512, # CPU blocks: 128 (APIServer pid=3) INFO: 10.0.0.7:58068 - "POST /sleep HTTP/1.1" 200 OK'
        " (APIServer pid=3) INFO: Application startup complete. ```"
    )
    assert (type(blocks), blocks.process) == (DeviceBlocks, "EngineCore_DP0")
    assert (type(ready), ready.process) == (Ready, "APIServer")


@pytest.mark.parametrize(
    "behind",
    [
        " ``` ### What I want",
        " INFO 03-04 05:06:08 [kv_cache_utils.py:1...",
        " INFO 03-04 05:0…",
        " INFO 03-04 05:06:08 [kv_",
    ],
)
def test_end_of_a_log_put_into_one_line(behind: str) -> None:
    head = "``` INFO 03-04 05:06:07 [x.py:1] Hello INFO 03-04 05:06:07 [kv_cache_utils.py:9] "
    records = read(f"{head}GPU KV cache size: 4,096 tokens{behind}")
    assert [record.tokens for record in records if isinstance(record, KVCacheCapacity)] == [4096]


@pytest.mark.parametrize("cut", ["", ".", " ...", "`.", " …)"])
def test_end_of_a_refusal_left_out(cut: str) -> None:
    (record,) = read(
        "> `ValueError: Free memory on device cuda:0 (3.5/15.75 GiB) on startup is less",
        f"> than desired GPU memory utilization (0.9, 14.18 GiB){cut}",
        "",
    )
    assert isinstance(record, FreeMemoryTooLow)
    assert (record.free_gib, record.requested_gib) == (3.5, 14.18)


def test_refusal_without_its_advice() -> None:
    (record,) = read("ValueError: No available memory for the cache blocks", "```")
    assert isinstance(record, NoKVCacheMemory)


@pytest.mark.parametrize("bracket", ["(", ""])
def test_needed_memory_with_and_without_a_bracket(bracket: str) -> None:
    (record,) = read(
        f"ValueError: To serve at least one request with the model's max seq len (8192), {bracket}2.5 GiB KV cache is needed,",
        "which is larger than the available KV cache memory (1.25 GiB). Based on the available memory, the estimated maximum",
        "model length is 4096.",
        "",
    )
    assert isinstance(record, KVCacheTooSmall)
    assert (record.max_model_len, record.needed_gib, record.available_gib) == (8192, 2.5, 1.25)
    assert record.estimated_max_model_len == 4096


def test_colours_as_a_system_log_writes_them() -> None:
    (record,) = read(
        "#033[1;36m(VllmWorkerProcess pid=24)#033[0;0m INFO 03-04 05:06:07 model_runner.py:9] Loading model weights took 2.5 GB"
    )
    assert isinstance(record, WeightsLoaded)
    assert record.process == "VllmWorkerProcess"


def test_value_of_indented_json() -> None:
    (record,) = read(
        r'    "logs": "INFO:     Started server process [3]\nINFO:     Application startup complete.\nINFO: x"'
    )
    assert isinstance(record, Ready)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("48:51", ("note", "the ranks differ in KV cache size: the smallest counts")),
        ("52:10", ("warning", "one process prints 2 values of KV cache size")),
    ],
)
def test_ranks_of_an_unknown_release_print_at_one_moment(second: str, told: tuple[str, str]) -> None:
    log = (
        "(EngineCore_DP1 pid=77) INFO 10-29 15:48:51 [kv_cache_utils.py:1087] GPU KV cache size: 222,592 tokens\n"
        f"(EngineCore_DP1 pid=77) INFO 10-29 15:{second} [kv_cache_utils.py:1087] GPU KV cache size: 237,184 tokens\n"
    )
    found = [f for f in check(log.encode()).findings if f.code == "VL006"]
    assert [(f.severity.value, f.message) for f in found if f.severity] == [told]


def test_an_address_ends_before_what_source_code_has_behind_it() -> None:
    text = "INFO 07-01 10:00:09 [api_server.py:1971] Starting vLLM API server 0 on http://127.0.0.1:8123"
    (record,) = read(f"  '{text}',")
    assert isinstance(record, ServerStarting)
    assert (record.url, record.server) == ("http://127.0.0.1:8123", "0")
