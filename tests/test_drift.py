from __future__ import annotations

import json
import re
import sys
import tarfile
import textwrap
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from packaging.version import Version

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import drift  # noqa: E402  (the script stands outside the package)
from _drift import ignore as ignore_list  # noqa: E402
from _drift.collect import BrokenError, collect_source  # noqa: E402
from _drift.compare import specifier  # noqa: E402
from _drift.match import Wording, normalise, wildcard  # noqa: E402
from _drift.pieces import Text, show  # noqa: E402
from _drift.sources import SourceError, open_release  # noqa: E402

from vlogcheck.template import Record, Template, all_templates  # noqa: E402

if TYPE_CHECKING:
    from vlogcheck.units import GiB


class _PoolLeft(Record):
    gib: GiB
    """Memory left."""

    templates = (
        Template("Pool left: {gib} GiB", versions=">=8.1", example="Pool left: 60.31 GiB"),
        Template("GPU pool left: {gib} GB", versions="<8.1", example="GPU pool left: 60.31 GB"),
        Template("HIP out of memory. {_}", versions="", source="torch", example="HIP out of memory. Tried"),
    )


def sample_templates() -> list[Template]:
    return list(_PoolLeft.templates)


OLD = """
    def report(device, left):
        logger.info("%s pool left: %.2f GB", device, left)
"""
NEW = """
    def report(left):
        logger.info_once(f"Pool left: {left / 2**30:.2f} GiB")
"""


def release(folder: Path, version: str, source: str, **more: str) -> Path:
    package = folder / f"vllm-{version}" / "vllm"
    (package / "worker").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "worker" / "pool.py").write_text(textwrap.dedent(source))
    for name, text in more.items():
        (package / f"{name}.py").write_text(textwrap.dedent(text))
    return package.parent


def run(*arguments: object, ignore: Path | None = None) -> Result:
    words = [str(argument) for argument in arguments]
    if ignore is None:
        words += ["--no-uncovered"]
    else:
        words += ["--ignore", str(ignore)]
    result = CliRunner().invoke(drift.main, [*words, "--jobs", "1", "--registry", f"{__name__}:sample_templates"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    return release(tmp_path, "8.0.0", OLD), release(tmp_path, "8.1.0", NEW)


@pytest.fixture
def nothing(tmp_path: Path) -> Path:
    path = tmp_path / "ignore.toml"
    path.write_text("# nothing\n")
    return path


def texts(source: str, call: str | None = None) -> list[str]:
    found = collect_source(textwrap.dedent(source), "module.py")
    return [show(site.text) for site in found if call is None or site.call == call]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('logger.info("KV cache: %.2f GiB, %s", x, y)', ["KV cache: {} GiB, {}"]),
        ('logger.info("100% of the cache")', ["100% of the cache"]),
        ('logger.info("used %.1f%% of the cache", x)', ["used {}% of the cache"]),
        ('logger.info(f"KV cache: {x:.2f} " f"GiB ({y!r})")', ["KV cache: {} GiB ({})"]),
        ('logger.warning_once("KV " + "cache: " + str(x))', ["KV cache: {}"]),
        ('logger.error("KV cache: {} of {total:,}".format(x, total=y))', ["KV cache: {} of {}"]),
        ('self.logger.debug("%s", f"left {x}" if x else "none left")', ["left {}", "none left"]),
        ('UNIT = "GiB"\ndef f(x):\n    logger.info("left %d %s", x, UNIT)', ["left {} GiB"]),
        ('def f(x):\n    msg = "left %d"\n    msg += " GiB"\n    logger.info(msg, x)', ["left {} GiB"]),
        (
            'def f(x):\n    msg = "left"\n    if x:\n        msg += f" {x}"\n    raise ValueError(msg)',
            ["left", "left {}"],
        ),
        ('def f(x):\n    if x:\n        m = "first"\n        return\n    m = "second"\n    logger.info(m)', ["second"]),
        ('def f():\n    parts = ["a one"]\n    parts.append("b two")\n    print(", ".join(parts))', ["a one, b two"]),
        ('def f(m="%stook %d s"):\n    logger.info(m, 1, 2)', ["1took {} s"]),
        ('f = logger.info if x else logger.debug\nf("left %d", x)', ["left {}"]),
        ('assert free > 0, f"free {free} GiB"', ["free {} GiB"]),
        ('tqdm(x, desc="Loading shards")', ["Loading shards: {}"]),
        ('logger.log(level, "left %d", x)', ["left {}"]),
        ('raise Busy(f"in use by {who}") from error', ["in use by {}"]),
        ('class E(RuntimeError):\n    def __init__(self):\n        super().__init__("all gone")', ["all gone"]),
        ('class R:\n    def __repr__(self):\n        return f"left {self.x} GiB"', ["left {} GiB"]),
        ('warnings.warn("low on\\n" "memory")', ["low on\nmemory"]),
        ('raise ValueError(textwrap.dedent("""\n    first\n      second {{}}"""))', ["\nfirst\n  second {{{{}}}}"]),
        ('"""A module about memory {}."""\nx = 1', []),
    ],
)
def test_forms_of_messages(source: str, expected: list[str]) -> None:
    assert sorted(texts(source)) == sorted(expected)


