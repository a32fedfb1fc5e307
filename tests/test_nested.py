"""What the server writes, in what runs it, in what collects it: the records are those of the log that is in no wrapper."""

from __future__ import annotations

import json

import pytest

from vlogcheck import parse

from . import _nest, _wrap
from .conftest import ROOT

LOG = (ROOT / "fixtures" / "logs" / "0.32.0" / "docker.docker-logs.log").read_text("utf-8").split("\n")
LINES = [
    line
    for number, line in enumerate(LOG[:-1])
    if number < 26 or number % 5 == 1 or "omplete" in line or "KV cache" in line
]
OWN = {"line", "time", "wrapper_time", "container", "path"}


def records(lines: list[str]) -> list[str]:
    found = []
    made = list(parse(("\n".join(lines) + "\n").encode()))
    assert len({record.container for record in made}) == 1, "one server is taken for several"
    for record in made:
        found.append(
            json.dumps({name: value for name, value in record.to_dict().items() if name not in OWN}, default=str)
        )
    return found


INNER = {inner.__name__: list(inner(LINES)) for inner in _nest.INNER}
EXPECTED = {name: records(lines) for name, lines in INNER.items()}


def test_the_servers_own_formats_differ_in_what_they_leave_out_only() -> None:
    want = [json.loads(record) for record in EXPECTED["plain"]]
    assert len(want) > 25
    for name, found in EXPECTED.items():
        for plain, record in zip(want, map(json.loads, found), strict=True):
            assert {key for key in plain if plain[key] != record[key]} <= {"process", "pid", "source"}, name


@pytest.mark.parametrize("outer", _nest.OUTER, ids=lambda writer: writer.__name__)
@pytest.mark.parametrize("middle", _nest.MIDDLE, ids=lambda writer: writer.__name__)
def test_three_wrappers_come_off(outer: _wrap.Writer, middle: _wrap.Writer) -> None:
    if outer is middle:
        pytest.skip("the same twice: see test_wrappers")
    turn = _nest.MIDDLE.index(middle) + _nest.OUTER.index(outer)
    for number, (name, lines) in enumerate(INNER.items()):
        if (number + turn) % 2 == 0:  # each two of them meet, and the three are tried half of them
            assert records(list(outer(middle(lines)))) == EXPECTED[name], name


DEEP = [
    (_nest.notebook_on_one_line, _wrap.cri, _nest.docker_cut),
    (_wrap.notebook, _wrap.cri, _nest.docker_cut),
    (_wrap.compose_v2, _nest.notebook_on_one_line, _wrap.cri),
    (_nest.docker_cut, _nest.notebook_on_one_line, _nest.head("[node-7] ")),
    (_nest.notebook_on_one_line, _wrap.cri, _wrap.fluentbit),
    (_nest.head("site A, tick #: "), _wrap.cri, _nest.docker_cut),
    (_nest.level_added, _wrap.journal_json, _nest.head("gpu0> ")),
]


@pytest.mark.parametrize("writers", DEEP, ids=lambda writers: " ".join(writer.__name__ for writer in writers))
@pytest.mark.parametrize("name", INNER)
def test_four_wrappers_come_off(name: str, writers: tuple[_wrap.Writer, ...]) -> None:
    lines = INNER[name]
    for writer in writers:
        lines = list(writer(lines))
    assert records(lines) == EXPECTED[name]


def test_pieces_of_pieces_are_put_together() -> None:
    long = f"(EngineCore pid=17) INFO 11-29 16:09:37 [a.py:1] non-default args: {{'model': '{'m' * 70_000}'}}"
    for inner, outer in (
        (_wrap.cri, _nest.docker_cut),
        (_nest.docker_cut, _wrap.cri),
        (_nest.docker_cut, _nest.docker_cut),
    ):
        lines = list(outer(inner([*LINES, long, *LINES])))
        assert records(lines) == records([*LINES, long, *LINES]), (inner.__name__, outer.__name__)
