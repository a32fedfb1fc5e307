"""Whatever is given instead of a vLLM log: a clear message, the right exit status, never a traceback."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SERVED = ROOT / "fixtures/logs/0.24.0/llama-load.log"
PASS, FAIL, USAGE, INCONCLUSIVE = 0, 1, 2, 3
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffdb004300") + bytes(range(256)) * 40 + b"\xff\xd9"
MEASURED = """
import re, sys
from pathlib import Path
from vlogcheck.cli import main
try:
    main(sys.argv[1:])
finally:  # not ru_maxrss: a child inherits that of the process that started it
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
    print(f"\\npeak {peak[1]}", file=sys.stderr)
"""
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")


def run(*words: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "vlogcheck", *map(str, words)],
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    out, error = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + error, error
    return done.returncode, out, error


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b"", INCONCLUSIVE, "the log is empty"),
        (b"\n", INCONCLUSIVE, "not a vLLM log"),
        (JPEG, INCONCLUSIVE, "not a vLLM log"),
        (b"\0" * 100_000, INCONCLUSIVE, "not a vLLM log"),
        (b"Nov 29 18:44:01 host sshd[812]: Accepted publickey for root\n" * 400, INCONCLUSIVE, "not a vLLM log"),
        (b'10.0.0.1 - - [29/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 612\n' * 400, INCONCLUSIVE, "not a vLLM log"),
        (gzip.compress(b""), INCONCLUSIVE, "the log is empty"),
    ],
    ids=["empty", "one newline", "jpeg", "NUL bytes", "sshd", "web server", "empty gzip"],
)
def test_no_vllm_log(tmp_path: Path, content: bytes, status: int, says: str) -> None:
    log = tmp_path / "serve.log"
    log.write_bytes(content)
    code, out, _ = run(log)
    assert code == status
    assert says in out
    assert run(log, "--format", "json")[0] == status
    assert run("-", stdin=content)[0] == status
    assert run("parse", log)[:2] == (0, "")


def test_dev_null() -> None:
    code, out, _ = run("/dev/null")
    assert code == INCONCLUSIVE
    assert "the log is empty" in out


def test_missing_file(tmp_path: Path) -> None:
    code, out, error = run(tmp_path / "nothing.log")
    assert (code, out) == (USAGE, "")
    assert error == f"vlogcheck: {tmp_path}/nothing.log: no such file\n"


def test_directory(tmp_path: Path) -> None:
    code, _, error = run(tmp_path)
    assert code == USAGE
    assert "no log file in this directory" in error
    code, _, error = run("parse", tmp_path)
    assert code == USAGE
    assert "no log file in this directory" in error


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_bytes(SERVED.read_bytes())
    log.chmod(0)
    code, _, error = run(log)
    assert code == USAGE
    assert "permission denied" in error


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_say_the_same(tmp_path: Path, encoding: str) -> None:
    text = SERVED.read_bytes().decode()
    log = tmp_path / "serve.log"
    log.write_bytes(text.encode(encoding))
    assert run("parse", log) == run("parse", SERVED)
    assert run(log, "--expect-concurrency", "1")[0] == run(SERVED, "--expect-concurrency", "1")[0]


def test_cut_in_the_middle_of_a_line(tmp_path: Path) -> None:
    data = SERVED.read_bytes()
    log = tmp_path / "serve.log"
    for part in (1, 3, 10):
        for offset in (0, 17, 40):
            log.write_bytes(data[: len(data) * part // 11 + offset])
            assert run(log, "--expect-concurrency", "1")[0] in (PASS, FAIL, INCONCLUSIVE)
    log.write_bytes(data[: data.index(b"GPU KV cache size") + 20])
    code, out, _ = run(log, "--expect-concurrency", "1")
    assert code == INCONCLUSIVE
    assert "inconclusive" in out


def test_log_of_which_only_the_start_up_is_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_bytes(SERVED.read_bytes().split(b"Application startup complete.")[1])
    assert run(log)[0] == INCONCLUSIVE


def test_broken_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(SERVED.read_bytes())
    log = tmp_path / "serve.log.gz"
    log.write_bytes(packed[: len(packed) // 2])
    code, out, error = run(log)
    assert code in (PASS, FAIL, INCONCLUSIVE)
    assert "cut off" in out + error
    log.write_bytes(packed[:40] + b"\xff" * 60 + packed[100:])
    code, out, error = run(log)
    assert code == INCONCLUSIVE
    assert "damaged" in out + error or "not a vLLM log" in out


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"{}", "an empty object"),
        (b'{"model_type": "llama"}', "config.json"),
        (b'{"model_type": "llama", "num_hidden_layers": "many", "hidden_size": -1}', "config.json"),
    ],
    ids=["cut", "binary", "a list", "empty object", "no keys", "absurd values"],
)
def test_bad_configuration(tmp_path: Path, content: bytes, says: str) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(content)
    code, out, error = run(SERVED, "--model-config", config)
    if code == USAGE:
        assert says in error
    else:
        assert code in (PASS, FAIL, INCONCLUSIVE)
        assert "skipped" in out, "what the configuration does not give is no ground for a verdict"
    assert run("budget", config, "--available-kv-memory", "10GiB")[0] in (PASS, FAIL, USAGE, INCONCLUSIVE)


def test_configuration_that_does_not_exist(tmp_path: Path) -> None:
    code, _, error = run(SERVED, "--model-config", tmp_path)
    assert code == USAGE
    assert "config.json" in error


@pytest.mark.parametrize(
    "words",
    [
        ["--expect-concurrency", "many"], ["--expect-concurrency", "-1"], ["--context", "0"], ["--expect-weights", "9 parsecs"],
        ["--fail-on", "sometimes"], ["--format", "papyrus"], ["--select", "VL999"], ["--gpu-memory-utilization", "1.5"],
        ["--no-such-flag"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_unknown_flags_and_values(words: list[str]) -> None:
    code, out, error = run(SERVED, *words)
    assert (code, out) == (USAGE, "")
    assert error.strip()


def test_no_argument_is_no_crash() -> None:
    assert run()[0] in (PASS, USAGE)
    assert run("parse")[0] == USAGE
    assert run("explain", "VL999")[0] == USAGE


@on_linux
@pytest.mark.parametrize("where", ["file", "pipe"])
def test_a_single_line_of_300_megabytes_stays_small(tmp_path: Path, where: str) -> None:
    log = tmp_path / "serve.log"
    piece = b"GPU KV cache size: 12 tokens, 3 GiB of memory and so on without any newline; " * 4096
    with log.open("wb") as out:
        for _ in range(300_000_000 // len(piece) + 1):
            out.write(piece)
    with log.open("rb") as source:
        words = [str(log)] if where == "file" else ["-"]
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words], stdin=source, capture_output=True, timeout=280, check=False
        )
    error = done.stderr.decode()
    assert "Traceback" not in error, error
    assert done.returncode == INCONCLUSIVE
    peak = int(error.rsplit("peak ", 1)[1]) * 1024
    assert peak < 150_000_000, f"{peak / 1e6:.0f} MB"


@on_linux
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Every kind of line a server goes on printing, a few megabytes of each against ten times as much."""
    lines = (
        b"(APIServer pid=7) INFO 06-21 08:43:46 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation"
        b" throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%\n"
        b"(EngineCore_DP0 pid=9) INFO 06-21 08:43:46 [metrics.py:1] SpecDecoding metrics: Draft acceptance rate: 47.6%, Accepted:"
        b" 1002 tokens, Drafted: 2104 tokens\n"
        b"WARNING 06-21 08:43:46 [x.py:1] nobody knows this line about 3 GiB of memory\n"
        b'(APIServer pid=7) INFO:     10.0.0.1:41234 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    )
    peaks = []
    for times in (2_000, 20_000):
        log = tmp_path / f"{times}.log"
        log.write_bytes(SERVED.read_bytes() + lines * times)
        done = subprocess.run([sys.executable, "-c", MEASURED, str(log)], capture_output=True, timeout=120, check=False)
        peaks.append(int(done.stderr.decode().rsplit("peak ", 1)[1]) * 1024)
    assert peaks[1] - peaks[0] < 8_000_000, peaks
