"""The plan against servers that really ran (CPU builds of four releases): tokens, concurrency, refusals as printed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import shared
from vlogcheck.budget.flags import ServeOptions, parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import KVPlan, plan

TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
BATCHED = re.compile(r"max_num_batched_tokens=(\d+)")
BYTES = re.compile(r"'kv_cache_memory_bytes': (\d+)")
REFUSED = re.compile(
    r"max seq len \((\d+)\), \(([\d.]+) GiB KV cache is needed.*?memory \(([\d.]+) GiB\)\. .*?length is (\d+)",
    re.DOTALL,
)


def runs() -> list[dict[str, Any]]:
    folder = shared("recorded")
    found = []
    for entry in json.loads((folder / "manifest.json").read_bytes())["logs"]:
        file = folder / entry["file"]
        command = entry.get("command") or []
        if not entry.get("config") or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        options = parse_serve_flags(command[2:]) if "serve" in command[:3] else offline(text)
        env = entry.get("env") or {}
        if options.kv_cache_memory_bytes is None and "VLLM_CPU_KVCACHE_SPACE" not in env:
            continue  # sized from the machine's memory
        found.append({**entry, "text": text, "options": options, "env": env})
    return found


def offline(text: str) -> ServeOptions:
    """Options of a run without a command line, from what its log says."""
    length, size, batched = CONCURRENCY.search(text), BYTES.search(text), BATCHED.search(text)
    if length is None or size is None or batched is None:
        return ServeOptions()
    return ServeOptions(
        max_model_len=int(length.group(1).replace(",", "")),
        max_num_batched_tokens=int(batched.group(1)),
        kv_cache_memory_bytes=int(size.group(1)),
    )


def planned(run: dict[str, Any]) -> KVPlan:
    return plan(
        load_model_config(shared("recorded", run["config"])), run["options"], release=run["vllm_version"],
        env=run["env"],
        device="cpu",
    )  # fmt: skip


def test_printed_tokens_and_concurrency() -> None:
    checked = 0
    for run in runs():
        tokens, concurrency = TOKENS.findall(run["text"]), CONCURRENCY.findall(run["text"])
        if not tokens or not concurrency:
            continue
        found = planned(run)
        wanted = (int(tokens[0].replace(",", "")), concurrency[0][1])
        assert (found.kv_cache_tokens, found.max_concurrency_text) == wanted, run["name"]
        assert found.max_model_len == int(concurrency[0][0].replace(",", "")), run["name"]
        checked += 1
    assert checked >= 50


def test_printed_refusals() -> None:
    checked = 0
    for run in runs():
        refused = REFUSED.search(run["text"])
        if refused is None:
            continue
        error = planned(run).error
        assert error is not None, run["name"]
        assert (
            str(error.max_model_len), error.needed_gib, error.available_gib, str(error.estimated_max_model_len)
        ) == refused.groups(), run["name"]  # fmt: skip
        checked += 1
    if not checked:
        pytest.skip("no recorded refusal with known bytes")


def test_the_length_may_come_from_the_model() -> None:
    for run in runs()[:3]:
        assert planned({**run, "options": replace(run["options"], max_model_len=None)}).max_model_len
