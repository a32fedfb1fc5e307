"""The recorded logs: each yields the records beside it, describes itself, and leaks nothing."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from vlogcheck import check, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = sorted(p for p in (FIXTURES / "logs").rglob("*") if p.is_file() and p.suffix not in (".jsonl", ".toml"))
LEAKS = re.compile(
    rb"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9]{20,}|ghp_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|Bearer [A-Za-z0-9._\-]{12,}"
    rb"|[\w.+-]+@(?!example\.)[\w-]+\.(?:com|org|net|io|cn)\b|/home/(?!user/)\w+/|/root/(?!\.cache)\w+"
    rb"|\b(?!10\.|127\.|0\.0\.0\.0|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.)"
    rb"(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}\b(?![.\w-])"
)


def beside(log: Path, suffix: str) -> Path:
    return log.with_suffix(suffix) if log.suffix == ".log" else log.with_name(log.name + suffix)


def name(path: Path) -> str:
    return str(path.relative_to(FIXTURES / "logs"))


def test_there_are_logs() -> None:
    assert len(LOGS) > 100


@pytest.mark.parametrize("log", LOGS, ids=name)
def test_records(log: Path) -> None:
    expected = [json.loads(line) for line in beside(log, ".jsonl").read_text("utf-8").splitlines()]
    records = [json.loads(json.dumps(record.to_dict(), default=str)) for record in parse(log)]
    assert records == expected


@pytest.mark.parametrize("log", LOGS, ids=name)
def test_log_says_how_it_was_made(log: Path) -> None:
    about = tomllib.loads(beside(log, ".toml").read_text("utf-8"))
    assert about["kind"] in ("recorded", "recorded, wrapped afterwards", "written")
    assert about["cut"]
    if config := about.get("model_config"):
        assert (FIXTURES / config).is_file()


@pytest.mark.parametrize("log", LOGS, ids=name)
def test_no_private_data(log: Path) -> None:
    if log.suffix in (".gz", ".xz", ".bz2", ".zst"):
        pytest.skip("the uncompressed twin is searched")
    found = LEAKS.search(log.read_bytes())
    assert found is None, found


@pytest.mark.parametrize("log", [p for p in LOGS if "wrapped" not in p.parts], ids=name)
def test_a_server_that_served_has_no_error(log: Path) -> None:
    about = tomllib.loads(beside(log, ".toml").read_text("utf-8"))
    happened = " ".join(about.get("what_happened", []))
    if not happened.startswith("ready"):
        pytest.skip("it did not come up: the review of error findings covers it")
    if "kill" in happened.split("left-over")[0].lower():
        pytest.skip("a process was killed on purpose")
    if "HTTPError 500" in happened:
        pytest.skip("its engine died on the first request")
    errors = [finding for finding in check(log).findings if finding.severity == "error"]
    assert not errors
