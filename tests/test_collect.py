"""Records become start-ups, engines and ranks: restart loops, several servers, data, tensor and pipeline parallelism."""

from __future__ import annotations

from itertools import count

import pytest

from vlogcheck import Startup, check
from vlogcheck.records import KVCacheCapacity, KVCacheMemory, WeightsLoaded
from vlogcheck.startup import PHASES

BANNER = (
    "Initializing a V1 LLM engine (v0.11.0) with config: model='{model}', dtype=torch.bfloat16, max_seq_len=4096,"
    " tensor_parallel_size={tp}, pipeline_parallel_size={pp}, data_parallel_size={dp}"
)


class Log:
    """A log that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._second = count()

    def say(self, message: str, tag: str = "", level: str = "INFO", container: str = "") -> int:
        second = next(self._second)
        time = f"03-01 10:{second // 60:02}:{second % 60:02}"
        self.lines.append(f"{container}{tag and tag + ' '}{level} {time} [core.py:58] {message}")
        return len(self.lines)

    def raw(self, text: str, container: str = "") -> int:
        self.lines.append(container + text)
        return len(self.lines)

    def start(self, *, model: str = "m", tp: int = 1, pp: int = 1, dp: int = 1, container: str = "") -> None:
        for engine in range(dp):
            core = f"(EngineCore_DP{engine} pid={100 + engine})"
            self.say(BANNER.format(model=model, tp=tp, pp=pp, dp=dp), core, container=container)
        workers = []
        for engine in range(dp):
            for stage in range(pp):
                for rank in range(tp):
                    name = f"PP{stage}_TP{rank}" if pp > 1 else f"TP{rank}"
                    pid = 200 + 100 * engine + 10 * stage + rank
                    workers.append(
                        (engine, f"(Worker_DP{engine}_{name} pid={pid})" if dp > 1 else f"(Worker_{name} pid={pid})")
                    )
        for _, tag in workers:
            self.say("Model loading took 7.1342 GiB and 4.861336 seconds", tag, container=container)
        for engine, tag in workers:
            self.say(f"Available KV cache memory: {40 + engine}.50 GiB", tag, container=container)
        for engine in range(dp):
            core = f"(EngineCore_DP{engine} pid={100 + engine})"
            self.say("GPU KV cache size: 63,584 tokens", core, container=container)
            self.say("Maximum concurrency for 4,096 tokens per request: 15.52x", core, container=container)

    def ready(self, container: str = "") -> None:
        self.say("init engine (profile, create kv cache, warmup model) took 12.19 seconds", container=container)
        self.raw("INFO:     Application startup complete.", container=container)

    def refused(self) -> None:
        self.say(
            "ValueError: Free memory on device (4.80/63.98 GiB) on startup is less than desired GPU memory utilization"
            " (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
            "(EngineCore_DP0 pid=100)",
            "ERROR",
        )

    def startups(self) -> list[Startup]:
        return check("".join(line + "\n" for line in self.lines).encode()).startups


@pytest.mark.parametrize(("tp", "pp", "dp"), [(1, 1, 1), (4, 1, 1), (2, 2, 1), (1, 1, 3), (2, 1, 2)])
def test_engines_and_ranks_are_kept_apart(tp: int, pp: int, dp: int) -> None:
    log = Log()
    log.start(tp=tp, pp=pp, dp=dp)
    log.ready()
    (startup,) = log.startups()
    assert [engine.index for engine in startup.engines] == list(range(dp))
    for engine in startup.engines:
        assert len(engine.ranks) == tp * pp
        assert [rank.stage for rank in engine.ranks] == [stage for stage in range(pp) for _ in range(tp)]
        for rank in engine.ranks:
            assert len([r for r in rank.records if isinstance(r, WeightsLoaded)]) == 1
            memory = rank.last(KVCacheMemory)
            assert memory is not None
            assert float(memory.gib) == 40.5 + engine.index
        assert len(engine.all(KVCacheCapacity)) == 1
    assert startup.ready


def test_a_line_repeated_by_one_rank_counts_once_per_rank() -> None:
    log = Log()
    log.start(tp=2)
    log.say("Available KV cache memory: 40.50 GiB", "(Worker_TP1 pid=201)")
    (startup,) = log.startups()
    assert len(startup.engines[0].ranks) == 2
    capacity = startup.all(KVCacheCapacity)
    assert [record.tokens for record in capacity] == [63584]


def test_ranks_without_a_tag_are_told_apart_by_order() -> None:
    log = Log()
    log.say(BANNER.format(model="m", tp=2, pp=1, dp=1))
    for gib in ("7.1342", "7.2000"):
        log.say(f"Model loading took {gib} GiB and 4.861336 seconds")
    (startup,) = log.startups()
    weights = [rank.last(WeightsLoaded) for rank in startup.engines[0].ranks]
    assert [w and float(w.gib) for w in weights] == [7.1342, 7.2]


@pytest.mark.parametrize("server", [True, False])
def test_a_restart_loop_is_several_start_ups(server: bool) -> None:
    """Also in a container, where every round has the same process ids."""
    log = Log()
    for _ in range(3):
        if server:
            log.say("vLLM API server version 0.11.0", "(APIServer pid=1)")
        log.say(BANNER.format(model="m", tp=1, pp=1, dp=1), "(EngineCore_DP0 pid=100)")
        log.refused()
    if server:
        log.say("vLLM API server version 0.11.0", "(APIServer pid=1)")
    log.start()
    log.ready()
    startups = log.startups()
    assert [startup.ready is not None for startup in startups] == [False, False, False, True]
    assert [startup.first_line for startup in startups] == ([1, 4, 7, 10] if server else [1, 3, 5, 7])
    report = check("\n".join(log.lines).encode())
    assert report.verdict == "pass", "the last start-up counts"
    assert {f.code for f in report.findings} & {"VL004", "VL005"}


def test_servers_side_by_side_are_two_start_ups() -> None:
    one, two = Log(), Log()
    one.start(model="a", container="a-1  | ")
    two.start(model="b", tp=2, container="b-1  | ")
    one.ready(container="a-1  | ")
    both = [line for pair in zip(one.lines, two.lines, strict=False) for line in pair]
    report = check(
        "".join(line + "\n" for line in both + one.lines[len(two.lines) :] + two.lines[len(one.lines) :]).encode()
    )
    assert sorted((s.container, s.model, len(s.ranks)) for s in report.startups) == [("a-1", "a", 1), ("b-1", "b", 2)]


def test_phases_have_lines_and_times_and_say_where_it_stopped() -> None:
    log = Log()
    log.start()
    (unfinished,) = log.startups()
    assert unfinished.phase == "capturing graphs", "what goes on after the KV cache was allocated"
    assert not unfinished.ready
    log.say("Graph capturing finished in 20 secs, took 0.52 GiB")
    log.ready()
    (startup,) = log.startups()
    names = [phase.name for phase in startup.phases]
    assert names == sorted(names, key=PHASES.index)
    assert names[-1] == startup.phase == "ready"
    lines = [phase.line for phase in startup.phases]
    assert lines == sorted(lines)
    assert all(phase.time or phase.name == "ready" for phase in startup.phases)


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("INFO 03-01 10:00:00 [cpu_model_runner.py:104] Starting to load model org/m...", "loading weights"),
        (
            "INFO 03-01 10:00:00 [xpu_worker.py:104] Before memory profiling run, total GPU memory: 65520.00 MB, model load"
            " takes 12800.00 MB, free gpu memory is 52435.00 MB.",
            "profiling memory",
        ),
        (
            "INFO 03-01 10:00:00 [cpu_worker.py:271] Explicitly set (1.0/15.84) GiB for KV cache on node 0.",
            "allocating the KV cache",
        ),
        (
            "INFO 03-01 10:00:00 [tpu_worker.py:437] Memory statistics | total_hbm_limit_gb=94.75GiB |"
            " total_hbm_limit_cap_gb=80.53GiB | total_hbm_used_gb=16.58GiB | total_hbm_avail_gb=63.95GiB",
            "allocating the KV cache",
        ),
    ],
    ids=["load", "xpu", "cpu", "tpu"],
)
def test_other_platforms_have_lines_of_their_own_that_begin_a_phase(line: str, phase: str) -> None:
    first = "INFO 03-01 09:59:59 [api_server.py:1839] vLLM API server version 0.11.0"
    (startup,) = check(f"{first}\n{line}\n".encode()).startups
    assert startup.phase == phase
