"""A release that changes a word of any line is noticed: the line is still read, or told of; nothing raises."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import Parser
from vlogcheck.template import Template, all_templates

TEMPLATES = all_templates()
PREFIX = "INFO 03-01 10:00:09 [worker.py:227] "
START = "INFO 03-01 10:00:00 [api_server.py:1] vLLM API server version 0.11.0"
WORD = re.compile(r"\S+")
OPTIONAL = re.compile(r"\[\[(?:[^\[\]]|\[(?!\[)|\](?!\]))*\]\]")
HOLE = re.compile(r"(?<!\{)\{\w+(?::[^{}]*)?\}")
FIXED = re.compile(r"(?<![\w\0])\w+(?![\w\0])")

MEMORY = re.compile(
    r"\d\s*(?:GiB|GB|MiB)\b|\bblocks\b|KV cache|\btokens\b|\bOOM\b|out of memory|\bmemory\b", re.IGNORECASE
)
"""What makes a line memory-looking, written down here once more: none of these may be missed, however little is left."""


def variants(template: Template, word: str) -> list[tuple[str, str]]:
    """The example with each of its words replaced in turn, and the word."""
    example = template.example
    return [(example[: at.start()] + word + example[at.end() :], at[0]) for at in WORD.finditer(example)]


def is_gone(template: Template, word: str) -> bool:
    """Whether less than two words of the wording are left without this one: then nothing says what it was."""
    text = template.text
    while OPTIONAL.search(text):
        text = OPTIONAL.sub("\0", text)
    words = {chunk for chunk in HOLE.sub("\0", text).split() if FIXED.search(chunk)}
    return sum(not set(FIXED.findall(chunk)) <= set(re.findall(r"\w+", word)) for chunk in words) < 2


def seen(template: Template, messages: list[str]) -> list[bool]:
    """Of each message in a log, whether a record came of it or it was told of."""
    found: set[int] = set()
    parser = Parser(on_unrecognised=lambda line: found.add(line.number))
    places = []
    number = 0
    text = ""
    for message in messages:
        lines = [(PREFIX if template.source == "vllm" else "") + part for part in message.split("\n")]
        places.append(range(number + 2, number + 2 + len(lines)))
        text += "\n".join([START, *lines]) + "\n"
        number += 1 + len(lines)
    found |= {record.line for record in [*parser.feed(text.encode()), *parser.close()]}
    return [any(line in found for line in place) for place in places]


def silent(template: Template, word: str) -> list[str]:
    """The changed examples of which nothing came although they still speak of memory or enough is left of the wording."""
    changed = variants(template, word)
    told = seen(template, [text for text, _ in changed])
    return [
        text
        for (text, replaced), noticed in zip(changed, told, strict=True)
        if not noticed and (MEMORY.search(text) or not is_gone(template, replaced))
    ]


@pytest.mark.parametrize(
    "record", sorted({t.record for t in TEMPLATES}, key=lambda r: r.__name__), ids=lambda r: r.__name__
)
def test_each_word_of_each_example(record: type) -> None:
    for template in TEMPLATES:
        if template.record is record:
            assert silent(template, "frobnicated") == []


LEDGER = [
    "ServerArgs",
    "EngineConfig",
    "WeightsLoaded",
    "WeightsRead",
    "MemoryProfile",
    "MemoryUse",
    "KVCacheMemory",
    "DeviceBlocks",
    "KVCacheCapacity",
    "MaxConcurrency",
    "GraphCapture",
    "EngineInit",
    "Ready",
    "FreeMemoryTooLow",
    "KVCacheTooSmall",
    "NoKVCacheMemory",
    "EngineStats",
]


@pytest.mark.parametrize("name", LEDGER)
def test_the_records_of_the_ledger_are_never_silent_however_short(name: str) -> None:
    for template in TEMPLATES:
        if template.record.__name__ == name:
            texts = [text for text, _ in variants(template, "frobnicated")]
            assert [text for text, noticed in zip(texts, seen(template, texts), strict=True) if not noticed] == []


def test_hardly_any_wording_is_so_short_that_nothing_is_left_of_it() -> None:
    words = [is_gone(template, word) for template in TEMPLATES for _, word in variants(template, "x")]
    assert sum(words) < 0.02 * len(words)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(TEMPLATES), st.from_regex(r"[^\s\0]{1,12}", fullmatch=True))
def test_any_other_word(template: Template, word: str) -> None:
    for text, _ in variants(template, word):
        seen(template, [text])


def test_a_crafted_line_costs_one_pass_of_each_wording() -> None:
    """With a wording's words again and again, tried in every way to share them out, one line would take ten seconds."""
    lines = [f"line Killed {number} {': line  ' * 130}" for number in range(100)]
    told: list[int] = []
    parser = Parser(on_unrecognised=lambda line: told.append(line.number))
    assert parser.feed("\n".join(lines).encode()) == []
    parser.close()
    assert parser.lines == len(lines)
    assert len(told) in (0, len(lines))
