"""Scan: the records do not depend on how bytes arrive, and no line that a template knows is missed."""

from __future__ import annotations

import io
import json
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import Parser, parse, parse_lines
from vlogcheck._anchors import FRAGMENTS, GROUP, SUSPICIOUS, fixed_texts, grouped, scan_anchors, scanner
from vlogcheck._collector import Collector
from vlogcheck._reading import read
from vlogcheck.records import EngineStats
from vlogcheck.template import Template, all_templates

from .conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = all_templates()
FIND = scanner(scan_anchors(fixed_texts(TEMPLATES)))
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))
SERVED = ROOT / "fixtures/logs/0.24.0/llama-load.log"
ACCESS = '(APIServer pid=7) INFO:     10.0.0.{n}:41234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
REQUEST = (
    "INFO 07-09 09:21:07 [logger.py:39] Received request chatcmpl-97: prompt: 'out of memory, 12 GiB, 3 blocks', params:"
    " SamplingParams(n=1, max_tokens=130980, min_tokens=0), prompt_token_ids: None, lora_request: None."
)


def outcome(parser: Parser, pieces: list[bytes]) -> tuple[Any, ...]:
    records = [record for piece in pieces for record in parser.feed(piece)] + parser.close()
    return [record.to_dict() for record in records], parser.lines, parser.truncated, parser.unrecognised


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(at)]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: f"{t.record.__name__}-{t.text[:50]!r}")
def test_every_line_of_every_example_holds_an_anchor(template: Template) -> None:
    for line in template.example.split("\n"):
        assert FIND(line.encode()), line
        assert FIND(json.dumps(line).encode()), "escaped as JSON"
        assert FIND(json.dumps(line).replace("/", "\\/").replace("<", "\\u003c").encode()), (
            "escaped as other writers do"
        )


def test_fixed_texts_are_what_the_templates_say() -> None:
    for template, text in zip(TEMPLATES, fixed_texts(TEMPLATES), strict=True):
        literals = ["".join(line) for line in template.literals()]
        assert len(text.split("\n")) == len(literals)
        for line, literal in zip(text.split("\n"), template.literals(), strict=True):
            for part in filter(None, line.split("\0")):
                assert any(part in stretch for stretch in literal), f"{part!r} is not always in {template!r}"


def test_anchors_stay_few_and_long_enough() -> None:
    anchors = scan_anchors(fixed_texts(TEMPLATES))
    assert len(anchors) <= 130, "add a fragment that several of the new templates share to FRAGMENTS"
    assert len([anchor for anchor in anchors if len(anchor) < 4]) <= 3, "each short anchor costs a pass of its own"
    assert {*SUSPICIOUS} <= {*FRAGMENTS}


@pytest.mark.parametrize("count", [5, 17, 40, 85, 97])
def test_groups_hold_every_anchor_and_are_of_about_one_size(count: int) -> None:
    anchors = scan_anchors(fixed_texts(TEMPLATES))[:count]
    groups = grouped(anchors)
    assert sorted(anchor for group in groups for anchor in group) == sorted(anchors)
    sizes = [len(group) for group in groups if len(group[0]) >= 4]
    assert max(sizes) <= GROUP
    assert max(sizes) - min(sizes) <= 8, "buckets differ by one"


def test_access_and_request_lines_hold_no_anchor() -> None:
    assert not FIND(ACCESS.format(n=1).encode())
    assert not FIND(REQUEST.replace("out of memory, 12 GiB, 3 blocks", "Hello there").encode())


def test_requests_that_speak_of_memory_are_no_unrecognised_messages() -> None:
    unknown: list[Any] = []
    assert list(parse_lines([REQUEST, f"(APIServer pid=7) {REQUEST}"], on_unrecognised=unknown.append)) == []
    assert unknown == []
    glued = f"{REQUEST}INFO 07-09 09:21:08 [gpu_worker.py:9] Available KV cache memory: 4.50 GiB"
    assert [type(record).__name__ for record in parse_lines([glued])] == ["KVCacheMemory"]


