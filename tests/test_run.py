from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vlogcheck import Expectation
from vlogcheck.api import Inquiry
from vlogcheck.run import RunResult, StartError, run

from .test_live import CAPACITY, LOG, START

SERVER = Path(__file__).with_name("stand_in_server.py")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "recorded.log"
    path.write_text(LOG)
    return path


def start(log: Path, *arguments: str, concurrency: float | None = 15, **options: object) -> tuple[RunResult, bytes]:
    passed: list[bytes] = []
    result = run(
        [sys.executable, str(SERVER), str(log), *arguments], Inquiry(Expectation(concurrency=concurrency)),
        on_bytes=passed.append, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return result, b"".join(passed)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_server_that_keeps_the_promise_passes_its_status_through(log: Path) -> None:
    result, output = start(log, "--then", "exit", "--status", "7")
    assert (result.report.verdict, result.exit_status) == ("pass", 7)
    assert output.decode() == LOG


def test_a_broken_promise_stops_the_server(log: Path) -> None:
    result, output = start(log, "--delay", "0.01", concurrency=16)
    assert (result.report.verdict, result.exit_status, result.kept) == ("fail", 1, False)
    assert b"got SIGTERM" in output
    assert gone(result.pid)


def test_a_server_that_ignores_term_is_killed(log: Path) -> None:
    began = time.monotonic()
    result, output = start(log, "--ignore-term", "9", concurrency=16, grace=0.5)
    assert result.exit_status == 1
    assert b"got SIGTERM" in output
    assert gone(result.pid)
    assert time.monotonic() - began >= 0.5


def test_a_server_that_dies_early_fails(tmp_path: Path) -> None:
    log = tmp_path / "recorded.log"
    log.write_text(START)
    result, _ = start(log, "--then", "die")
    assert result.report.verdict in ("fail", "inconclusive")
    assert result.exit_status in (1, 3)
    result, _ = start(log, "--then", "exit", concurrency=None)
    assert result.exit_status in (1, 3)


def test_time_out(tmp_path: Path) -> None:
    log = tmp_path / "recorded.log"
    log.write_text(START)
    result, _ = start(log, timeout=0.5)
    assert (result.report.verdict, result.exit_status) == ("inconclusive", 3)
    assert "loading weights" in str(result.report.inconclusive)
    assert gone(result.pid)


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_server_that_closes_its_output_and_lives_on_is_stopped_in_time() -> None:
    result = run(["sh", "-c", "exec >&- 2>&-; exec sleep 60"], Inquiry(Expectation()), timeout=0.3)
    assert (result.exit_status, result.report.verdict) == (3, "inconclusive")
    assert "no verdict after 0.3 s" in str(result.report.inconclusive)
    assert gone(result.pid)


def test_a_flood_of_output_is_passed_through(log: Path) -> None:
    result, output = start(log, "--then", "flood", concurrency=16, grace=2.0)
    assert result.exit_status == 1
    assert output.decode().startswith(START + CAPACITY)


def test_keep_leaves_the_server_running(log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "server.log"
    result, output = start(log, keep=kept)
    try:
        assert (result.kept, result.exit_status) == (True, 0)
        assert output.decode().startswith(START + CAPACITY)
        assert not gone(result.pid)
        deadline = time.monotonic() + 20
        while kept.read_text() != LOG and time.monotonic() < deadline:
            time.sleep(0.02)
        assert kept.read_text() == LOG
    finally:
        os.kill(result.pid, signal.SIGKILL)


def test_a_command_that_cannot_be_started() -> None:
    with pytest.raises(StartError, match="cannot start /no/such/server"):
        run(["/no/such/server"], Inquiry())


def test_signals_reach_the_server_and_its_status_comes_back(log: Path) -> None:
    command = [sys.executable, "-m", "vlogcheck.cli", "run", "--expect-concurrency", "15", "--"]
    command += [sys.executable, str(SERVER), str(log), "--status", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = b""
        while b"startup complete" not in seen:
            seen += process.stdout.read1()  # type: ignore[attr-defined]
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 5
    assert b"got SIGINT" in seen + rest
    assert b"pass" in errors
    assert b"Traceback" not in errors


def test_command_without_a_server_is_a_usage_error() -> None:
    done = subprocess.run([sys.executable, "-m", "vlogcheck.cli", "run"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"after --" in done.stderr
