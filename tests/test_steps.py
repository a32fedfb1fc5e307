"""Matching step by step gives what the wording's expression gives."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck._steps import has_literals, steps, take
from vlogcheck.template import Template, all_templates

ONE_LINE = [t for t in all_templates() if "\n" not in t.text and not t.embedded]
QUICK = [t for t in ONE_LINE if steps(t.parsed(), t.record.hole)]


def by_expression(template: Template, message: str) -> dict[str, str] | None:
    match = template.lines()[0].fullmatch(message)
    return None if match is None else {k: v for k, v in match.groupdict().items() if k[0] != "_" and v is not None}


def agrees(template: Template, message: str) -> bool:
    """Whether the steps say what the expression says, or leave it to be asked; return whether they found it."""
    way = steps(template.parsed(), template.record.hole)
    found = take(way, message)
    if found is not None:
        assert {k: v for k, v in found.items() if k != "_"} == by_expression(template, message)
    elif not has_literals(way, message):
        assert by_expression(template, message) is None
    return found is not None


def test_most_wordings_of_one_line_have_steps() -> None:
    assert len(QUICK) > 0.8 * len(ONE_LINE)


def test_examples_are_found() -> None:
    found = [agrees(template, template.example) for template in QUICK]
    assert sum(found) > 0.95 * len(found)


@pytest.mark.parametrize("template", QUICK, ids=lambda t: t.record.__name__)
def test_changed_examples(template: Template) -> None:
    words = re.findall(r"\S+|\s+", template.example)
    for at in range(len(words)):
        for other in ("", words[at] * 2, "1,024", "-0.5e3", words[at - 1]):
            agrees(template, "".join([*words[:at], other, *words[at + 1 :]]))
    for end in range(0, len(template.example), 3):
        agrees(template, template.example[:end])
        agrees(template, template.example[end:] + template.example[:end])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(QUICK), st.data())
def test_wordings_filled_with_anything(template: Template, data: st.DataObject) -> None:
    pieces = [literal for line in template.literals() for literal in line]
    filling = st.one_of(
        st.sampled_from(pieces), st.from_regex(r"[\d.,eA-Z -]{0,8}", fullmatch=True), st.text(max_size=6)
    )
    agrees(template, "".join(part for literal in pieces for part in (data.draw(filling), literal)) + data.draw(filling))


def test_a_template_gives_the_same_however_often_it_matches() -> None:
    for template in QUICK:
        fresh = Template(template.text, versions="", example="")
        fresh.record = template.record
        expected = by_expression(template, template.example)
        for _ in range(60):
            found = fresh.take(template.example)
            assert found is not None
            assert {k: v for k, v in found.items() if k[0] != "_" and v is not None} == expected
