"""Reported failures, each with the log its user had: what has to be said about it, in which words, and what must not be.

`tests/kinds/*.toml` describes one case: the log (of the same name where none is given), the model's configuration in
`tests/kinds/models`, options, findings with their severity and the figures that have to appear in them, codes that would be false
alarms (`never`), text of the report (`shows`), or a comparison with an older log (`diff`). The logs are written in the wording of
their release from the figures of the report.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vlogcheck import check
from vlogcheck.budget.model import load_model_config
from vlogcheck.compare import diff
from vlogcheck.expect import Expectation
from vlogcheck.registry import Severity, all_checks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from vlogcheck.api import Report
    from vlogcheck.registry import Finding

KINDS = Path(__file__).parent / "kinds"
CASES = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(KINDS.glob("*.toml"))}
CHECKED = {name: case for name, case in CASES.items() if "diff" not in case}
COMPARED = {name: case for name, case in CASES.items() if "diff" in case}


def log_of(name: str, case: dict[str, Any]) -> Path:
    log: str = case.get("log", f"{name}.log")
    return KINDS / log


def run(name: str, case: dict[str, Any]) -> Report:
    model = load_model_config(KINDS / "models" / f"{case['model']}.json") if "model" in case else None
    metrics = case["metrics"].encode() if "metrics" in case else None
    expect = Expectation(**case.get("options", {}))
    return check(log_of(name, case), expect, model, ignore=case.get("ignore", ()), metrics=metrics)


def words(finding: Finding) -> str:
    return "\n".join((finding.message, finding.expected, finding.observed, finding.remedy, finding.explanation))


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_said(name: str) -> None:
    case = CHECKED[name]
    report = run(name, case)
    for due in case.get("finds", ()):
        found = [f for f in report.findings if f.code == due["code"]]
        assert found, f"{due['code']} is missing\n{report}"
        assert [f.severity for f in found] == [Severity(due["severity"])] * len(found), f"\n{report}"
        text = "\n".join(words(finding) for finding in found)
        assert not [figure for figure in due["says"] if figure not in text], f"\n{text}"
    shown = str(report)
    assert not [text for text in case.get("shows", ()) if text not in shown], f"\n{shown}"


@pytest.mark.parametrize("name", CHECKED)
def test_nothing_else_is_an_error(name: str) -> None:
    case = CHECKED[name]
    report = run(name, case)
    due = {finding["code"] for finding in case.get("finds", ()) if finding["severity"] == "error"}
    assert {f.code for f in report.findings if f.severity is Severity.ERROR} == due, f"\n{report}"
    assert not {f.code for f in report.findings} & set(case.get("never", ())), f"\n{report}"


@pytest.mark.parametrize("name", COMPARED)
def test_comparison(name: str) -> None:
    case = COMPARED[name]
    result = diff(KINDS / case["diff"]["old"], log_of(name, case))
    text = str(result)
    assert not [figure for figure in case["diff"]["says"] if figure not in text], f"\n{text}"


@pytest.mark.parametrize("name", CASES)
def test_case_is_sound(name: str) -> None:
    case = CASES[name]
    assert case["title"]
    assert log_of(name, case).is_file()
    known = all_checks()
    assert {finding["code"] for finding in case.get("finds", ())} | set(case.get("never", ())) <= known.keys()
    assert case.get("finds") or case.get("shows") or case.get("never") or case["diff"]["says"]


def test_every_log_has_a_case() -> None:
    used = {log_of(name, case).name for name, case in CASES.items()}
    used |= {case["diff"]["old"] for case in COMPARED.values()}
    assert {path.name for path in KINDS.glob("*.log")} == used


@pytest.mark.parametrize("name", [name for name, case in CHECKED.items() if "VL008" not in str(case)])
def test_logs_are_worded_as_their_release(name: str) -> None:
    assert "VL008" not in {f.code for f in run(name, CHECKED[name]).findings}
