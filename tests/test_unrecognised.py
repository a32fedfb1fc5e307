"""Nothing is silently missed: a reworded memory line is told of, whatever release words it so."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import Parser, check
from vlogcheck._unknown import looks_like_memory
from vlogcheck.template import all_templates

PREFIX = "INFO 03-01 10:00:09 [worker.py:227] "
WORD = re.compile(r"(?<![\w/.\-])[A-Za-z]{3,}(?![\w/.\-])")
FIGURE = re.compile(r"\d GB\b| GiB\b| MiB\b|\b(?:KV cache|kv cache|kv-cache|KVCache)\b|blocks| tokens\b|[mM]emory")
"""Texts of memory that are looked for in every line of a log, however large it is."""
TEMPLATES = [t for t in all_templates() if "\n" not in t.example and looks_like_memory(t.example)]


BETWEEN = "INFO 03-01 10:00:09 [worker.py:1] Hello"


def reworded(word: str) -> list[str]:
    """Every example with each of its words replaced in turn."""
    return [
        f"{template.example[: at.start()]}{word}{template.example[at.end() :]}"
        for template in TEMPLATES
        for at in WORD.finditer(template.example)
    ]


def assert_told(messages: list[str]) -> None:
    told: dict[int, str] = {}
    parser = Parser(on_unrecognised=lambda line: told.update({line.number: line.message}))
    log = "".join(f"{PREFIX}{message}\n{BETWEEN}\n" for message in messages)
    read = {record.line for record in [*parser.feed(log.encode()), *parser.close()]}
    assert parser.unrecognised == len(told)
    for number, message in enumerate(messages):
        line = 2 * number + 1
        if looks_like_memory(message) and FIGURE.search(message) and line not in read:
            assert told.get(line) == message


def test_one_word_changed_in_any_example() -> None:
    """A word inside a hole may change and the line stays readable; any other change is told of."""
    messages = reworded("frobnicated")
    assert len(messages) > 2 * len(TEMPLATES)
    assert_told(messages)


@settings(max_examples=5, deadline=None)
@given(st.from_regex(r"[A-Za-z]{3,12}", fullmatch=True))
def test_any_other_word_in_any_example(word: str) -> None:
    assert_told(reworded(word))


NEW = f"{PREFIX}GPU KV cache extent: 624,288 tokens"


def test_the_command_lists_it_and_the_report_counts_it() -> None:
    log = f"{PREFIX}Available KV cache memory: 4.37 GiB\n{NEW}\n"
    command = [sys.executable, "-m", "vlogcheck", "parse", "--unrecognised", "-"]
    done = subprocess.run(command, input=log, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"line": 2, "message": NEW.removeprefix(PREFIX), "process": None, "nearest": "KVCacheCapacity"}
    ]
    report = check(log.encode())
    assert report.to_dict()["unrecognised"] == 1
    assert [f.line for f in report.findings if f.code == "VL009"] == [2]


def test_rates_of_downloads_are_no_memory() -> None:
    for line in (
        "config.json: 1.81kB [00:00, 5.73MB/s]",
        "model-00001-of-00002.safetensors: 100%|##########| 4.97G/4.97G [00:21<00:00, 233MB/s]",
    ):
        assert not looks_like_memory(line)
    assert looks_like_memory("copied 12.5 GiB at 20 GB/s")
