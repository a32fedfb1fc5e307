from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import Expectation
from vlogcheck._reading import read
from vlogcheck.api import Inquiry
from vlogcheck.live import Event, Watcher, awatch, watch
from vlogcheck.runtime import RunTime

BANNER = "(EngineCore pid=9) INFO 03-01 10:00:00 [core.py:93] Initializing a V1 LLM engine (v0.18.1) with config: {}\n"
CONFIG = (
    "model='m', dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1, pipeline_parallel_size=1,"
    " data_parallel_size=1"
)
ARGS = (
    "(APIServer pid=1) INFO 03-01 09:59:58 [utils.py:233] non-default args: {'model_tag': 'm', 'max_model_len': 4096}\n"
)
CAPACITY = """\
(EngineCore pid=9) INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: 4.37 GiB
(EngineCore pid=9) INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: 63,584 tokens
(EngineCore pid=9) INFO 03-01 10:00:09 [kv_cache_utils.py:719] Maximum concurrency for 4,096 tokens per request: 15.52x
"""
REST = """\
(EngineCore pid=9) INFO 03-01 10:00:19 [core.py:171] init engine (profile, create kv cache, warmup model) took 12.00 seconds
(APIServer pid=1) INFO:     Application startup complete.
"""
REFUSED = (
    "(EngineCore pid=9) ERROR 03-01 10:00:09 [core.py:700] ValueError: No available memory for the cache blocks. Try increasing"
    " `gpu_memory_utilization` when initializing the engine.\n"
)
START = ARGS + BANNER.format(CONFIG)
LOG = START + CAPACITY + REST


def decide(log: str, concurrency: float | None, until: str = "decided", size: int = 1 << 16) -> tuple[str | None, int]:
    """Verdict, and the line on which it fell."""
    watcher = Watcher(Inquiry(Expectation(concurrency=concurrency)), until=until)
    data = log.encode()
    for at in range(0, len(data), size):
        watcher.feed(data[at : at + size])
        if watcher.report is not None:
            return watcher.report.verdict, watcher.report.facts.startups[-1].last_line
    return None, 0


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 16])
@pytest.mark.parametrize(
    ("concurrency", "until", "expected"),
    [
        (15, "decided", ("pass", 5)),
        (16, "decided", ("fail", 5)),
        (None, "decided", ("pass", 7)),
        (15, "ready", ("pass", 7)),
    ],
)
def test_decides_on_the_line_that_settles_it(
    concurrency: float | None, until: str, expected: tuple[str, int], size: int
) -> None:
    assert decide(LOG, concurrency, until, size) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.sampled_from([14, 16]))
def test_the_verdict_does_not_depend_on_how_the_bytes_come(sizes: list[int], concurrency: float) -> None:
    watcher = Watcher(Inquiry(Expectation(concurrency=concurrency)))
    data = (START + CAPACITY + REFUSED).encode()
    at = turn = 0
    while at < len(data) and watcher.report is None:
        size = sizes[turn % len(sizes)]
        watcher.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert watcher.report is not None
    assert watcher.report.verdict == ("pass" if concurrency == 14 else "fail")


STATS = (
    "(APIServer pid=1) INFO 03-01 10:{minute:02}:00 [loggers.py:310] Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg"
    " generation throughput: 7.5 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%,"
    " Prefix cache hit rate: 0.0%\n"
)


