"""Logs written from the lines vLLM's own code printed for known sizes: the expected ledger finds the blocks, no check objects."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

from packaging.version import Version

from tests.conftest import shared
from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._reading import read
from vlogcheck.api import Inquiry
from vlogcheck.context import Context
from vlogcheck.expected import Model
from vlogcheck.registry import Missing, Severity

STEP = 5
"""Every fifth case is run through all checks: the whole set takes a minute."""


@cache
def cases() -> list[dict[str, Any]]:
    with shared("oracle", "cases.jsonl").open("rb") as stream:
        return [json.loads(line) for line in stream]


@cache
def model(name: str) -> Model:
    return Model.load(shared("oracle", "configs", f"{name}.json"))


def log_of(case: dict[str, Any]) -> bytes:
    """What a server of that release would print around these lines: platform, arguments, banner, memory."""
    release, settled, options = Version(case["vllm"]), case["resolved"], case["args"]
    tp, pp = options.get("tensor_parallel_size", 1), options.get("pipeline_parallel_size", 1)
    lines = [
        "INFO 03-01 09:59:58 [__init__.py:239] Automatically detected platform cuda.",
        f"INFO 03-01 09:59:58 [utils.py:233] non-default args: {dict(model='m', **options)!r}",
    ]
    before = case["expected"].get("log_lines_before_kv_init", [])
    lines += [f"INFO 03-01 09:59:59 [x.py:1] {message}" for message in before]
    lines.append(
        f"INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v{case['vllm']}) with config: model='m',"
        f" speculative_config=None, dtype=torch.{settled['dtype']}, max_seq_len={settled['max_model_len']},"
        f" tensor_parallel_size={tp}, pipeline_parallel_size={pp},"
        f" data_parallel_size={options.get('data_parallel_size', 1)}, quantization={settled['quantization']},"
        f" enforce_eager=True, kv_cache_dtype={settled['cache_dtype']},"
        f" enable_prefix_caching={settled['prefix_caching']}"
    )
    available = case["available_bytes"]
    for stage, size in enumerate(available if isinstance(available, list) else [available]):
        gib = f"{size / 2**30:.2f}" if release < Version("0.14.1") else f"{round(size / 2**30, 2)}"
        tag = f"(Worker_PP{stage} pid={100 + stage}) " if pp > 1 else ""
        if release >= Version("0.9.1"):
            lines.append(f"{tag}INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: {gib} GiB")
    for line in case["expected"].get("log_lines", []):
        lines.append(f"(EngineCore_DP0 pid=50) {line['level']} 03-01 10:00:09 [{line['file']}:1] {line['msg']}")
    if error := case["expected"].get("error"):
        lines.append(f"(EngineCore_DP0 pid=50) ERROR 03-01 10:00:09 [core.py:1] {error}")
    return ("\n".join(lines) + "\n").encode()


def silent(case: dict[str, Any]) -> bool:
    """Whether an environment variable decides that the case's own log does not show."""
    return bool(case["env"]) and not any("backend" in m for m in case["expected"].get("log_lines_before_kv_init", []))


def test_blocks_and_tokens_from_the_log() -> None:
    seen: Counter[str] = Counter()
    for case in cases():
        blocks = case["expected"].get("num_blocks")
        if blocks is None or silent(case):
            continue
        facts = read(log_of(case))
        if not facts.judged:
            continue
        context = Context(facts.startups[facts.judged[0]], model=model(case["config"]), facts=facts)
        engines = [e for e in context.observation.engines if e.ledger["tokens"].known]
        if not engines or context.model is None:
            continue
        try:
            expected = context.model.expected(context, engines[0])
        except Missing:
            seen["not modelled"] += 1
            continue
        found = observed_blocks(expected)
        name = f"{case['id']} on {case['vllm']}"
        assert found is not None, name
        assert found.lo <= blocks <= found.hi, name
        seen["blocks"] += 1
        planned, tokens = expected.plan.tokens_interval, engines[0].ledger["tokens"].interval
        if planned is not None and tokens is not None:
            assert tokens.lo in planned, name
            seen["tokens"] += 1
    assert seen["blocks"] >= 400
    assert seen["tokens"] >= 380


def test_no_false_alarm() -> None:
    for case in cases()[::STEP]:
        if silent(case):
            continue
        for source in (model(case["config"]), None):
            report = Inquiry(model=source, select=["VL3", "VL4"]).report(read(log_of(case)))
            assert not [f for f in report.findings if f.severity is Severity.ERROR], f"{case['id']}\n{report}"
