"""Every log in every wrapper gives the records of the plain log, times and the wrapper's own marks aside.

Each wrapper gets its own share of the logs, so that together all logs are covered without wrapping each one fifty times.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlogcheck import parse

from . import _wrap
from .conftest import ROOT, SHARED

OWN = {"line", "time", "wrapper_time", "container", "path"}
RECORDED = [p for p in sorted((ROOT / "fixtures" / "logs").glob("0.*/*.log")) if "json-file" not in p.name]
CORPUS = sorted((SHARED / "corpus").glob("*.log"))
LOGS = [p for p in [*RECORDED, *CORPUS] if "timestamps" not in p.name]
SHARE = 4


def records(data: bytes) -> list[str]:
    found = []
    for record in parse(data):
        values = {name: value for name, value in record.to_dict().items() if name not in OWN}
        found.append(json.dumps(values, default=str))
    return found


def share(number: int) -> list[Path]:
    step = max(len(LOGS) // SHARE, 1)
    return [LOGS[(number * 7 + at) % len(LOGS)] for at in range(0, len(LOGS), step)]


@pytest.mark.parametrize("number", range(len(_wrap.WRITERS)), ids=lambda n: _wrap.WRITERS[n].__name__)
def test_wrapped_is_as_plain(number: int) -> None:
    if not CORPUS and not number:
        pytest.skip("no corpus folder: only recorded logs are wrapped")
    writer = _wrap.WRITERS[number]
    for log in share(number):
        lines = log.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n")
        plain = records(("\n".join(lines) + "\n").encode())
        wrapped = records(("\n".join(writer(lines)) + "\n").encode("utf-8", "surrogatepass"))
        assert wrapped == plain, log.name
