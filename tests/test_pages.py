"""Every check's page is its test: marked log lines must be flagged there, unmarked blocks must be clean of that check.

A fenced `log` block may carry command options after the word (`--expect-concurrency 16`) and `+cut` for a log whose
last line has no end; a preceding `json config` block is the model's configuration for the log blocks after it, a
`text smi` or `text metrics` block the file beside the log block that follows.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, NamedTuple

import pytest

from vlogcheck.api import Report, check
from vlogcheck.cli import check_arguments
from vlogcheck.registry import Check, all_checks

CHECKS = list(all_checks().values())
FENCE = re.compile(r"^```(\w+)[ ]*([^\n]*)\n(.*?)^```", re.M | re.S)
MARK = re.compile(r"  # (VL\d{3}(?:, VL\d{3})*)$")


class Block(NamedTuple):
    log: str
    arguments: dict[str, Any]
    marks: dict[str, list[int]]


def blocks(item: Check) -> list[Block]:
    found = []
    config: dict[str, Any] | None = None
    beside: dict[str, bytes] = {}
    for kind, info, body in FENCE.findall(item.page):
        if kind == "text" and info.strip() in ("smi", "metrics"):
            beside[info.strip()] = body.encode()
        if kind == "json" and info.strip() == "config":
            config = json.loads(body)
        if kind != "log":
            continue
        marks: dict[str, list[int]] = {}
        lines = body.split("\n")[:-1]
        for number, line in enumerate(lines, 1):
            if mark := MARK.search(line):
                lines[number - 1] = line[: mark.start()]
                for code in mark[1].split(", "):
                    marks.setdefault(code, []).append(number)
        words = shlex.split(info)
        end = "" if "+cut" in words else "\n"
        arguments = check_arguments([word for word in words if word != "+cut"])
        if config is not None:
            arguments["model"] = config
        arguments |= beside
        beside = {}
        found.append(Block("\n".join(lines) + end, arguments, marks))
    return found


def run(block: Block) -> Report:
    return check(block.log.encode(), **block.arguments)


@pytest.mark.parametrize("item", CHECKS, ids=lambda c: c.code)
def test_page(item: Check) -> None:
    assert re.match(rf"# {item.code}: ", item.page)
    for heading in ("What it does", "Why it matters", "Example", "What to do"):
        assert f"\n## {heading}\n" in item.page
    marked = clean = 0
    for block in blocks(item):
        report = run(block)
        lines = sorted({f.line for f in report.findings if f.code == item.code and f.line is not None})
        assert lines == block.marks.get(item.code, []), f"\n{report}"
        for code, expected in block.marks.items():
            assert sorted({f.line for f in report.findings if f.code == code and f.line is not None}) == expected
        if block.marks.get(item.code):
            marked += 1
            for finding in (f for f in report.findings if f.code == item.code):
                assert finding.message
                assert finding.expected
                assert finding.observed
                assert finding.remedy
        else:
            clean += 1
    assert marked, "a page shows at least one flagged log"
    assert clean, "a page shows at least one clean log"


@pytest.mark.parametrize("item", CHECKS, ids=lambda c: c.code)
def test_check_is_described(item: Check) -> None:
    assert item.function.__doc__
    assert item.needs