@pytest.mark.parametrize("log", LOGS[::9], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_way_in_gives_the_same_records(log: Path) -> None:
    data = log.read_bytes()
    expected = outcome(Parser(), [data])
    assert outcome(Parser(), [data[i : i + 1] for i in range(len(data))]) == expected
    assert outcome(Parser(), [data[i : i + 997] for i in range(0, len(data), 997)]) == expected
    assert [r.to_dict() for r in parse(log)] == expected[0]
    assert [r.to_dict() for r in parse(io.BytesIO(data))] == expected[0]
    lines = data.split(b"\n")
    assert [r.to_dict() for r in parse_lines(lines[:-1] if not lines[-1] else lines)] == expected[0]


INTERESTING = st.sampled_from(
    [
        "INFO 07-09 09:21:07 [gpu_worker.py:9] Available KV cache memory: 4.50 GiB",
        "(Worker_TP0 pid=5) INFO 07-09 09:21:07 [m.py:9] Model loading took 7.25 GiB and 12.5 seconds",
        "GPU KV cache size: 12,345 tokens",
        "some unknown line about 3 GiB of memory",
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01]\rINFO 07-09 09:21:07 [a.py:1] done",
        REQUEST,
        ACCESS.format(n=4),
        "",
        "\r",
        "2024-01-01T00:00:00Z stdout P INFO 07-09 09:21:07 [gpu_worker.py:9] Available KV cache ",
        "2024-01-01T00:00:00Z stdout F memory: 4.50 GiB",
        "x" * 300,
        *(t.example for t in TEMPLATES if "\n" in t.example),
        *(t.example for t in TEMPLATES[:40]),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(INTERESTING, max_size=30), st.lists(st.integers(0, 1 << 16), max_size=30), st.booleans())
def test_any_chunking_gives_the_same_records(lines: list[str], places: list[int], ended: bool) -> None:
    data = ("\n".join(lines) + ("\n" if ended else "")).encode()
    assert outcome(Parser(), cut(data, places)) == outcome(Parser(), [data])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_any_bytes_in_any_chunking(data: bytes, places: list[int]) -> None:
    assert outcome(Parser(), cut(data, places)) == outcome(Parser(), [data])


@pytest.mark.parametrize("most", [1, 2, 3, 16])
def test_long_lines_in_any_chunking(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("vlogcheck.scan.MAX_PIECES", most)
    monkeypatch.setattr("vlogcheck.scan.MAX_LINE", 500)
    monkeypatch.setattr("vlogcheck.scan.BLOCK", 300)
    long = "x" * 1200 + " Available KV cache memory: 4.50 GiB" + "y" * 333
    data = f"{long}\nAvailable KV cache memory: 4.50 GiB\n{long}".encode()
    expected = outcome(Parser(), [data])
    assert [record["record"] for record in expected[0]] == ["KVCacheMemory"]
    assert expected[1] == 3
    for size in (1, 7, 100, 499, 500, 501, 1000):
        assert outcome(Parser(), [data[i : i + size] for i in range(0, len(data), size)]) == expected


def test_line_numbers_are_exact_between_many_lines_without_anchors() -> None:
    lines = [ACCESS.format(n=n % 250) for n in range(20_000)]
    places = (0, 1, 777, 6000, 19_998, 19_999)
    for place in places:
        lines[place] = "INFO 07-09 09:21:07 [gpu_worker.py:9] Available KV cache memory: 4.50 GiB"
    parser = Parser()
    records = parser.feed(("\n".join(lines) + "\n").encode()) + parser.close()
    assert [record.line for record in records] == [place + 1 for place in places]
    assert parser.lines == len(lines)


def test_without_the_search_library_the_records_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [record.to_dict() for record in parse(SERVED)]
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    assert [record.to_dict() for record in parse(SERVED)] == expected


def test_a_message_whose_rest_never_comes_does_not_slow_the_log_down_for_ever() -> None:
    first = next(t for t in TEMPLATES if len(t.example.split("\n")) > 1).example.split("\n")[0]
    parser = Parser()
    parser.feed((f"{first}\n" + f"{ACCESS.format(n=2)}\n" * 100).encode())
    assert parser._messages.after == 0
    assert parser._messages.unfinished == 0


# Hard-wrapped logs


def wrap(lines: list[str], width: int) -> tuple[str, list[int]]:
    """Cut lines as a terminal does; where each began, from 1."""
    cut_lines: list[str] = []
    begins = []
    for line in lines:
        begins.append(len(cut_lines) + 1)
        cut_lines += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    return "\n".join(cut_lines) + "\n", begins


def test_a_log_cut_by_a_terminal_is_joined_with_the_right_line_numbers() -> None:
    lines = SERVED.read_text().splitlines()
    whole = {(r.line, type(r).__name__, json.dumps(r.own_values(), default=str)) for r in parse_lines(lines)}
    text, begins = wrap(lines, 100)
    found = [(r.line, type(r).__name__, json.dumps(r.own_values(), default=str)) for r in parse(text.encode())]
    vital = {
        "EngineConfig",
        "KVCacheMemory",
        "KVCacheCapacity",
        "MaxConcurrency",
        "WeightsLoaded",
        "Ready",
        "EngineStats",
    }
    expected = {(begins[line - 1], name, values) for line, name, values in whole if name in vital}
    assert expected
    assert expected <= {*found}
    assert read(text.encode()).lines == text.count("\n")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 1 << 16), max_size=20))
