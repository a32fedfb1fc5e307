"""The expected ledger against servers that ran: from the log alone and a configuration to the tokens and blocks there were."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import shared
from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._reading import read
from vlogcheck.api import Inquiry
from vlogcheck.context import Context, LogFacts
from vlogcheck.curve import capacity_curve, lengths
from vlogcheck.expected import Model
from vlogcheck.registry import Missing, Severity

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX = r"(-(instruct|base|it|chat|awq|gptq|int4|int8|fp8|w4a16|2507))*"
_SAME_LAYERS = {
    "meta-llama-3-8b-instruct": "llama-3.1-8b",
    "mistral-7b-instruct-v0.3": "mistral-7b-v0.3",
    "qwen3-coder-30b-a3b-instruct": "qwen3-30b-a3b",
    "qwen3-embedding-0.6b": "qwen3-0.6b",
    "huihui-gpt-oss-20b-mxfp4-abliterated-v2": "gpt-oss-20b",
    "dialogpt-small": "tf-default:gpt2",
}
"""Models whose layers, KV heads and head sizes are those of a configuration under another name."""


def recorded() -> list[tuple[Path, Path, dict[str, Any]]]:
    folder = shared("recorded")
    entries = json.loads((folder / "manifest.json").read_bytes())["logs"]
    return [
        (folder / entry["file"], folder / entry["config"], entry.get("ground_truth") or {})
        for entry in entries
        if entry.get("config") and (folder / entry["file"]).is_file()
    ]


@cache
def facts_of(log: Path) -> LogFacts:
    return read(str(log))


def contexts(log: Path, config: Path) -> list[Context]:
    facts, model = facts_of(log), Model.load(config)
    return [Context(facts.startups[n], n, model=model, facts=facts) for n in facts.judged]


def test_recorded_tokens_lie_in_the_predicted_interval() -> None:
    checked = 0
    for log, config, _ in recorded():
        for context in contexts(log, config):
            for engine in context.observation.engines:
                tokens = engine.ledger["tokens"].interval
                if tokens is None or context.model is None:
                    continue
                planned = context.model.expected(context, engine).plan.tokens_interval
                if planned is None:
                    continue  # sized from memory that the log does not print
                assert tokens.lo in planned, log.name
                checked += 1
    assert checked >= 55


def test_recorded_blocks_are_those_of_the_server() -> None:
    checked = 0
    for log, config, truth in recorded():
        cross = truth.get("cross_check") or {}
        for context in contexts(log, config):
            engines = [e for e in context.observation.engines if e.ledger["tokens"].known]
            if not cross.get("num_blocks") or not engines or context.model is None:
                continue
            plans = [context.model.expected(context, engine) for engine in engines]
            blocks = [observed_blocks(plan) for plan in plans]
            low = sum(found.lo for found in blocks if found is not None)
            high = sum(found.hi for found in blocks if found is not None)
            assert None not in blocks, log.name
            assert low <= cross["num_blocks"] <= high, log.name
            assert high - low <= len(blocks), log.name
            sizes = {item.spec.block_size for item in plans[0].plan.specs}
            assert cross["block_size"] in sizes, log.name
            checked += 1
    assert checked >= 50


def corpus() -> list[tuple[Path, Path]]:
    configs = {path.name.removesuffix(".json").lower(): path for path in shared("oracle", "configs").glob("*.json")}
    found = []
    for log in sorted(shared("corpus").glob("*.log")):
        facts = facts_of(log)
        for number in facts.judged:
            name = (facts.startups[number].model or "").rstrip("/").rpartition("/")[2].lower()
            for stem, path in configs.items():
                if stem == _SAME_LAYERS.get(name) or re.fullmatch(re.escape(stem) + _SUFFIX, name):
                    found.append((log, path))
    return found


def test_corpus_tokens_lie_in_the_predicted_interval_or_are_explained() -> None:
    checked = 0
    for log, config in corpus():
        for context in contexts(log, config):
            for engine in context.observation.engines:
                tokens = engine.ledger["tokens"].interval
                if tokens is None or context.model is None:
                    continue
                try:
                    planned = context.model.expected(context, engine).plan.tokens_interval
                except Missing:
                    continue
                if planned is None:
                    continue
                report = Inquiry(model=config, select=["VL3"]).report(facts_of(log))
                assert tokens.lo in planned or report.findings, log.name
                checked += 1
    assert checked >= 10


@pytest.mark.parametrize("with_config", [False, True])
def test_no_recorded_server_that_served_gets_an_error(with_config: bool) -> None:
    for log, config, _ in recorded():
        report = Inquiry(model=config if with_config else None, select=["VL3", "VL4"]).report(facts_of(log))
        usable = all(context.startup.usable for context in report.contexts)
        errors = [f for f in report.findings if f.severity is Severity.ERROR]
        assert not (usable and errors), f"{log.name}: {errors}"


def test_no_corpus_log_gets_an_error() -> None:
    for log in sorted(shared("corpus").glob("*.log")):
        report = Inquiry(select=["VL3", "VL4"]).report(facts_of(log))
        assert not [f for f in report.findings if f.severity is Severity.ERROR], log.name


def test_the_curve_ends_at_the_printed_concurrency_and_falls() -> None:
    checked = 0
    for log, config, _ in recorded():
        for context in contexts(log, config):
            curve = capacity_curve(context)
            printed = next((e.ledger["concurrency"] for e in context.observation.engines), None)
            if not curve.points or printed is None or printed.lo is None or printed.hi is None:
                continue
            engines = len(context.observation.engines)
            last = curve.points[-1]
            assert printed.lo * engines <= last.low <= last.high <= printed.hi * engines, log.name
            lows = [point.low for point in curve.points]
            assert lows == sorted(lows, reverse=True), log.name
            checked += 1
    assert checked >= 50


def test_lengths_of_a_curve() -> None:
    assert lengths(131072) == [512, 1024, 4096, 16384, 65536, 131072]
    assert lengths(4096) == [512, 1024, 4096]
    assert lengths(300) == [300]
