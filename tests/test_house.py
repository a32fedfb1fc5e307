"""Rules of the house that no linter holds: sorted `__all__`, no catch-all, one text per fact, short guides."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.conftest import ROOT
from vlogcheck.registry import all_checks

PACKAGE = ROOT / "src" / "vlogcheck"
MODULES = sorted(PACKAGE.rglob("*.py"))
REGISTERED = re.compile(r"checks/(vl\d{3}|__init__)\.py|budget/(__init__|kinds/\w+)\.py|.*/__main__\.py|__main__\.py")
"""Modules nobody imports a name from: they declare a check or a kind, or only hold others."""


def tree(path: object) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))  # type: ignore[attr-defined]


def exported(module: ast.Module) -> list[str] | None:
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by name: the order of ruff's RUF022."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module(path: object) -> None:
    module = tree(path)
    assert ast.get_docstring(module)
    name = str(path.relative_to(PACKAGE))  # type: ignore[attr-defined]
    names = exported(module)
    if not REGISTERED.fullmatch(name) and not name.rpartition("/")[2].startswith("_"):
        assert names, "a public module says what is public"
    if names is not None:
        assert names == sorted(names, key=order)
        assert len(names) == len(set(names))
    for node in ast.walk(module):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            assert not re.search(r"\b(everything|Exception|BaseException)\b", caught), f"line {node.lineno}: {caught}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.parent.name != "records"], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_a_long_file_says_why(path: object) -> None:
    """About 200 lines is the measure; files in `records/` are tables."""
    if len(path.read_text("utf-8").splitlines()) > 225:  # type: ignore[attr-defined]
        assert re.search(r"\blong\b", ast.get_docstring(tree(path)) or "", re.I)


def test_a_check_is_two_files_with_the_same_stem() -> None:
    folder = PACKAGE / "checks"
    code = {path.stem for path in folder.glob("vl*.py")}
    assert code == {path.stem for path in folder.glob("vl*.md")} == {c.lower() for c in all_checks()}
    for name, item in all_checks().items():
        assert re.fullmatch(r"VL[0-69]\d\d", name), "a family that does not exist"
        assert len((folder / f"{name.lower()}.py").read_text("utf-8").splitlines()) <= 200
        assert item.function.__name__ == item.name


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_sections_of_the_guide_are_short() -> None:
    sections = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.M)[1:]
    assert [section.partition("\n")[0] for section in sections] == [
        "Add a wording",
        "Add a check",
        "A new vLLM release",
    ]
    for section in sections:
        assert len(section.strip().splitlines()) - 1 <= 10, section


def test_the_guide_names_every_public_module() -> None:
    table = [line for line in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    named = [name for line in table for name in re.findall(r"`([a-z_]+/?)`", line)]
    there = [path.stem for path in PACKAGE.glob("[a-z]*.py")]
    there += [f"{path.parent.name}/" for path in PACKAGE.glob("[a-z]*/__init__.py")]
    assert sorted(named) == sorted(there)


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_nothing_generated_is_kept() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout")
    generated = re.compile(r"docs/(checks/|versions)|(^|/)(build|dist|__pycache__)/|\.pyc$|\.egg-info")
    assert not [name for name in listed.stdout.splitlines() if generated.search(name)]
