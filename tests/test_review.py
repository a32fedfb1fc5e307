"""Error-level findings over logs that are not part of the project: each is listed with the reason it is right."""

from __future__ import annotations

import re

from tests.conftest import ROOT, shared
from vlogcheck.api import check
from vlogcheck.registry import Severity

ROW = re.compile(r"\| (\w+)/(\S+) \| (VL\d{3}) \| (\d*) \| (.+) \|")


def listed(folder: str) -> dict[tuple[str, str, int | None], str]:
    rows = ROW.findall((ROOT / "docs" / "review" / "error-findings.md").read_text("utf-8"))
    return {(name, code, int(line) if line else None): why for place, name, code, line, why in rows if place == folder}


def compare(folder: str) -> None:
    found: dict[tuple[str, str, int | None], str] = {}
    for path in sorted(shared(folder).glob("*.log*")):
        for finding in check(path).findings:
            if finding.severity is Severity.ERROR:
                found[path.name, finding.code, finding.line] = finding.message
    known = listed(folder)
    assert not {key: text for key, text in found.items() if key not in known}, "not in docs/review/error-findings.md"
    assert not set(known) - set(found), "listed in docs/review/error-findings.md and found no more"
    assert all(known.values())


def test_public_logs() -> None:
    compare("corpus")


def test_recorded_logs() -> None:
    compare("recorded")
