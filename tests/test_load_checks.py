"""Run time: what the metrics lines add up to, and which limit the checks name."""

from __future__ import annotations

from typing import Any

import pytest

from vlogcheck.api import Report, check
from vlogcheck.expect import Expectation
from vlogcheck.runtime import RunTime, Sample

BANNER = (
    "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.13.0) with config: model='m', max_seq_len=8192,"
    " data_parallel_size="
)
HEAD = """INFO 03-01 09:59:58 [__init__.py:239] Automatically detected platform cuda.
INFO 03-01 09:59:59 [utils.py:233] non-default args: {'model': 'm', 'max_num_seqs': 64}
%s
INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: 4.37 GiB
INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: 40,912 tokens
INFO 03-01 10:00:09 [kv_cache_utils.py:719] Maximum concurrency for 8,192 tokens per request: 4.99x
INFO:     Application startup complete.
"""


def line(who: str, running: int, waiting: int, usage: float) -> str:
    rates = "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 10.0 tokens/s"
    load = (
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
    )
    return f"INFO 03-01 10:01:00 [loggers.py:236] {who}: {rates}, {load}\n"


def run(*lines: str, engines: int = 1, **expect: Any) -> Report:
    select = ["VL4"]
    return check(
        (HEAD % f"{BANNER}{engines}" + "".join(lines)).encode(),
        Expectation(**expect) if expect else None,
        select=select,
    )


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_a_full_cache_says_how_long_requests_are() -> None:
    report = run(line("Engine 000", 16, 5, 98.0), concurrency=32, context=1000)
    found = {finding.code: finding for finding in report.findings}
    assert "VL408" in found
    # 40,912 tokens × 98 % ÷ 16 requests
    assert "about 2,505 tokens per request" in found["VL408"].explanation
    assert "2.50 times the planned 1,000" in found["VL408"].explanation
    assert "VL410" in found


def test_max_num_seqs_is_named_where_it_holds() -> None:
    report = run(line("Engine 000", 64, 20, 41.0), concurrency=80, context=200)
    found = {finding.code: finding for finding in report.findings}
    assert "max_num_seqs=64 held" in found["VL408"].explanation
    assert found["VL408"].fix == {"max_num_seqs": 80}
    assert found["VL411"].fix["max_num_seqs"] == 84


def test_nobody_sent_as_many() -> None:
    report = run(line("Engine 000", 3, 0, 9.0), concurrency=30, context=1000)
    finding = next(finding for finding in report.findings if finding.code == "VL408")
    assert finding.severity is not None
    assert finding.severity.value == "note"
    assert "clients" in finding.remedy


@pytest.mark.parametrize(("who", "enough"), [("2 Engines Aggregated", True), ("Engine 000", False)])
def test_a_line_may_sum_several_engines(who: str, enough: bool) -> None:
    report = run(line(who, 30, 0, 80.0), engines=2, concurrency=30 if enough else 80, context=100)
    assert ("VL408" not in codes(report)) is enough


def test_engines_that_are_not_loaded_evenly() -> None:
    uneven = run(line("Engine 001", 1, 0, 5.0), line("Engine 000", 8, 4, 97.0), engines=2)
    assert "VL407" in codes(uneven)
    even = run(line("Engine 001", 7, 0, 85.0), line("Engine 000", 8, 4, 97.0), engines=2)
    assert "VL407" not in codes(even)


def test_memory_stays_constant() -> None:
    runtime = RunTime()
    for number in range(20_000):
        runtime.add_sample(
            Sample(number, None, number % 50, number % 3, float(number % 100)), number % 7 == 0, f"{number % 3000}"
        )
    assert runtime.samples == 20_000
    assert len(runtime.by_engine) <= 1024
    assert len(runtime.engines) <= 1024
    assert runtime.full + runtime.roomy == runtime.queued
    assert runtime.peak_running is not None
    assert runtime.peak_running.running == 49
