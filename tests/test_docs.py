"""Documentation that names checks names checks that exist, and the pages can be built."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT
from vlogcheck.registry import all_checks

if TYPE_CHECKING:
    from pathlib import Path

CODE = re.compile(r"\bVL\d{3}\b")


def test_failure_kinds_name_checks_that_exist() -> None:
    text = (ROOT / "docs" / "failure-kinds.md").read_text("utf-8")
    named = set(CODE.findall(text))
    assert named - set(all_checks()) == set()
    for kind in "ABCDEFGH":
        assert re.search(rf"^\| {kind} \|.*VL\d{{3}}", text, re.M), kind
    families = {code for code in all_checks() if code[2] in "69"}
    assert families - named == set(), "every failure and option check has its place in the table"


def test_pages_name_checks_that_exist() -> None:
    checks = all_checks()
    for item in checks.values():
        assert set(CODE.findall(item.page)) <= set(checks), item.code


def test_the_sample_in_the_readme_is_what_the_demo_prints() -> None:
    from vlogcheck import Expectation, check

    readme = (ROOT / "README.md").read_text("utf-8")
    sample = readme.partition("<!-- sample -->\n```text\n")[2].partition("\n```")[0]
    report = check(
        str(ROOT / "fixtures" / "logs" / "written" / "deepseek-r1-distill-qwen-32b-bf16-tp4.log"),
        Expectation(concurrency=16, context=4096, total_memory="65520MiB"),
        str(ROOT / "fixtures" / "models" / "deepseek-r1-distill-qwen-32b"),
    )
    printed = str(report).splitlines()
    lines = [line for line in sample.splitlines() if line != "…"]
    assert len(lines) > 8
    assert [line for line in lines if line not in printed] == []
    assert [printed.index(line) for line in lines] == sorted(printed.index(line) for line in lines)


def build_docs() -> Any:
    spec = importlib.util.spec_from_file_location("build_docs", ROOT / "scripts" / "build_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_docs"] = module
    spec.loader.exec_module(module)
    return module


def test_docs_are_built_from_the_pages(tmp_path: Path) -> None:
    (tmp_path / "vl000.md").write_text("a check that is gone", "utf-8")
    written = build_docs().build(tmp_path)
    assert not (tmp_path / "vl000.md").exists()
    index = (tmp_path / "index.md").read_text("utf-8")
    for code, check in all_checks().items():
        page = tmp_path / f"{code.lower()}.md"
        assert page in written
        assert check.summary in index
        assert check.page.partition("\n")[2].strip() in page.read_text("utf-8")