def test_a_cut_log_in_any_chunking(places: list[int]) -> None:
    data = wrap(SERVED.read_text().splitlines(), 100)[0].encode()
    assert outcome(Parser(wrapped_at=100), cut(data, places)) == outcome(Parser(wrapped_at=100), [data])


def test_a_cut_log_longer_than_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wrap(SERVED.read_text().splitlines(), 100)[0].encode()
    expected = outcome(Parser(wrapped_at=100), [data])
    monkeypatch.setattr("vlogcheck._held._HELD", 50)
    assert outcome(Parser(wrapped_at=100), [data]) == expected


# Metrics lines as figures

V1 = (
    "Engine {engine:03}: Avg prompt throughput: {rate} tokens/s, Avg generation throughput: {rate} tokens/s, Running:"
    " {running} reqs, Waiting: {waiting} reqs{preempted}, GPU KV cache usage: {usage}%, Prefix cache hit rate: {usage}%"
)
V071 = (
    "Avg prompt throughput: {rate} tokens/s, Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Waiting:"
    " {waiting} reqs GPU KV cache usage: {usage}%."
)
V0 = (
    "Avg prompt throughput: {rate} tokens/s, Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Swapped: 0"
    " reqs, Pending: {waiting} reqs, GPU KV cache usage: {usage}%, CPU KV cache usage: 0.0%."
)
AGGREGATED = (
    "{engine} Engines Aggregated: Avg prompt throughput: {rate} tokens/s, Avg generation throughput: {rate} tokens/s, Running:"
    " {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: {usage}%"
)
HEADS = (
    "INFO 06-21 08:43:46 [loggers.py:127] ",
    "INFO 11-18 17:20:32 metrics.py:449] ",
    "(APIServer pid=238615) INFO 06-21 08:43:46 [loggers.py:127] ",
    "\x1b[1;36m(APIServer pid=3362115)\x1b[0;0m INFO 03-09 20:56:32 [loggers.py:236] ",
    "(EngineCore_DP1 pid=77) INFO 06-21 08:43:47 [v1/metrics/loggers.py:127] ",
    "2024-05-01T10:00:00.123456789Z stdout F INFO 06-21 08:43:46 [loggers.py:127] ",
    "vllm-1  | (APIServer pid=7) INFO 06-21 08:43:46 [loggers.py:127] ",
    '{"log":"INFO 06-21 08:43:46 [loggers.py:127] ',
)
TAILS = (
    "",
    "\r",
    ", MM cache hit rate: 3.0%",
    ", é",
    " [repeated 3x across cluster]",
    "INFO 06-21 08:43:47 [a.py:1] more",
    " [x]",
)
METRICS = st.builds(
    lambda head, body, tail, engine, running, waiting, usage, preempted: (
        head
        + body.format(
            engine=engine, rate=12.5, running=running, waiting=waiting, usage=usage,
            preempted=f", Preemptions: {preempted}" if preempted else "",
        )
        + tail
    ),
    st.sampled_from(HEADS), st.sampled_from((V1, V071, V0, AGGREGATED)), st.sampled_from(TAILS), st.integers(0, 3),
    st.sampled_from(["0", "3", "17", "38", "250", "1,234", "9" * 30]), st.integers(0, 40),
    st.sampled_from(["0.0", "4.2", "9.6", "99.9", "100.0", "1e99", "1e1"]),
    st.integers(0, 3),
)  # fmt: skip
OTHER = st.sampled_from(
    [
        "INFO 06-21 08:43:46 [core.py:1] Initializing a V1 LLM engine (v0.11.0) with config: model='a', dtype=torch.bfloat16",
        "INFO 06-21 08:43:46 [gpu_worker.py:9] Available KV cache memory: 4.50 GiB",
        "(APIServer pid=238615) INFO 06-21 08:43:46 [api_server.py:1] vLLM API server version 0.11.0",
        ACCESS.format(n=9),
        REQUEST,
    ]
)


