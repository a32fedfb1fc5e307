"""Public logs from the shared folder against independently read values: no record more, no record less."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vlogcheck import Record, parse
from vlogcheck.cli import main

from .conftest import SHARED

CORPUS = SHARED / "corpus"
EXPECTED = CORPUS / "expected.jsonl"
CASES = [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()] if EXPECTED.exists() else []
AS_SETS = {"FreeMemoryTooLow", "KVCacheTooSmall", "NoKVCacheMemory"}  # tracebacks repeat them

needs_corpus = pytest.mark.skipif(not CASES, reason=f"no {EXPECTED}: set VLOGCHECK_SHARED to the folder that holds it")


def values(records: Iterable[Record]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        kind, r = type(record).__name__, record.own_values()
        if kind == "KVCacheCapacity":
            found[kind].append(r["tokens"])
            if r["max_concurrency"] is not None:
                found["MaxConcurrency"].append([r["max_model_len"], r["max_concurrency"]])
        elif kind == "MaxConcurrency":
            found[kind].append([r["max_model_len"], r["max_concurrency"]])
        elif kind in ("KVCacheMemory", "WeightsLoaded"):
            found[kind].append(r["gib"])
        elif kind in ("WeightsRead", "EngineInit"):
            found[kind].append(r["seconds"])
        elif kind == "GraphCapture":
            found[kind].append([r["seconds"], r["gib"]])
        elif kind == "DeviceBlocks":
            found[kind].append([r["device_blocks"], r["cpu_blocks"]])
        elif kind == "EngineStats":
            found[kind].append([r["running"], r["waiting"]])
        elif kind in ("Ready", "NoKVCacheMemory"):
            found[kind].append(1)
        elif kind == "FreeMemoryTooLow":
            found[kind].append([r["free_gib"], r["total_gib"], r["gpu_memory_utilization"], r["requested_gib"]])
        elif kind == "KVCacheTooSmall":
            found[kind].append([r["max_model_len"], r["needed_gib"], r["available_gib"]])
    return found


def comparable(kind: str, listed: list[Any]) -> Any:
    if kind in AS_SETS:
        return {json.dumps(item[:4] if isinstance(item, list) else item) for item in listed}
    return listed


@needs_corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["log"])
def test_records_are_those_read_independently(case: dict[str, Any]) -> None:
    found = values(parse(CORPUS / case["log"]))
    for kind in sorted(set(found) | set(case["records"])):
        expected = case["records"].get(kind, [])
        if kind == "KVCacheTooSmall":
            expected = [item[:3] for item in expected]
        assert comparable(kind, found.get(kind, [])) == comparable(kind, expected), kind


@needs_corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["log"])
def test_command_says_pass_fail_or_inconclusive(case: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path: Path = CORPUS / case["log"]
    with pytest.raises(SystemExit) as stop:
        main([str(path), "--format", "json"])
    assert stop.value.code in (0, 1, 3)
    report = json.loads(capsys.readouterr().out)
    assert report["exit_code"] == stop.value.code
