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


def variants(template: Template, word: str) -> list[tuple[str, str]]:
    """The example with each of its words replaced in turn, and the word."""
    example = template.example
    return [(example[: at.start()] + word + example[at.end() :], at[0]) for at in WORD.finditer(example)]


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
    """The examples with one word changed of which nothing came."""
    texts = [text for text, _ in variants(template, word)]
    return [text for text, noticed in zip(texts, seen(template, texts), strict=True) if not noticed]


@pytest.mark.parametrize(
    "record", sorted({t.record for t in TEMPLATES}, key=lambda r: r.__name__), ids=lambda r: r.__name__
)
def test_each_word_of_each_example(record: type) -> None:
    for template in TEMPLATES:
        if template.record is record:
            assert silent(template, "frobnicated") == []


def test_a_word_that_is_nearly_the_same_and_one_in_capitals() -> None:
    for template in TEMPLATES[::7]:
        assert silent(template, "OTHER") == []
        example = template.example
        slips = [example[: at.end()] + "s" + example[at.end() :] for at in WORD.finditer(example)]
        assert [text for text, told in zip(slips, seen(template, slips), strict=True) if not told] == []


def test_a_word_less_or_more_is_noticed_but_for_the_shortest_lines() -> None:
    changed = missed = 0
    for template in TEMPLATES[::3]:
        example = template.example
        less = [example[: at.start()] + example[at.end() :] for at in WORD.finditer(example)]
        more = [example[: at.end()] + " newly" + example[at.end() :] for at in WORD.finditer(example)]
        told = seen(template, [*less, *more])
        changed += len(told)
        missed += told.count(False)
    assert changed > 5000
    assert missed < changed / 50


def test_the_line_alone_is_noticed_too() -> None:
    """Without a banner in front of it, and without a newline behind it."""
    for template in TEMPLATES[::11]:
        if "\n" in template.example:
            continue
        prefix = PREFIX if template.source == "vllm" else ""
        for text, _ in variants(template, "frobnicated"):
            told: list[int] = []
            parser = Parser(on_unrecognised=lambda line, told=told: told.append(line.number))  # type: ignore[misc]
            records = parser.feed((prefix + text).encode()) + parser.close()
            assert told or records, text


QUIET = [
    'INFO:     10.0.0.9:51234 - "POST /v1/completions HTTP/1.1" 200 OK',
    "       █     █     █▄   ▄█",
    "/srv/include/comm/allreduce.cuh(446): error: type name is not allowed",
    '  File "/opt/vllm/v1/engine/core.py", line 12, in run_busy_loop',
    '  File "<unknown>", line 0, in Run(tvm::ffi::TensorView, long)',
    "    self.run()",
    "    continue",
    "else:",
    "OK",
    "--enforce-eager",
    "INFO 03-01 10:00:09 [api_server.py:1] Supported tasks: ['generate']",
]


@pytest.mark.parametrize("line", QUIET)
def test_what_stands_beside_messages_is_not_taken_for_one(line: str) -> None:
    told: list[str] = []
    parser = Parser(on_unrecognised=lambda line: told.append(line.message))
    parser.feed(f"{START}\n{line}\n".encode())
    parser.close()
    assert told == []


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
