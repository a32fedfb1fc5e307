"""Every remedy is a figure that can be computed from the example, and doing what it says removes the finding."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import vlogcheck.checks
from tests.remedies import (  # noqa: F401  (they register)
    _concurrency,
    _device,
    _failures,
    _graphs,
    _kv,
    _layout,
    _log,
    _options,
    _out_of_memory,
    _ranks,
    _weights,
)
from tests.remedies._case import REMEDIES, Case
from tests.test_kinds import CHECKED
from tests.test_kinds import run as reported
from tests.test_pages import CHECKS, Block, blocks, run
from vlogcheck.registry import Check, Finding, all_checks

FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
FOLDER = Path(vlogcheck.checks.__file__).parent


@cache
def found(code: str) -> tuple[tuple[Block, tuple[Finding, ...]], ...]:
    """The blocks of the check's page with what it finds in them."""
    return tuple(
        (block, tuple(f for f in run(block).findings if f.code == code)) for block in blocks(all_checks()[code])
    )


def flagged(item: Check) -> list[Case]:
    """Every finding of the check on its own page."""
    cases = [Case(block, finding) for block, findings in found(item.code) for finding in findings]
    assert cases, "nothing on its page is flagged"
    return cases


@cache
def constants(code: str) -> set[str]:
    """The figures that stand in the texts of the check's module, docstrings apart."""
    tree = ast.parse((FOLDER / f"{code.lower()}.py").read_text("utf-8"))
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said
    ]
    return {figure for text in texts for figure in FIGURE.findall(text)}


def stated_in_numbers(finding: Finding) -> None:
    assert finding.line is not None, finding
    assert finding.expected, finding
    assert finding.observed, finding
    fixed = constants(finding.code)
    computed = [figure for figure in FIGURE.findall(finding.remedy) if figure not in fixed]
    assert computed, f"{finding.code}: no figure that was computed in: {finding.remedy}"


@pytest.mark.parametrize("item", CHECKS, ids=lambda c: c.code)
def test_every_finding_has_a_line_both_sides_and_a_remedy_in_numbers(item: Check) -> None:
    for case in flagged(item):
        stated_in_numbers(case.finding)


@pytest.mark.parametrize("name", CHECKED)
def test_so_has_every_finding_of_a_reported_failure(name: str) -> None:
    for finding in reported(name, CHECKED[name]).findings:
        stated_in_numbers(finding)


@pytest.mark.parametrize("item", CHECKS, ids=lambda c: c.code)
def test_doing_what_it_says_removes_it(item: Check) -> None:
    assert item.code in REMEDIES, "a new check needs its remedy here"
    for case in flagged(item):
        before = next(findings for block, findings in found(item.code) if block is case.block)
        done = list(REMEDIES[item.code](case))
        assert case.told_figures, f"no figure was computed again for: {case.finding.remedy}"
        assert done
        for block in done:
            assert block != case.block
            report = run(block)
            left = [f for f in report.findings if f.code == item.code]
            assert len(left) < len(before), f"\n{case.finding.remedy}\n{block.log}\n{report}"
            assert not any(same(f, case.finding) for f in left), f"\n{report}"
            skipped = [s.reason for s in report.skipped if s.code == item.code]
            assert not skipped or case.silent, f"the check was not made: {skipped}\n{block.log}"
            assert report.startups


@pytest.mark.parametrize("item", CHECKS, ids=lambda c: c.code)
def test_a_program_and_a_person_are_told_the_same(item: Check) -> None:
    for case in flagged(item):
        remedy = case.finding.remedy.replace(",", "")
        for name, value in case.finding.fix.items():
            if value in ("false", "none") or (value == 1 and name in ("enforce_eager", "pipeline_parallel_size")):
                option = name.replace("_", "-")  # told by the option that does it
                assert option in remedy or option.removeprefix("enable-") in remedy or "without stages" in remedy
            elif isinstance(value, int) and name.endswith("_bytes") and str(value) not in remedy:
                assert re.search(rf"\b{value / 2**30:.2f} ?GiB|\b{value // 2**20}MiB", remedy), (name, value, remedy)
            else:
                figure = f"{value:g}" if isinstance(value, float) else str(value)
                option = name if name.isupper() else "--" + name.replace("_", "-")
                told = rf"{option}[ =]{re.escape(figure)}\b" if option in remedy else rf"\b{re.escape(figure)}\b"
                assert re.search(told, remedy), (name, value, remedy)


def same(one: Finding, other: Finding) -> bool:
    return (one.message, one.line) == (other.message, other.line)


def test_no_remedy_without_a_check() -> None:
    assert set(REMEDIES) == {item.code for item in CHECKS}
