"""Every case computed by vLLM's own code: specs, groups, blocks, tokens, concurrency and errors, no tolerance."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.conftest import shared
from vlogcheck.budget.flags import options_from_mapping, parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import KVPlan, plan

FIGURES = re.compile(r"\(([\d.]+) Gi?B KV cache is needed.*memory \(([\d.]+) Gi?B\)(?:.*length is (\d+))?", re.DOTALL)


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    with shared("oracle", "cases.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def planned(case: dict[str, Any], *, through_flags: bool = False) -> KVPlan:
    model = load_model_config(shared("oracle", "configs", f"{case['config']}.json"))
    options = parse_serve_flags(as_flags(case["args"])) if through_flags else options_from_mapping(case["args"])
    return plan(
        model, options, release=case["vllm"], available=case["available_bytes"], env=case["env"], device=case["gpu"]
    )


def as_flags(args: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in args.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(f"--no-{flag[2:]}")
        else:
            words += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def misses(case: dict[str, Any], found: KVPlan) -> list[str]:
    expected = case["expected"]
    wrong: list[str] = []

    def same(what: str, got: object, wanted: object) -> None:
        if got != wanted:
            wrong.append(f"{what}: {got!r} instead of {wanted!r}")

    if found.unknown is not None:
        return [f"unknown: {found.unknown.reason}"]
    same(
        "specs",
        sorted((s.spec.kind, s.count, s.spec.block_size, s.spec.page_size_bytes) for s in found.specs),
        sorted((s["kind"], s["count"], s["block_size"], s["page_size_bytes"]) for s in case["layer_specs"]),
    )
    if "error" in expected:
        if found.error is None:
            return [*wrong, "no error"]
        figures = FIGURES.search(expected["error"])
        estimate = found.error.estimated_max_model_len
        got = (found.error.needed_gib, found.error.available_gib, None if estimate is None else str(estimate))
        if figures is not None:
            same("error", got, figures.groups())
        else:
            same("error kind", found.error.kind, "no_kv_cache_memory")
        return wrong
    same("error", found.error, None)
    same("blocks", found.num_blocks, expected["num_blocks"])
    same("tokens", found.kv_cache_tokens, expected.get("log_tokens"))
    same("concurrency", found.max_concurrency_text, expected.get("log_concurrency"))
    if "kv_cache_max_concurrency" in expected:
        same("concurrency float", found.max_concurrency, expected["kv_cache_max_concurrency"])
    same(
        "groups",
        [(len(g.layers), g.block_size, g.kind, g.page_size_bytes) for g in found.groups],
        [(g["n_layers"], g["block_size"], g["kind"], g["page_size_bytes"]) for g in case["groups"] or []],
    )
    return wrong


def family(case: dict[str, Any]) -> str:
    return "+".join(sorted({spec["kind"] for spec in case["layer_specs"]})) or "no cache"


def test_every_case(cases: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    wrong: list[str] = []
    for case in cases:
        found = misses(case, planned(case))
        for name in (family(case), case["vllm"]):
            total[name] += 1
            good[name] += not found
        wrong += [f"{case['id']} {case['vllm']}: {text}" for text in found]
    with capsys.disabled():
        print()
        for name in sorted(total):
            print(f"  {name}: {good[name]} of {total[name]}")
    assert wrong == []


def test_the_command_line_gives_the_same_options(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert parse_serve_flags(as_flags(case["args"])) == options_from_mapping(case["args"]), case["id"]


def test_resolved_settings(cases: list[dict[str, Any]]) -> None:
    wrong: list[str] = []
    for case in cases:
        settings, resolved = planned(case).settings, case["resolved"]
        if settings is None:
            continue
        pairs = {
            "max_num_batched_tokens": settings.max_num_batched_tokens,
            "max_num_seqs": settings.max_num_seqs,
            "dtype": settings.dtype,
            "max_in_flight_tokens": settings.in_flight_tokens,
            "prefix_caching": settings.prefix_caching,
            "disable_hybrid_kv_cache_manager": settings.hybrid_disabled,
        }
        wrong += [
            f"{case['id']} {case['vllm']} {name}: {got!r} instead of {resolved[name]!r}"
            for name, got in pairs.items()
            if resolved[name] is not None and got != resolved[name]
        ]
    assert wrong == []


def test_an_interval_of_bytes_holds_what_its_ends_give(cases: list[dict[str, Any]]) -> None:
    from vlogcheck.units import Interval

    for case in cases[::7]:
        bytes_ = case["available_bytes"]
        if "error" in case["expected"] or case["expected"]["num_blocks"] == 1:
            continue
        numbers = bytes_ if isinstance(bytes_, list) else [bytes_]
        around = [Interval(n - (5 << 20), n + (5 << 20)) for n in numbers]
        found = plan(
            load_model_config(shared("oracle", "configs", f"{case['config']}.json")),
            options_from_mapping(case["args"]), release=case["vllm"], available=around, env=case["env"],
            device=case["gpu"],
        )  # fmt: skip
        assert found.blocks_interval is not None
        assert case["expected"]["num_blocks"] in found.blocks_interval
        assert found.tokens_interval is not None
        assert case["expected"]["log_tokens"] in found.tokens_interval