def test_where_a_message_is_made() -> None:
    (site,) = collect_source("class A:\n    def f(self):\n        raise OSError('no room')\n", "a/b.py")
    assert (site.path, site.line, site.function, site.call) == ("a/b.py", 3, "A.f", "raise OSError")


def test_a_string_that_is_passed_on_counts_as_text() -> None:
    assert texts('helper(f"left on the device: {x}")', "text") == ["left on the device: {}"]


def test_alternatives_do_not_multiply_without_end() -> None:
    source = "".join(f'a{i} = "x{i}" if c{i} else "y{i}"\n' for i in range(40))
    source += 'logger.info("memory " + ' + " + ".join(f"a{i}" for i in range(40)) + ")\n"
    assert 0 < len(collect_source(source, "m.py")) < 200


@pytest.mark.parametrize("source", ["def f(:\n", "x = '\x00'", "(" * 5000])
def test_broken_source_is_one_error(source: str) -> None:
    with pytest.raises(BrokenError, match=r"m\.py"):
        collect_source(source, "m.py")


@pytest.mark.parametrize(
    ("text", "example", "fits"),
    [
        (("a ", None, " b"), "a 1 b", True),
        (("a ", None, " b"), "a 1 b!", False),
        ((None, "b"), "aab", True),
        (("b", None), "ab", False),
        (("ab", None, "bc"), "abc", False),
        ((), "", True),
    ],
)
def test_wildcards(text: Text, example: str, fits: bool) -> None:
    assert (wildcard(text, example) is not None) is fits


@pytest.mark.parametrize(
    ("text", "example", "source", "same"),
    [
        ("left {gib} GiB", "left 1.5 GiB", ("left ", None, " GiB"), True),
        ("left {gib} GiB", "left 1.5 GiB", ("left ", None, " GB"), False),
        ("left {gib} GiB", "left 1.5 GiB", (None,), False),
        ("left {gib} GiB", "left 1.5 GiB", (None, " ", None, " ", None), False),
        ("left {gib} GiB", "left 1.5 GiB", ("left ", None, " ", None), True),
        ("left {gib} GiB", "left 1.5 GiB", ("left over ", None, " GiB"), False),
        ("left {gib} GiB", "left 1.5 GiB", ("left ", None, " GiB  "), True),
        ("left {gib} GiB[[ of {_}]]", "left 1.5 GiB of 3", ("left ", None, " GiB"), True),
        ("left {gib} GiB[[ of {_}]]", "left 1.5 GiB of 3", ("left ", None, " GiB of the card"), True),
        ("[[Engine {gib}: ]]left[[, {gib} over]]", "Engine 1: left", (None, "left, ", None, " over"), True),
        ("[[Engine {gib}: ]]left[[, {gib} over]]", "Engine 1: left", (None, "left, ", None, " of"), False),
        ("GPU left: {gib}", "GPU left: 1", (None, " left: ", None), True),
    ],
)
def test_template_against_source(text: str, example: str, source: Text, same: bool) -> None:
    template = Template(text, versions="", example=example)
    number = r"-?\d+(?:\.\d+)?"
    holes = [".*?" if piece.text == "_" else number for piece in template.parsed() if piece.kind == "hole"]
    wording = Wording.build(template.parsed(), holes, example, embedded=False)
    assert wording.matches(normalise(source)) is same


