"""A server told to log in another format: the process tag stands in front of it until 0.30, and the records are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vlogcheck import Parser
from vlogcheck.template import Record

from . import _wrap

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
PREFIX = re.compile(r"(INFO|WARNING|ERROR|DEBUG) (\d\d-\d\d) (\d\d:\d\d:\d\d) \[([\w./]+):(\d+)\] (.*)")

FORMATS: dict[str, Callable[[re.Match[str]], str]] = {
    "dashes": lambda m: f"2026-{m[2]} {m[3]},123 - vllm.{m[4][:-3]} - {m[1]} - {m[6]}",
    "iso": lambda m: f"2026-{m[2]}T{m[3]}.123Z {m[1]} {m[4]}:{m[5]}] {m[6]}",
    "slashes": lambda m: f"{m[1]} 2026/{m[2].replace('-', '/')} {m[3]} [{m[4]}:{m[5]}] {m[6]}",
    "bars": lambda m: f"{m[3]} | {m[1]:<8} | {m[4]}:{m[5]} - {m[6]}",
    "klog": lambda m: f"{m[1][0]}{m[2].replace('-', '')} {m[3]}.123456 4242 {m[4]}:{m[5]}] {m[6]}",
    "small letters": lambda m: f"{m[1].lower()} {m[2]} {m[3]} [{m[4]}:{m[5]}] {m[6]}",
    "level in brackets": lambda m: f"[{m[1]}] {m[6]}",
    "no place": lambda m: f"2026-{m[2]} {m[3]} {m[1]} {m[6]}",
    "json": lambda m: json.dumps(
        {"asctime": f"2026-{m[2]} {m[3]},123", "levelname": m[1], "name": "vllm.engine", "message": m[6]}
    ),
    "json of a team": lambda m: json.dumps({"ts": f"2026-{m[2]}T{m[3]}Z", "severity": m[1].lower(), "msg": m[6]}),
    "logfmt": lambda m: f"time=2026-{m[2]}T{m[3]}Z level={m[1].lower()} msg={json.dumps(m[6])}",
}


def said(text: str) -> list[tuple[str, object, object, object]]:
    """What each message says and who says it; times, files and lines of code are the format's."""
    parser = Parser()
    records: list[Record] = parser.feed(text.encode()) + parser.close()
    return [(type(r).__name__, r.own_values(), r.process, r.rank) for r in records]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "log", ["0.24.0/llama-load.log", "0.24.0/tp2.log", "0.24.0/fail-util.log", "0.11.2/gemma3-hybrid.log"]
)
def test_the_same_records_in_another_format_behind_the_tag(log: str, name: str) -> None:
    text = (LOGS / log).read_text()
    changed, count = PREFIX.subn(FORMATS[name], text)
    assert count > 15
    assert said(changed) == said(text)


@pytest.mark.parametrize("writer", _wrap.WRITERS, ids=lambda writer: writer.__name__)
@pytest.mark.parametrize("name", ["dashes", "json"])
def test_such_lines_in_a_wrapper(name: str, writer: _wrap.Writer) -> None:
    if writer in (_wrap.journal_json_pretty, _wrap.notebook):
        pytest.skip("one line of the server is several of the file")
    text = (LOGS / "0.24.0/tp2.log").read_text()
    lines = PREFIX.sub(FORMATS[name], text).splitlines()
    assert said("\n".join(writer(lines)) + "\n") == said(text)


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_records_in_another_format_without_a_tag(name: str) -> None:
    text = re.sub(r"^\(\w+ pid=\d+\) ", "", (LOGS / "0.24.0/llama-load.log").read_text(), flags=re.MULTILINE)
    changed = PREFIX.sub(FORMATS[name], text)
    assert said(changed) == said(text)


def test_a_level_and_a_date_without_a_place_are_a_prefix_too() -> None:
    text = (LOGS / "0.24.0/llama-load.log").read_text()
    changed = PREFIX.sub(lambda m: f"{m[1]} {m[2]} {m[3]} {m[6]}" if m[6][:1].isalpha() else m[0], text)
    assert changed != text
    assert said(changed) == said(text)


@pytest.mark.parametrize(
    "prefix",
    [
        "VERBOSE 07-10 10:00:00 [config.py:1472] ",
        "INFO Thursday 10:00:00 [config.py:1472] ",
        "INFO 07-10 ten-o-clock [config.py:1472] ",
        "INFO 07-10 10:00:00.123 #7 [vllm/config.py:1472] ",
        "(EngineCore_DP0 pid=9) VERBOSE 07-10 10:00:00 [config.py:1472] ",
        "INFO 07-10 10:00:00 ",
    ],
)
def test_a_word_of_the_prefix_that_a_release_changed(prefix: str) -> None:
    assert [(name, values) for name, values, *_ in said(prefix + "Using max model len 32768\n")] == [
        ("MaxModelLen", {"max_model_len": 32768})
    ]


def test_what_another_process_was_writing_is_no_prefix() -> None:
    assert said("INFO 07-10 10:00:00 [core.py:1 Using max model len 32768\n") == []