def collected(collector: Collector) -> list[tuple[Any, ...]]:
    return [
        (
            repr(s),
            s.counts,
            s.last_line,
            {k: str(v) for k, v in vars(s.runtime).items() if k != "engines"},
            s.runtime.engines,
        )
        for s in collector.startups
    ]


@pytest.mark.parametrize("many", [0, 3])
@settings(max_examples=150, deadline=None)
@given(lines=st.lists(METRICS | METRICS | OTHER, max_size=25), places=st.lists(st.integers(0, 1 << 14), max_size=6))
def test_metrics_lines_as_figures_give_what_their_records_give(many: int, lines: list[str], places: list[int]) -> None:
    data = ("\n".join(lines) + "\n").encode()
    slow, quick = Collector(), Collector()
    slow.extend(parse_lines(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vlogcheck.scan._MANY", many)
        parser = Parser(collector=quick)
        for piece in cut(data, places):
            assert parser.feed(piece) == []
        parser.close()
    assert collected(quick) == collected(slow)


def test_the_quick_way_reads_plain_metrics_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the test above would compare one way with itself."""
    monkeypatch.setattr("vlogcheck.scan._MANY", 0)
    built: list[Any] = []
    monkeypatch.setattr(
        EngineStats, "__init__", lambda self, **values: built.append(values) or self.__dict__.update(values)
    )
    collector = Collector()
    parser = Parser(collector=collector)
    for head in HEADS[:5]:
        for body in (V1, V071, V0):
            line = head + body.format(engine=0, rate=1.0, running=3, waiting=0, usage="4.2", preempted="")
            parser.feed(f"{line}\n{line}\n".encode())
    parser.close()
    assert collector.startups[0].runtime.samples == 30
    assert len(built) <= 5, "the first line of each process says where its figures belong"


def test_the_status_of_an_access_line_is_no_error_but_its_neighbours_are_read() -> None:
    access = 'INFO:     10.0.0.9:51234 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error\n'
    lines = f"INFO 03-01 10:00:00 [api_server.py:1] vLLM API server version 0.11.0\n{access}AssertionError\n{access}"
    parser = Parser()
    records = parser.feed(lines.encode()) + parser.close()
    assert [(type(record).__name__, record.line) for record in records] == [("ServerVersion", 1), ("Raised", 3)]
    assert parser.lines == 4
    torn = access[:-1] + "INFO 03-01 10:00:00 [kv_cache_utils.py:1] GPU KV cache size: 1,024 tokens\n"
    assert [type(record).__name__ for record in Parser().feed(torn.encode())] == ["KVCacheCapacity"]
