"""The command as people and gates use it: verdicts as exit status, several logs, standard input, compressed logs, help."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from tests.conftest import ROOT
from vlogcheck import cli
from vlogcheck.registry import all_checks
from vlogcheck.template import all_records

if TYPE_CHECKING:
    from pathlib import Path

LOG = ROOT / "fixtures" / "logs" / "written" / "deepseek-r1-distill-qwen-32b-bf16-tp4.log"
OTHER = ROOT / "fixtures" / "logs" / "0.32.0" / "opt.log"
PASS, FAIL, USAGE, INCONCLUSIVE = 0, 1, 2, 3


def run(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "vlogcheck", *map(str, words)], input=stdin, capture_output=True, cwd=ROOT, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--expect-concurrency 152 --context 4096", PASS),
        ("--expect-concurrency 153 --context 4096", FAIL),
        ("--expect-concurrency 153 --context 4096 --ignore VL4", PASS),
        ("--expect-concurrency 153 --context 4096 --select VL3", PASS),
        ("--expect-concurrency 153 --context 4096 --ignore VL999", USAGE),
        ("--expect-concurrency 153 --select VL4 --ignore VL4", USAGE),
        ("--expect-tokens 624288", PASS),
        ("--expect-tokens 624289", FAIL),
        ("--expect-weights 15.4GiB", PASS),
        ("--expect-weights 61.6GiB", FAIL),
        ("--kv-bytes-per-token 64KiB --total-memory 65520MiB", INCONCLUSIVE),
        ("--kv-bytes-per-token 64KiB --expect-tokens 624288", PASS),
        ("--fail-on note", FAIL),
        ("--strict", INCONCLUSIVE),
        ("--expect-weights much", USAGE),
        ("--expect-concurrency 0", USAGE),
        ("--no-such-option", USAGE),
        ("--timeout 5m", USAGE),
        ("--expect-tokens 624,288", PASS),
        ("--expect-tokens 600k", USAGE),
        ("--context 4k", USAGE),
        ("--context -5", USAGE),
        ("--timeout 0", USAGE),
        ("--tee", USAGE),
        ("--until ready", USAGE),
        ("--until decided", USAGE),
        ("--follow --jobs 2", USAGE),
    ],
)
def test_exit_status(words: str, status: int) -> None:
    done = run(LOG, *shlex.split(words))
    assert done.returncode == status, done.stdout.decode() + done.stderr.decode()
    assert bool(done.stderr) == (status == USAGE)


def test_what_was_skipped_is_shown_and_counted() -> None:
    report = json.loads(run(LOG, "--format", "json").stdout)
    assert report["skipped"]
    assert all(item["reason"] for item in report["skipped"])
    counted = re.search(r"(\d+) checks? (?:was|were )?skipped|skipped\D*(\d+)", run(LOG).stdout.decode())
    assert counted
    assert int(counted[1] or counted[2]) == len(report["skipped"])


def test_standard_input_and_compressed_logs_give_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "serve.log.gz"
    packed.write_bytes(gzip.compress(LOG.read_bytes()))
    plain = run("parse", LOG).stdout
    assert plain
    assert run("parse", packed).stdout == plain
    assert run("parse", "-", stdin=LOG.read_bytes()).stdout == plain
    assert run("-", "--expect-concurrency", 153, "--context", 4096, stdin=packed.read_bytes()).returncode == FAIL


def test_several_logs_and_the_worst_decides(tmp_path: Path) -> None:
    assert run(LOG, OTHER).returncode == PASS
    assert run(LOG, OTHER, "--expect-tokens", 624288).returncode == FAIL
    none = tmp_path / "access.log"
    none.write_text("GET / 200\n")
    assert run(LOG, none).returncode == INCONCLUSIVE
    lines = run(LOG, OTHER, "--format", "json").stdout.splitlines()
    assert [json.loads(line)["path"] for line in lines] == [str(LOG), str(OTHER)]


def test_parse_reads_rotated_parts_as_one_log(tmp_path: Path) -> None:
    whole = LOG.read_bytes().splitlines(keepends=True)
    for name, part in (("serve.log.2", whole[:20]), ("serve.log.1", whole[20:35]), ("serve.log", whole[35:])):
        (tmp_path / name).write_bytes(b"".join(part))

    def rows(output: bytes) -> list[dict[str, object]]:
        return [{k: v for k, v in json.loads(line).items() if k != "line"} for line in output.splitlines()]

    plain = rows(run("parse", LOG).stdout)
    named = rows(run("parse", *(tmp_path / name for name in ("serve.log", "serve.log.1", "serve.log.2"))).stdout)
    assert rows(run("parse", tmp_path).stdout) == named
    assert {str(row.pop("path")).rpartition("/")[2] for row in named} == {"serve.log", "serve.log.1", "serve.log.2"}
    assert named == plain


def test_parse_says_where_it_read_nothing(tmp_path: Path) -> None:
    foreign = tmp_path / "access.log"
    foreign.write_text("GET / 200\nGET /health 200\n")
    done = run("parse", foreign)
    assert (done.returncode, done.stdout) == (PASS, b"")
    assert done.stderr.decode() == f"vlogcheck: {foreign}: no vLLM message in 2 lines\n"
    assert run("parse", "-", stdin=b"GET / 200\n").stderr == b"vlogcheck: no vLLM message in 1 line\n"
    both = run("parse", foreign, LOG)
    assert both.stdout
    assert f"no vLLM message in 1 of 2 files: {foreign}" in both.stderr.decode()
    assert not run("parse", LOG).stderr
    assert b"no memory-looking or reworded line that no template knows" in run("parse", "--unrecognised", LOG).stderr


@pytest.mark.parametrize(
    ("device", "status", "says"),
    [
        ("potato", USAGE, "known are"),
        ("", USAGE, "H100"),
        ("H100", PASS, ""),
        ("MI300X", PASS, "card 'MI300X' is not known: compute capability 9.0 assumed"),
    ],
)
def test_a_card_that_can_be_none_is_refused(device: str, status: int, says: str) -> None:
    config = ROOT / "fixtures" / "models" / "deepseek-r1-distill-qwen-32b"
    done = run("budget", config, "--total-memory", "80GiB", "--device", device, "--", "-tp", 4, "--max-model-len", 4096)
    assert done.returncode == status, done.stderr.decode()
    assert says in (done.stderr if status == USAGE else done.stdout).decode()


def test_a_mistyped_command_is_no_missing_log() -> None:
    for words in (("chek", LOG), ("explan", "VL401"), ("difff", LOG, LOG)):
        done = run(*words)
        assert done.returncode == USAGE
        assert "did you mean `vlogcheck " in done.stderr.decode()
    assert b"serve: no such file" in run("serve").stderr


def test_a_short_form_that_has_two_meanings_is_not_guessed() -> None:
    assert "4000 or 4096" in run(LOG, "--context", "4k").stderr.decode()
    assert "2000000 or 2097152" in run(LOG, "--expect-tokens", "2M").stderr.decode()


def test_lists_and_pages() -> None:
    rows = run("list", "checks").stdout.decode().splitlines()
    assert rows[0].split() == ["code", "severity", "since", "name", "flags"]
    listed = {code: (severity, since, name) for code, severity, since, name, *_ in map(str.split, rows[1:])}
    assert listed == {code: (c.severity.value, c.since, c.name) for code, c in all_checks().items()}
    rows = run("list", "records").stdout.decode().splitlines()
    assert {row.split()[0] for row in rows[1:]} == set(all_records())
    page = run("explain", "vl401").stdout.decode()
    assert page.strip() == all_checks()["VL401"].page.strip()
    assert run("explain", "concurrency_below_expected").stdout.decode() == page
    assert run("explain", "VL777").returncode == USAGE


def group() -> tuple[click.Group, click.Context]:
    return cli._cli, click.Context(cli._cli)


def test_help_in_the_documentation_is_what_help_says() -> None:
    spec = importlib.util.spec_from_file_location("build_help", ROOT / "scripts" / "build_help.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert written.split() == module.text().split(), "run scripts/build_help.py"


def test_options_in_the_documentation_exist() -> None:
    commands, context = group()
    names = commands.list_commands(context)
    known = {}
    for name in names:
        command = commands.get_command(context, name)
        assert command is not None
        known[name] = {option for parameter in command.params for option in parameter.opts}
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.md")):
        for line in re.findall(r"vlogcheck (?!-h\b)([^`\n#|]*)", page.read_text("utf-8")):
            words = line.partition(" -- ")[0].split()
            name = words[0] if words and words[0] in known else "check"
            wrong = {w.partition("=")[0] for w in words if re.fullmatch(r"--[a-z][a-z-]*(?:=.*)?", w)} - known[name]
            assert wrong <= {"--version", "--help"}, f"{page.name}: {line}"