def test_agreement(both: tuple[Path, Path]) -> None:
    result = run(*both)
    assert result.exit_code == 0, result.output
    assert "2 compared, 1 from sources not read, 0 disagreement(s)" in result.output


def test_disagreement_fails_and_says_what_the_source_has(both: tuple[Path, Path], tmp_path: Path) -> None:
    newer = release(tmp_path, "8.2.0", NEW.replace("Pool left", "Pool remaining"))
    result = run(*both, newer)
    assert result.exit_code == 1
    row = next(line for line in result.output.splitlines() if line.startswith("_PoolLeft"))
    assert re.split(r"\s{2,}", row) == ["_PoolLeft", ">=8.1", ">=8.1.0,<8.2.0", "8.2.0", "-", "Pool left: {gib} GiB"]


def test_suggestions(both: tuple[Path, Path]) -> None:
    output = run(*both, "--suggest").output
    assert re.search(r"_PoolLeft +>=8\.1\.0 +Pool left", output)
    assert re.search(r"_PoolLeft +>=8\.0\.0,<8\.1\.0 +GPU pool left", output)


def test_specifier_names_the_gaps() -> None:
    seen = [Version(text) for text in ("1.0", "1.1", "1.2", "1.3", "1.4")]
    assert specifier(seen, [seen[1], seen[3]]) == ">=1.1,<1.4,!=1.2"


def test_uncovered_message_is_listed(tmp_path: Path, nothing: Path) -> None:
    folder = release(tmp_path, "8.1.0", NEW + '        logger.info("Swap pool: %.2f GiB of host memory", left)\n')
    result = run(folder, ignore=nothing)
    assert result.exit_code == 1
    assert "vllm 8.1.0: worker/pool.py:4 info\n    Swap pool: {} GiB of host memory" in result.output
    assert re.search(r"^8\.1\.0 +2 +1 +0 +1$", result.output, re.MULTILINE)


def test_uncovered_messages_of_old_releases_do_not_fail(tmp_path: Path, nothing: Path) -> None:
    folder = release(tmp_path, "8.1.0", NEW + '        logger.info("Swap pool: %.2f GiB of host memory", left)\n')
    result = run(folder, "--uncovered-from", "8.2", ignore=nothing)
    assert result.exit_code == 0
    assert "Swap pool" not in result.output


def test_ignore_list_is_honoured_and_idle_entries_named(both: tuple[Path, Path], tmp_path: Path) -> None:
    (both[1] / "vllm" / "other.py").write_text('logger.info("Kernel blocks: %d", 1)\nlogger.info("KV blocks: %d", 1)\n')
    path = tmp_path / "some.toml"
    path.write_text(
        '[[ignore]]\npath = "oth*.py"\ncall = "info"\ntext = "^Kernel blocks"\nreason = "not the pool"\n'
        '[[ignore]]\ntext = "Nobody says this"\nreason = "gone"\n'
    )
    result = run(*both, ignore=path)
    assert result.exit_code == 1
    assert "KV blocks: {}" in result.output
    assert "Kernel blocks" not in result.output.split("Ignore entries")[0]
    assert "text Nobody says this (gone)" in result.output
    path.write_text(path.read_text() + '[[ignore]]\ntext = "^KV blocks"\nreason = "the same"\n')
    assert run(*both, ignore=path).exit_code == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[[ignore]]\ntext = "x"\n', "no reason"),
        ('[[ignore]]\nreason = "x"\n', "no condition"),
        ('[[ignore]]\nreason = "x"\ntext = "("\n', "unterminated"),
        ('[[ignore]]\nreason = "x"\nwhere = "y"\n', "unknown key where"),
        ("[[ignore\n", "ignore.toml"),
    ],
)
def test_bad_ignore_list_is_a_usage_error(both: tuple[Path, Path], nothing: Path, content: str, problem: str) -> None:
    nothing.write_text(content)
    result = run(*both, ignore=nothing)
    assert result.exit_code == 2
    assert problem in result.output


