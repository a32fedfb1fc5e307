from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vlogcheck import Expectation
from vlogcheck.many import check_many, table

from .test_live import LOG, REFUSED, START


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(12):
        (tmp_path / f"server{number:02}x.log").write_text(LOG)
    (tmp_path / "server03x.log").write_text(START + REFUSED)
    (tmp_path / "server05x.log").write_text("not vLLM\n")
    return tmp_path


def paths(folder: Path) -> list[list[str]]:
    return [[str(path)] for path in sorted(folder.glob("*.log"))]


@pytest.mark.parametrize("jobs", [1, 2])
def test_summaries_come_in_order(logs: Path, jobs: int) -> None:
    found = list(check_many(paths(logs), {"expect": Expectation(concurrency=15)}, jobs=jobs))
    assert [[item.path] for item in found] == paths(logs)
    verdicts = [item.verdict for item in found]
    assert verdicts[3] == "fail"
    assert verdicts[5] == "inconclusive"
    assert verdicts.count("pass") == 10


def test_a_log_that_cannot_be_read_is_a_row_of_its_own(logs: Path) -> None:
    found = list(check_many([*paths(logs)[:1], ["/no/such/log"]], {}, jobs=1))
    assert [item.verdict for item in found] == ["pass", "error"]
    assert table(found)[1].startswith("error")


def test_command_ends_in_a_table_worst_first(logs: Path) -> None:
    command = [sys.executable, "-m", "vlogcheck.cli", str(logs), "--expect-concurrency", "15"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    rows = done.stdout.splitlines()
    assert [row.split()[0] for row in rows[1:4]] == ["fail", "inconclusive", "pass"]
    assert rows[-1] == "1 fail, 1 inconclusive, 10 pass"
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=False)
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 12