@pytest.mark.parametrize("size", [97, 1 << 16])
def test_a_followed_log_takes_metrics_lines_as_a_whole_one_does(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = "".join(
        STATS.format(minute=n % 60, running=n % 17, waiting=n % 5, usage=(n * 7) % 100 + 0.5) for n in range(400)
    )
    data = (LOG + stats).encode()
    whole = read(data).startups[-1]
    records: list[Any] = []
    add = RunTime.add
    monkeypatch.setattr(RunTime, "add", lambda self, record: records.append(record) or add(self, record))
    watcher = Watcher(Inquiry(Expectation(concurrency=15)), history=True)  # it is all there already, and not judged
    for at in range(0, len(data), size):
        watcher.feed(data[at : at + size])
    followed = watcher.collector.startups[-1]
    assert vars(followed.runtime) == vars(whole.runtime)
    assert followed.counts == whole.counts
    assert followed.last_line == whole.last_line == 407
    assert len(records) == 99, "from the hundredth on they are read as mere figures"


def test_waiting_makes_the_verdict_ready_and_changes_nothing() -> None:
    watcher = Watcher(Inquiry(Expectation(concurrency=16)))
    watcher.feed(START.encode())
    watcher.idle()
    assert watcher.report is None
    watcher.feed(CAPACITY.encode())
    assert watcher.report is not None
    assert watcher.report.verdict == "fail"


def test_a_fatal_line_fails_at_once() -> None:
    assert decide(START + REFUSED, 15) == ("fail", 3)


ANNOUNCED = "(EngineCore pid=9) ERROR 03-01 10:00:09 [core.py:700] EngineCore failed to start.\n"


def test_an_announced_failure_waits_for_its_error() -> None:
    watcher = Watcher(Inquiry(Expectation(concurrency=15)))
    watcher.feed((START + ANNOUNCED).encode())
    assert watcher.report is None
    watcher.feed(REFUSED.encode())
    assert watcher.report is not None
    assert [finding.code for finding in watcher.report.failing] == ["VL902"]


def test_an_announced_failure_without_an_error_is_judged_after_a_while() -> None:
    now = [0.0]
    watcher = Watcher(Inquiry(Expectation(concurrency=15)), clock=lambda: now[0])
    watcher.feed((START + ANNOUNCED).encode())
    watcher.idle()
    assert watcher.report is None
    now[0] += 5
    watcher.idle()
    assert watcher.report is not None
    assert watcher.report.verdict == "fail"


def test_a_pass_before_the_server_is_ready_warns_of_no_log_that_stops() -> None:
    watcher = Watcher(Inquiry(Expectation(concurrency=15), fail_on="warning"))
    watcher.feed((START + CAPACITY).encode())
    assert watcher.report is not None
    assert watcher.report.verdict == "pass"
    assert "VL002" not in {finding.code for finding in watcher.report.findings}
    assert "VL002" in {skipped.code for skipped in watcher.report.skipped}


def test_every_capacity_line_of_old_releases_is_waited_for() -> None:
    config = CONFIG.replace("tensor_parallel_size=1", "tensor_parallel_size=2")
    start = (ARGS + BANNER.format(config)).replace("0.18.1", "0.10.2")
    tighter = CAPACITY.replace("15.52x", "13.00x").replace("63,584", "53,248")
    assert decide(start + CAPACITY, 15) == (None, 0)
    assert decide(start + CAPACITY + tighter, 15) == ("fail", 8)


def test_phases_are_told() -> None:
    watcher = Watcher(Inquiry())
    events: list[Event] = []
    for line in LOG.splitlines(keepends=True):
        events += watcher.feed(line.encode())
    assert [e.text for e in events if e.kind == "phase"] == [
        "starting", "loading weights", "allocating the KV cache", "capturing graphs", "starting the API server", "ready",
    ]  # fmt: skip


def test_pipe() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for line in (START + CAPACITY).splitlines(keepends=True):
                pipe.write(line.encode())
                time.sleep(0.01)
            release.wait(20)

    release = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    passed: list[bytes] = []
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            report = watch(pipe, Expectation(concurrency=16), timeout=20, on_bytes=passed.append)
    finally:
        release.set()
        writer.join()
    assert report.verdict == "fail"
    assert b"".join(passed).decode() == START + CAPACITY


def test_timeout_names_the_phase(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(START)
    report = watch(log, Expectation(concurrency=1), timeout=0.2)
    assert report.verdict == "inconclusive"
    assert "loading weights" in str(report.inconclusive)
    assert report.exit_code == 3


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    threading.Timer(0.2, lambda: log.write_text(LOG)).start()
    assert watch(log, Expectation(concurrency=15), timeout=20).verdict == "pass"
    report = watch(tmp_path / "never.log", timeout=0.1)
    assert report.verdict == "inconclusive"


def test_rotation_and_truncation_are_survived(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(START)

    def rotate() -> None:
        time.sleep(0.2)
        with log.open("a") as file:
            file.write(CAPACITY.splitlines(keepends=True)[0])
        log.rename(tmp_path / "serve.log.1")
        log.write_text("".join(CAPACITY.splitlines(keepends=True)[1:2]))
        time.sleep(0.2)
        os.truncate(log, 0)
        time.sleep(0.1)
        with log.open("a") as file:
            file.write(CAPACITY.splitlines(keepends=True)[2])

    thread = threading.Thread(target=rotate)
    thread.start()
    report = watch(log, Expectation(concurrency=16), timeout=20)
    thread.join()
    assert report.verdict == "fail"
    [startup] = report.startups
    assert startup.counts["KVCacheMemory"] == startup.counts["KVCacheCapacity"] == startup.counts["MaxConcurrency"] == 1


def test_an_older_start_in_the_same_file_does_not_decide(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(START + REFUSED + LOG.replace("pid=9", "pid=19").replace("pid=1)", "pid=11)"))
    assert watch(log, Expectation(concurrency=15), timeout=20).verdict == "pass"


def test_async_file_and_stream(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(LOG)

    async def stream() -> AsyncIterator[bytes]:
        for line in LOG.splitlines(keepends=True):
            await asyncio.sleep(0)
            yield line.encode()

    async def hangs() -> AsyncIterator[bytes]:
        yield START.encode()
        await asyncio.sleep(60)

    async def main() -> list[str]:
        reports = [
            await awatch(log, Expectation(concurrency=15), timeout=20),
            await awatch(stream(), Expectation(concurrency=16), timeout=20),
            await awatch(hangs(), Expectation(concurrency=16), timeout=0.2),
        ]
        return [report.verdict for report in reports]

    assert asyncio.run(main()) == ["pass", "fail", "inconclusive"]
