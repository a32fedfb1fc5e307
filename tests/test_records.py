"""Generic tests over every record and template: adding one adds its tests."""

from __future__ import annotations

import ast
import inspect
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

import vlogcheck.records
from vlogcheck.lines import LogLine
from vlogcheck.recognise import Recogniser
from vlogcheck.template import COMMON, Record, Template, all_records, all_templates
from vlogcheck.units import GiB

RECORDS = list(all_records().values())
TEMPLATES = all_templates()
RECOGNISER = Recogniser()


def recognise(message: str) -> list[Record]:
    RECOGNISER.forget()  # one recogniser for all tests: building it anew for every example takes most of the time
    found = [RECOGNISER.recognise(LogLine(n, text)) for n, text in enumerate(message.split("\n"), 1)]
    return [record for record in found if record is not None]


def name(template: Template) -> str:
    return f"{template.record.__name__}-{template.text[:60]!r}"


def test_every_record_is_exported() -> None:
    exported = vlogcheck.records.__all__
    assert exported == sorted(exported)
    assert sorted(record.__name__ for record in RECORDS) == exported
    for record in exported:
        assert getattr(vlogcheck.records, record) is all_records()[record]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_record_and_fields_are_described(record: type[Record]) -> None:
    assert record.__doc__
    assert record.__doc__.strip()
    tree = ast.parse(inspect.getsource(sys.modules[record.__module__]))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == record.__name__)
    described = set()
    for node, following in zip(body, body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(following, ast.Expr):
            assert isinstance(following.value, ast.Constant)
            assert isinstance(node.target, ast.Name)
            described.add(node.target.id)
    assert described == set(record.field_names())
    assert not set(record.field_names()) & set(COMMON), "a field would hide a common one"


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_record_has_templates_that_fill_every_required_field(record: type[Record]) -> None:
    assert record.templates
    for template in record.templates:
        values = record.complete(template.read(template.match(template.example) or {}))
        assert set(record.required_fields()) <= set(values), template


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
def test_template(template: Template) -> None:
    SpecifierSet(template.versions)
    assert template.versions or template.source != "vllm"
    for field in template.fields:
        template.record.hole(field)
    assert template.anchors
    for anchor in template.anchors:
        assert anchor in template.example
    found = recognise(template.example)
    assert [type(record) for record in found] == [template.record]
    values = template.read(template.match(template.example) or {})
    assert found[0].own_values() == template.record(**template.record.complete(values)).own_values()


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
def test_no_other_record_matches_the_example(template: Template) -> None:
    others = {
        other.record.__name__
        for other in TEMPLATES
        if other.record is not template.record and other.match(template.example) is not None
    }
    assert not others


def test_the_first_template_that_matches_is_the_one_the_example_belongs_to() -> None:
    for template in TEMPLATES:
        first = next(t for t in TEMPLATES if t.match(template.example) is not None)
        assert first is template, f"{template!r} is never reached: {first!r} matches its example"


WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.:/", min_size=1, max_size=12)
VALUES = {
    "GiB": st.integers(-99_999, 9_999_999).map(lambda n: GiB(f"{n / 100:.2f}")),
    "float": st.integers(-10_000, 10_000_000).map(lambda n: n / 1000),
    "int": st.integers(0, 10**13),
    "bool": st.booleans(),
    "str": WORDS,
    "Address": WORDS,
    "Word": st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12),
    "Name": st.lists(st.sampled_from(["FLASH_ATTN", "Triton", "Rocm/Aiter"]), min_size=1, max_size=5).map(" ".join),
    "Kernels": st.lists(st.sampled_from(["FLASH_ATTN", "Triton", "Rocm/Aiter"]), min_size=1, max_size=5).map(" ".join),
    "Size": st.integers(0, 9_999_999).map(lambda n: GiB(f"{n / 100:.2f}")),
    "Literal": st.dictionaries(WORDS, st.integers() | WORDS, max_size=3),
}


def holes(template: Template) -> dict[str, st.SearchStrategy[object]]:
    kinds = {field: str(template.record._types[field]).replace(" | None", "").strip() for field in template.fields}
    return {field: VALUES[kind] for field, kind in kinds.items()}


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_values_survive_the_message(template: Template, data: st.DataObject) -> None:
    values = {field: data.draw(strategy, field) for field, strategy in holes(template).items()}
    message = template.render(values)
    groups = template.match(message)
    assert groups is not None
    read = template.read(groups)
    assert {field: read[field] for field in values} == values


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    recognise(text)


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_example_never_raises(template: Template, data: st.DataObject) -> None:
    example = template.example
    start = data.draw(st.integers(0, len(example)))
    end = data.draw(st.integers(start, len(example)))
    recognise(example[:start] + data.draw(st.text(max_size=10)) + example[end:])
    recognise(example[:start])