def test_own_ignore_list_can_be_read_and_gives_reasons() -> None:
    rules = ignore_list.load(SCRIPTS / "drift_ignore.toml").rules
    assert all(len(rule.reason.split()) >= 3 for rule in rules)


def test_broken_file_is_reported_and_skipped(both: tuple[Path, Path]) -> None:
    (both[0] / "vllm" / "broken.py").write_text("def f(:\n")
    result = run(*both)
    assert result.exit_code == 0
    assert "8.0.0: skipped broken.py: SyntaxError" in result.output
    assert "Traceback" not in result.output


def test_wheel_and_sdist_are_read_like_a_folder(both: tuple[Path, Path], tmp_path: Path) -> None:
    folder = both[1]
    with zipfile.ZipFile(tmp_path / "vllm-8.1.0-py3-none-any.whl", "w") as wheel:
        for file in sorted(folder.rglob("*.py")):
            wheel.write(file, file.relative_to(folder))
        wheel.writestr("vllm-8.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: vllm\nVersion: 8.1.0\n")
    with tarfile.open(tmp_path / "vllm-8.1.0.tar.gz", "w:gz") as sdist:
        sdist.add(folder, "vllm-8.1.0")
    archives = ("vllm-8.1.0-py3-none-any.whl", "vllm-8.1.0.tar.gz")
    read = [open_release(str(path)) for path in (folder, *(tmp_path / name for name in archives))]
    assert {(each.name, str(each.version), tuple(sorted(each.files))) for each in read} == {
        ("vllm", "8.1.0", ("__init__.py", "worker/pool.py"))
    }


def test_installed_package_is_read_without_importing_it() -> None:
    found = open_release("packaging")
    assert found.name == "packaging"
    assert "specifiers.py" in found.files


@pytest.mark.parametrize("content", [None, b"no archive at all"])
def test_what_is_no_release_is_said(tmp_path: Path, both: tuple[Path, Path], content: bytes | None) -> None:
    path = tmp_path / "nothing-here"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match="nothing-here"):
        open_release(str(path))
    assert run(path, both[0]).exit_code == 2


def test_no_release_is_a_usage_error() -> None:
    assert run().exit_code == 2


def test_cache_is_used_until_a_file_changes(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = run(*both, "--cache", cache)
    opened: list[str] = []

    def spy(what: str) -> Any:
        opened.append(Path(what).name)
        return open_release(what)

    monkeypatch.setattr(drift, "open_release", spy)
    assert run(*both, "--cache", cache).output == first.output
    assert opened == []
    (both[0] / "vllm" / "more.py").write_text("x = 1\n")
    assert run(*both, "--cache", cache).exit_code == 0
    assert opened == ["vllm-8.0.0"]
    for kept in cache.iterdir():
        kept.write_text(json.dumps({"collector": "cut"}))
    assert run(*both, "--cache", cache).output == first.output


def test_matrix(both: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "docs" / "versions.md"
    run(*both, "--write-matrix", path)
    page = path.read_text(encoding="utf-8")
    assert "| record | 8.0 | 8.1 |" in page
    assert "| `_PoolLeft` | ● | ● |" in page
    assert "- 8.1.0: `Pool left: {gib} GiB`" in page


def test_explanation(both: tuple[Path, Path]) -> None:
    output = run(*both, "--explain", "_PoolLeft").output
    assert "  = {} pool left: {} GB" in output


def test_every_template_can_be_held_against_source() -> None:
    from _drift.compare import wording

    for template in all_templates():
        held = wording(template)
        # its own example, as a source without holes, is the wording
        assert held.matches(normalise((held.example,))), template
