"""The stable names of the JSON contract: other programs read them, so they may be joined by others and never change."""

from __future__ import annotations

import re

import pytest

from vlogcheck import check, parse_lines
from vlogcheck.schema import FindingModel, ReportModel
from vlogcheck.template import Record, all_records

COMMON = ["record", "line", "time", "level", "process", "pid", "rank", "source"]
CORE = {
    "EngineConfig": "version model dtype kv_cache_dtype max_model_len tensor_parallel_size pipeline_parallel_size"
    " data_parallel_size quantization enforce_eager enable_prefix_caching",
    "ServerArgs": "version args",
    "WeightsLoaded": "gib seconds unit_label",
    "WeightsRead": "seconds",
    "MemoryProfile": "total_gib gpu_memory_utilization requested_gib weights_gib non_torch_gib activation_gib kv_cache_gib",
    "MemoryUse": "weights_gib consumed_gib activation_gib non_torch_gib graphs_gib free_gib total_gib"
    " gpu_memory_utilization requested_gib suggested_bytes full_bytes kv_cache_gib",
    "KVCacheMemory": "gib",
    "DeviceBlocks": "device_blocks cpu_blocks device",
    "KVCacheCapacity": "tokens device max_model_len max_concurrency",
    "MaxConcurrency": "max_model_len max_concurrency",
    "GraphCapture": "seconds gib",
    "EngineInit": "seconds",
    "Ready": "",
    "FreeMemoryTooLow": "free_gib total_gib gpu_memory_utilization requested_gib",
    "KVCacheTooSmall": "max_model_len needed_gib available_gib estimated_max_model_len",
    "NoKVCacheMemory": "",
    "OutOfMemory": "tried_gib device total_gib free_gib",
    "EngineStats": "engine running waiting kv_cache_usage_percent",
}
UNITS = {"gib": "GiB", "bytes": "int", "tokens": "int", "percent": "float", "seconds": "float", "rank": "int"}


@pytest.mark.parametrize("name", CORE)
def test_core_records_keep_their_fields(name: str) -> None:
    assert set(CORE[name].split()) <= set(all_records()[name].field_names())


@pytest.mark.parametrize("record", all_records().values(), ids=lambda r: r.__name__)
def test_a_field_that_ends_in_a_unit_is_a_number(record: type[Record]) -> None:
    for field in record.field_names():
        unit = field.rpartition("_")[2]
        if unit in UNITS:
            kind = str(record._types[field]).replace(" | None", "")
            assert kind in (UNITS[unit], "int", "float", "Size"), f"{field}: {kind}"


def test_a_line_of_parse() -> None:
    line = "(EngineCore_DP0 pid=150) INFO 02-20 00:01:02 [kv_cache_utils.py:1291] GPU KV cache size: 624,288 tokens"
    (record,) = parse_lines([line])
    row = record.to_dict()
    assert list(row)[: len(COMMON)] == COMMON
    assert row == {
        "record": "KVCacheCapacity", "line": 1, "time": "02-20 00:01:02", "level": "INFO", "process": "EngineCore_DP0",
        "pid": 150, "rank": None, "source": "kv_cache_utils.py:1291", "tokens": 624288, "device": "GPU",
        "max_model_len": None, "max_concurrency": None,
    }  # fmt: skip


def test_the_report() -> None:
    report = check(b"INFO 02-20 00:01:02 [kv_cache_utils.py:1291] GPU KV cache size: 624,288 tokens\n").to_dict()
    assert {"verdict", "startups", "findings", "skipped"} <= set(report) == set(ReportModel.model_fields)
    wanted = {"code", "severity", "line", "expected", "observed", "message", "remedy", "explanation"}
    assert wanted <= set(FindingModel.model_fields)
    for finding in report["findings"]:
        assert set(finding) == set(FindingModel.model_fields)
        assert re.fullmatch(r"VL\d{3}", finding["code"])
