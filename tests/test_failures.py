"""The one root cause of a failure, what was going on, and remedies that remove the finding."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck._clock import duration, elapsed
from vlogcheck._reading import read
from vlogcheck.api import check
from vlogcheck.failures import Failure, failure_of, reason, stop_of

if TYPE_CHECKING:
    from vlogcheck.registry import Finding

BANNER = (
    "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m', max_seq_len=4096"
)
LOADED = "INFO 03-01 10:00:05 [gpu_model_runner.py:2392] Model loading took 15.2683 GiB and 4.861336 seconds"
POOL = "INFO 03-01 10:00:09 [gpu_worker.py:298] Available KV cache memory: 54.20 GiB"
SIZE = "INFO 03-01 10:00:09 [kv_cache_utils.py:1087] GPU KV cache size: 394,688 tokens"
GRAPHS = "INFO 03-01 10:00:11 [gpu_model_runner.py:2600] Graph capturing finished in 2 secs, took 0.52 GiB"
INIT = "INFO 03-01 10:00:12 [core.py:218] init engine (profile, create kv cache, warmup model) took 12.19 seconds"
READY = "INFO:     Application startup complete."
OOM = (
    "ERROR 03-01 10:00:13 [core.py:718] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a"
    " total capacity of 79.18 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.98 GiB memory"
    " in use."
)
FAILED = "ERROR 03-01 10:00:13 [core.py:718] EngineCore failed to start."
DIED = "ERROR 03-01 10:00:14 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly, shutting down executor."
DEAD = "ERROR 03-01 10:00:14 [async_llm.py:906] EngineCore encountered an issue. See stack trace (above) for the root cause."
INIT_FAILED = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}"
)
STOP = "INFO 03-01 10:00:13 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM"
NO_MEMORY = (
    "ERROR 03-01 10:00:13 [core.py:718] ValueError: No available memory for the cache blocks. Try increasing"
    " `gpu_memory_utilization` when initializing the engine."
)
INDEX = "ERROR 03-01 10:00:13 [core.py:718] IndexError: list index out of range"
NCCL = (
    "[rank1]:[E301 12:00:00 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before"
    " timing out."
)


def log(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def failure(*lines: str) -> Failure | None:
    facts = read(log(*lines))
    assert len(facts.startups) == 1
    return failure_of(facts.startups[0])


@pytest.mark.parametrize(
    ("lines", "phase"),
    [
        ((BANNER, OOM), "loading weights"),
        ((BANNER, LOADED, OOM), "profiling memory"),
        ((BANNER, LOADED, POOL, OOM), "allocating the KV cache"),
        ((BANNER, LOADED, POOL, SIZE, OOM), "capturing graphs"),
        ((BANNER, LOADED, POOL, SIZE, GRAPHS, OOM), "warming up"),
        ((BANNER, LOADED, POOL, SIZE, GRAPHS, INIT, READY, OOM), "serving"),
    ],
)
def test_the_phase_of_an_out_of_memory(lines: tuple[str, ...], phase: str) -> None:
    found = failure(*lines)
    assert found is not None
    assert found.kind == "oom"
    assert found.phase == phase
    codes = {f.code for f in check(log(*lines)).findings if f.severity and f.severity.value == "error"}
    assert len(codes & {"VL904", "VL905", "VL906", "VL907", "VL908", "VL910"}) == 1
    assert not codes & {"VL912", "VL916"}


@pytest.mark.parametrize(
    ("function", "phase"),
    [
        ("load_model", "loading weights"),
        ("determine_available_memory", "profiling memory"),
        ("initialize_kv_cache", "allocating the KV cache"),
        ("capture_model", "capturing graphs"),
        ("compile_or_warm_up_model", "warming up"),
    ],
)
def test_a_traceback_names_the_phase(function: str, phase: str) -> None:
    frame = f'ERROR 03-01 10:00:13 [core.py:718]   File "/opt/vllm/v1/worker/gpu_worker.py", line 407, in {function}'
    found = failure(BANNER, LOADED, POOL, SIZE, FAILED, frame, OOM)
    assert found is not None
    assert found.phase == phase


@pytest.mark.parametrize(
    ("lines", "kind", "line"),
    [
        ((BANNER, FAILED, NO_MEMORY, NO_MEMORY, INIT_FAILED), "refusal", 3),
        ((BANNER, FAILED, INDEX, DIED, INIT_FAILED), "error", 3),
        ((BANNER, LOADED, OOM, NO_MEMORY), "oom", 3),
        ((BANNER, INIT, READY, DIED, INDEX, DEAD), "died", 4),
        ((BANNER, INIT, READY, NCCL, DEAD), "communication", 4),
        ((BANNER, INIT, READY, NCCL, DEAD, "Killed"), "host", 6),
        ((BANNER, INIT, READY, "INFO:     Shutting down", DIED, DEAD), None, 0),
        ((BANNER, INIT, READY, INDEX), None, 0),
        ((BANNER, STOP, DIED, FAILED, INDEX), None, 0),
        ((BANNER, OOM, LOADED, POOL, INIT, READY), None, 0),
        ((BANNER, "terminate called after throwing an instance of 'std::bad_alloc'"), "host", 2),
    ],
)
def test_the_root_cause(lines: tuple[str, ...], kind: str | None, line: int) -> None:
    found = failure(*lines)
    assert (found.kind if found else None) == kind
    assert found is None or found.line == line


def test_a_failure_of_several_ranks_is_one() -> None:
    workers = [f"(Worker_TP{n} pid={n}) {OOM}" for n in range(4)]
    found = failure(BANNER, LOADED, *workers, OOM)
    assert found is not None
    assert (found.ranks, found.repeats, found.line) == (4, 5, 3)
    assert [f.code for f in check(log(BANNER, LOADED, *workers, OOM)).findings if f.code.startswith("VL9")] == ["VL905"]


def test_a_container_that_was_killed() -> None:
    lines = [f"vllm-1  | {line}" for line in (BANNER, LOADED, POOL)]
    finding = one("VL911", *lines, *[f"web-1  | GET /{n}" for n in range(4)], "vllm-1 exited with code 137")
    assert finding.line == 8
    assert "killed" in finding.message


def test_what_was_going_on_before_a_failure_while_serving() -> None:
    stats = (
        "INFO 03-01 13:20:02 [loggers.py:123] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0"
        " tokens/s, Running: 41 reqs, Waiting: 3 reqs, GPU KV cache usage: 91.2%, Prefix cache hit rate: 0.0%"
    )
    found = failure(BANNER, INIT, READY, stats, OOM.replace("10:00:13", "13:20:12"))
    assert found is not None
    assert found.seconds == 3 * 3600 + 20 * 60
    assert found.sample is not None
    assert (found.sample.running, found.sample.waiting, found.sample.usage) == (41, 3, 91.2)


def test_reasons_hold_their_numbers() -> None:
    assert "54.20" not in reason(read(log(BANNER, LOADED)).startups[0])
    assert "profiling memory" in reason(read(log(BANNER, LOADED)).startups[0])
    assert "told to stop" in reason(read(log(BANNER, STOP)).startups[0])
    assert "-1.27 GiB" in reason(read(log(BANNER, POOL.replace("54.20", "-1.27"), NO_MEMORY)).startups[0])
    assert stop_of(read(log(BANNER, FAILED, STOP)).startups[0]) is None


def one(code: str, *lines: str) -> Finding:
    found = [f for f in check(log(*lines)).findings if f.code == code]
    assert len(found) == 1
    return found[0]


@settings(max_examples=15, deadline=None)
@given(st.integers(800, 20_000), st.integers(1, 99), st.integers(2, 100))
def test_the_largest_utilization_that_starts(total: int, free_percent: int, asked: int) -> None:
    free = total * free_percent // 100
    requested = math.ceil(total * asked / 100)
    line = (
        f"ValueError: Free memory on device ({free / 100:.2f}/{total / 100:.2f} GiB) on startup is less than desired GPU memory"
        f" utilization ({asked / 100}, {requested / 100:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used by"
        " other processes."
    )
    finding = one("VL901", BANNER, line)
    share = Decimal(str(finding.fix["gpu_memory_utilization"]))
    assert share * total <= free, "it starts with that share"
    assert (share + Decimal("0.01")) * total > free, "and with none that is larger"


@settings(max_examples=15, deadline=None)
@given(st.integers(2048, 262_144), st.integers(10, 99), st.integers(100, 4000))
def test_the_length_that_fits(length: int, percent: int, needed: int) -> None:
    available = needed * percent // 100
    line = (
        f"ValueError: To serve at least one request with the models's max seq len ({length}), ({needed / 100:.2f} GiB KV cache"
        f" is needed, which is larger than the available KV cache memory ({available / 100:.2f} GiB). Try increasing"
        " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    )
    fitted = one("VL903", BANNER, line).fix.get("max_model_len")
    if available == 0:
        assert fitted is None
        return
    assert isinstance(fitted, int)
    assert fitted % 16 == 0
    assert fitted * needed <= length * available


def test_a_lower_utilization_leaves_what_was_missing() -> None:
    arguments = "INFO 03-01 10:00:00 [utils.py:233] non-default args: {'model': 'm', 'gpu_memory_utilization': 0.97}"
    server = "INFO 03-01 10:00:00 [api_server.py:1] vLLM API server version 0.11.0"
    for lines, code in (
        ((LOADED, POOL, OOM), "VL906"),
        ((LOADED, POOL, SIZE, OOM), "VL907"),
        ((LOADED, POOL, SIZE, GRAPHS, OOM), "VL908"),
        ((LOADED, POOL, SIZE, GRAPHS, INIT, READY, OOM), "VL910"),
    ):
        finding = one(code, server, arguments, BANNER, *lines)
        share = Decimal(str(finding.fix["gpu_memory_utilization"]))
        assert (Decimal("0.97") - share) * Decimal("79.18") >= Decimal("0.80"), code
        assert (Decimal("0.97") - share - Decimal("0.01")) * Decimal("79.18") < Decimal("0.80"), code


def test_a_loop_says_whether_the_numbers_changed() -> None:
    free = (
        "ValueError: Free memory on device ({}/63.98 GiB) on startup is less than desired GPU memory utilization (0.9, 57.58"
        " GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    rounds = [(BANNER, LOADED, free.format(n)) for n in ("4.80", "20.10", "40.20")]
    finding = one("VL004", *rounds[0], *rounds[1], *rounds[2])
    assert "3 times" in finding.message
    assert "numbers changed" in finding.remedy
    assert all(n in finding.observed for n in ("4.80", "20.10", "40.20"))
    finding = one("VL004", *rounds[0], *rounds[0])
    assert "the same each time" in finding.remedy


@pytest.mark.parametrize(
    ("earlier", "later", "seconds"),
    [
        ("03-01 10:00:00", "03-01 10:00:45", 45),
        ("2026-03-01T23:59:00Z", "2026-03-02T00:01:00Z", 120),
        ("02-28 10:00:00", "02-27 10:00:00", None),
        ("03-01 10:00:00", "2026-03-01 10:00:45", None),
        ("13-41 10:00:00", "13-41 10:00:45", None),
        (None, "03-01 10:00:45", None),
    ],
)
def test_elapsed(earlier: str | None, later: str | None, seconds: float | None) -> None:
    assert elapsed(earlier, later) == seconds


def test_durations_read_well() -> None:
    assert [duration(s) for s in (45, 600, 12_000, 360_000)] == ["45 s", "10 min", "3 h 20 min", "4 days 4 h"]


def test_a_tiny_model_fills_no_host() -> None:
    def killed(weights: str) -> Finding:
        log = (
            "INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', max_seq_len=4096\n"
            f"INFO 03-01 10:00:09 [gpu_model_runner.py:2653] Model loading took {weights} GiB and 0.5 seconds\nKilled\n"
        )
        return next(finding for finding in check(log.encode()).findings if finding.code == "VL911")

    small, large = killed("0.0204"), killed("27.5000")
    assert "nearly always" in large.message
    assert "at least" in large.remedy
    assert "nearly always" not in small.message
    assert "GB is the floor" not in small.remedy
    assert "0.02 GiB" in small.remedy


def test_placeholder_is_no_error() -> None:
    lines = (
        BANNER,
        "(VllmWorker rank=1 pid=7) ERROR 03-01 10:00:13 [multiproc_executor.py:380] WorkerProc hit an exception: %s",
    )
    (finding,) = (f for f in check(log(*lines)).findings if f.code == "VL916")
    assert "%s" not in finding.message + str(finding.observed)
    assert "does not hold" in finding.message


SERVING = (
    "INFO 03-01 10:20:00 [loggers.py:118] Engine 000: Avg prompt throughput: 115.2 tokens/s, Avg generation throughput:"
    " 29.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.6%, Prefix cache hit rate: 43.8%"
)
TOO_FEW = (
    "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache"
    " (2400). Try"
)
TPU_FULL = (
    "ValueError: total_hbm_used_gb=29.10GiB exceeds total_hbm_limit_cap_gb=28.12GiB by 0.98GiB. Please consider increasing"
    " --gpu-memory-utilization from 0.9 to a larger value."
)


def _found(*lines: str) -> Failure:
    found = failure(*lines)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "code", "kind"),
    [
        (TOO_FEW, "VL903", "refusal"),
        (TPU_FULL, "VL902", "refusal"),
        (DIED, "VL912", "died"),
        ("ERROR 03-01 10:00:13 [multiproc_executor.py:822] WorkerProc hit an exception.", "VL916", "error"),
    ],
    ids=["tokens", "tpu", "worker", "step"],
)
def test_what_only_vllm_says_of_a_failure_is_enough_to_know_it(line: str, code: str, kind: str) -> None:
    """The last lines of a log, without the start-up they belong to."""
    report = check(log(line))
    assert (report.verdict, [f.code for f in report.failing]) == ("fail", [code])
    assert _found(line).kind == kind


def test_without_a_line_of_the_start_up_its_phase_is_not_guessed() -> None:
    assert "does not show" in _found(DIED).when
    assert _found(BANNER, DIED).when == "while loading weights"
    assert _found(FAILED).when == "while starting"


def test_a_kv_cache_that_is_refused_fails_while_it_is_sized() -> None:
    blocks = "INFO 03-01 10:00:12 gpu_executor.py:122] # GPU blocks: 229, # CPU blocks: 512"  # V0 prints them first
    assert _found(BANNER, blocks, TOO_FEW).when == "while allocating the KV cache"
    assert _found(TOO_FEW).when == "while allocating the KV cache"


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=9) ERROR 03-01 10:00:13 [core.py:1131] EngineCore encountered a fatal error.",
        "(APIServer pid=1) ERROR 03-01 10:00:13 [async_llm.py:699] AsyncLLM output_handler failed.",
        "(EngineCore pid=9) ERROR 03-01 10:00:13 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.20.1) with"
        " config: model='m', dtype=torch.bfloat16, max_seq_len=4096,",
    ],
    ids=["engine", "front end", "dump"],
)
def test_what_only_an_engine_that_had_come_up_says_is_of_serving(line: str) -> None:
    oom = "(EngineCore pid=9) ERROR 03-01 10:00:13 [core.py:1131] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
    found = _found(line, f"{oom} 50.00 MiB. GPU 0 has a total capacity of 23.56 GiB of which 56.88 MiB is free.")
    assert (found.kind, found.after_ready, found.phase) == ("oom", True, "serving")
    refused = _found(TOO_FEW, line)  # a start-up that failed is none
    assert (refused.kind, refused.after_ready) == ("refusal", False)


def test_a_traceback_that_the_log_does_not_hold_to_its_end_tells_the_phase() -> None:
    head = "(VllmWorker rank=1 pid=12) ERROR 03-01 10:00:13 [multiproc_executor.py:374] "
    found = _found(
        f"{head}WorkerProc hit an exception.",
        f"{head}Traceback (most recent call last):",
        f'{head}  File "/opt/vllm/v1/worker/gpu_worker.py", line 223, in compile_or_warm_up_model',
        f"{head}    self.model_runner.capture_model()",
        f'{head}  File "/opt/vllm/v1/worker/gpu_model_runner.py", line 1600, in capture_model',
    )
    assert found.when == "while capturing graphs"


def test_an_engine_that_dumps_its_configuration_names_release_and_model() -> None:
    lines = log(
        "ERROR 03-01 10:00:13 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.20.1) with config: model='m',",
        "ERROR 03-01 10:00:13 [core.py:1131] EngineCore encountered a fatal error.",
    )
    (startup,) = read(lines).startups
    assert (startup.version, startup.model) == ("0.20.1", "m")


def test_a_piece_that_begins_while_serving_failed_while_serving() -> None:
    found = _found(SERVING, DIED)
    assert (found.after_ready, found.phase, found.seconds) == (True, "serving", None)
    assert found.sample is not None
    assert found.sample.running == 3
    assert check(log(SERVING, INDEX, SERVING)).verdict == "inconclusive", "the error of one request"


def test_a_log_that_ends_below_zero_has_failed() -> None:
    """Nothing of vLLM follows it but the refusal: also where that is cut off."""
    below = POOL.replace("54.20", "-0.87")
    (finding,) = check(log(BANNER, LOADED, below)).failing
    assert (finding.code, finding.message.split(":")[0]) == ("VL902", "cannot start")
    for announced in ("EngineCore failed to start.", "Engine core initialization failed. See root cause above."):
        (finding,) = check(log(BANNER, LOADED, below, announced, "Traceback (most recent call last):")).failing
        assert (finding.code, finding.observed) == ("VL902", "-0.87 GiB left"), "the traceback's end is cut off"
    other = check(log(BANNER, LOADED, below, "EngineCore failed to start.", "AssertionError: no layer")).failing
    assert [finding.code for finding in other] == ["VL916"]
    assert not check(log(BANNER, LOADED, POOL)).failing
    assert not check(log(BANNER, LOADED, below, SIZE, INIT)).failing, "a model that needs no KV cache goes on"


def test_tpu_refusal_states_the_share_that_is_enough() -> None:
    (finding,) = check(log(TPU_FULL)).failing
    share = finding.fix["gpu_memory_utilization"]
    assert isinstance(share, float)
    assert 29.10 / (28.12 / 0.9) < share <= 0.95


@pytest.mark.parametrize(
    ("error", "of_memory"),
    [
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", False),
        (
            "TypeError: can't convert npu:0 device type tensor to numpy. Use Tensor.cpu() to copy it to host memory first.",
            False,
        ),
        ("RuntimeError: Ran out of memory in memory space smem. Used 1.00M of 1.00M smem.", True),
        ("RuntimeError: not enough memory for the", True),
    ],
)
def test_memory_that_is_a_place_is_no_amount_of_it(error: str, *, of_memory: bool) -> None:
    (finding,) = check(log(BANNER, FAILED, f"ERROR 03-01 10:00:13 [core.py:718] {error}")).failing
    assert ("speaks of memory" in finding.message) == of_memory


def test_the_container_s_limit_is_stated_where_the_kernel_prints_it() -> None:
    killed = (
        "[78478.861845] Memory cgroup out of memory: Killed process 42 (VLLM::Worker) total-vm:8483048kB,"
        " anon-rss:2816968kB, file-rss:0kB"
    )
    usage = "[78478.861343] memory: usage 4194304kB, limit 4194304kB, failcnt 945"
    (finding,) = check(log(BANNER, usage, killed)).failing
    assert "4.00 GiB of the 4.00 GiB" in str(finding.observed)
    assert "limit of 4.00 GiB" in str(finding.remedy)


@pytest.mark.parametrize(
    ("fraction", "usable", "left", "above"), [(0.5, 10.65, -0.73, "0.54"), (0.95, 20.24, -9.0, "")]
)
def test_metal_has_a_limit_and_a_share_of_its_own(fraction: float, usable: float, left: float, above: str) -> None:
    refusal = (
        f"ValueError: Paged attention: not enough Metal memory for KV cache. metal_limit=21.30GB, fraction={fraction},"
        f" usable_metal={usable}GB, model_memory=9.32GB, overhead=2.06GB, kv_budget={left}GB. Mitigations: increase"
    )
    (finding,) = check(log(refusal)).failing
    assert (finding.code, finding.observed) == ("VL902", f"{left:.2f} GB left")
    assert (f"above {above};" in str(finding.remedy)) == bool(above)
    assert [f.code for f in check(log(refusal.partition(" metal_limit")[0])).failing] == ["VL902"], (
        "its first line alone"
    )


def test_an_error_that_says_nothing_is_named() -> None:
    (finding,) = check(log(BANNER, FAILED, "ERROR 03-01 10:00:13 [core.py:718] AssertionError")).failing
    assert finding.message.endswith("not for memory: AssertionError")


V0_PROFILE = (
    "the current vLLM instance can use total_gpu_memory (6.00GiB) x gpu_memory_utilization (0.90) = 5.40GiB\n"
    "model weights take 5.43GiB; non_torch_memory takes -0.51GiB; PyTorch activation peak memory takes 1.42GiB;\n"
    "the rest of the memory reserved for KV Cache is -0.94GiB."
)


@pytest.mark.parametrize(
    ("lines", "observed"),
    [
        ((V0_PROFILE,), "-0.94 GiB left"),
        (
            (V0_PROFILE, "INFO 03-01 10:00:09 [executor_base.py:112] # cuda blocks: 0, # CPU blocks: 4681"),
            "-0.94 GiB left",
        ),
        (("INFO 03-01 10:00:09 [executor_base.py:112] # cuda blocks: 0, # CPU blocks: 4681",), "none left"),
        (("INFO 03-01 10:00:09 [executor_base.py:112] # cuda blocks: 812, # CPU blocks: 0",), None),
    ],
)
def test_less_than_nothing_in_the_v0_engine_s_words_ends_the_start(
    lines: tuple[str, ...], observed: str | None
) -> None:
    found = [f for f in check(log(*lines)).failing if f.code == "VL902"]
    assert [str(f.observed) for f in found] == ([] if observed is None else [observed])


def test_page_locked_memory_is_the_host_s_though_torch_calls_it_out_of_memory() -> None:
    text = log(
        BANNER,
        "(Worker_TP4 pid=14) INFO 03-01 10:00:10 [cpu_npu.py:277] Allocating 16 CPU tensors...",
        "(Worker_TP4 pid=14) ERROR 03-01 10:00:13 [multiproc_executor.py:822] WorkerProc hit an exception.",
        "(Worker_TP4 pid=14) ERROR 03-01 10:00:13 [multiproc_executor.py:822] torch.OutOfMemoryError:"
        " allocate_host_memory_slowpath:../torch_npu/csrc/core/npu/CachingHostAllocator.cpp:252 NPU function error:"
        " aclrtMallocHostWithCfg, error code is 207001",
        "(Worker_TP4 pid=14) ERROR 03-01 10:00:13 [multiproc_executor.py:822] [PID: 14] 2026-03-01-10:00:13.813.031"
        " Resource_Error_Insufficient_Host_Memory(EL0018): Failed to allocate 17179869184 bytes host memory requested by",
    )
    (finding,) = check(text).failing
    assert finding.code == "VL911"
    assert "16.00 GiB in page-locked host memory" in str(finding.observed)
    assert "memlock" in str(finding.remedy)
    assert "pool of KV offloading" in str(finding.explanation)


def test_ascend_s_code_of_an_allocation() -> None:
    """Of an operator it is the device's memory; of a copy it may be the host's, which the lines behind it say."""

    def code(*errors: str) -> tuple[str, bool]:
        lines = [f"ERROR 03-01 10:00:13 [core.py:718] {error}" for error in errors]
        (finding,) = check(log(BANNER, FAILED, *lines)).failing
        return finding.code, "not for memory" in finding.message

    operator = "torch.OutOfMemoryError: call aclnnBatchMatMul failed, error code is 207001"
    copy = (
        "torch.OutOfMemoryError: LocalScalarDenseNpu.cpp:23 NPU function error:"
        " c10_npu::acl::AclrtSynchronizeStreamWithTimeout(copy_stream), error code is 207001"
    )
    assert code(operator) == ("VL904", False)
    assert code(copy) == ("VL916", False)
    assert code(copy, "rtsHostRegister execution failed, reason=driver error:out of memory") == ("VL911", False)
    assert code("RuntimeError: NPU function error: AclmdlRICaptureBegin, error code is 207005") == ("VL916", False)
    assert code("RuntimeError: NPU function error: call aclnnRmsNorm failed, error code is 507015") == ("VL916", True)


@pytest.mark.parametrize(
    ("codes", "code", "observed"),
    [
        ("{'EngineCore_DP0': -9}", "VL911", "EngineCore_DP0 ended by signal 9"),
        ("{'EngineCore_DP0': -15, 'EngineCore_DP1': -7}", "VL911", "EngineCore_DP1 ended by signal 7"),
        ("{'EngineCore_DP0': -11}", "VL912", "EngineCore_DP0 ended with exit code -11"),
        ("{'EngineCore_DP0': 1, 'EngineCore_DP1': -9}", "VL916", "no more than the announcement"),
    ],
)
def test_signals_among_the_exit_codes_are_told(codes: str, code: str, observed: str) -> None:
    last = f"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {codes}"
    (finding,) = check(log(BANNER, last)).failing
    assert (finding.code, observed in str(finding.observed)) == (code, True)
    (finding,) = check(log(BANNER, "double free or corruption (!prev)", last)).failing
    assert (finding.code, finding.observed) == ("VL912", "abort fault")


@pytest.mark.parametrize(
    ("line", "failing"),
    [
        (
            "(EngineCore pid=9) ERROR 07-12 09:17:33 [core.py:1366] TimeoutError: RPC call to sample_tokens timed out.",
            True,
        ),
        ("(EngineCore pid=9) ERROR 07-12 09:17:33 [core.py:1366] ValueError: no such layer", True),
        ("(APIServer pid=9) ERROR 07-12 09:17:33 [serving_chat.py:6] ValueError: no such request", False),
        ("ERROR 05-13 11:59:07 engine.py:400] RuntimeError: call aclnnFlashAttentionScore failed, detail:EZ1001", True),
        ("(VllmWorkerProcess pid=7) ERROR 04-22 07:10:28 [multiproc_worker_utils.py:238] KeyError: 'w13_weight'", True),
    ],
)
def test_an_error_that_ends_an_engine_is_vllm_s_own_word(line: str, *, failing: bool) -> None:
    assert bool(check(log(line)).failing) == failing


RAY_DIED = (
    "2023-09-20 11:38:09,990\tWARNING worker.py:2058 -- A worker died or was killed while executing a task by an unexpected"
    " system error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ff Worker ID: 9b Node ID: 81"
    " Worker IP address: 10.48.2.3 Worker port: 37523 Worker PID: 4855 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker"
    " unexpectedly exits with a connection error code 2. (1) The process is killed by SIGKILL by OOM killer."
)


def test_ray_says_that_a_worker_died() -> None:
    (finding,) = check(log(BANNER, LOADED) + RAY_DIED.encode()).failing
    assert (finding.code, finding.observed) == ("VL912", "process 4855 ended")
    assert [f.code for f in check(RAY_DIED.encode()).findings] == ["VL001"], "another program's worker"


def test_what_the_driver_does_not_tell_of_processes_is_no_figure() -> None:
    """WSL2."""
    none = "17179869184.00 GiB memory in use."
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.19 GiB. GPU 1 has a total capacity of 24.00 GiB of which"
        f" 0 bytes is free. Process 60 has {none} Including non-PyTorch memory, this process has {none} Of the allocated memory"
        " 7.89 GiB is allocated by PyTorch, and 168.42 MiB is reserved by PyTorch but unallocated."
    )
    (finding,) = check(log(BANNER, text)).failing
    assert (finding.code, finding.observed) == ("VL904", "1.19 GiB asked for, 0.00 GiB of 24.00 GiB free on device 1")


def test_the_background_task_of_the_asynchronous_v0_engine() -> None:
    failed = "Engine background task failed"
    assert check(log(BANNER, LOADED, POOL, SIZE, INIT, READY)).verdict == "pass"
    (finding,) = check(
        log(BANNER, LOADED, POOL, SIZE, INIT, READY, failed, "Traceback (most recent call last):")
    ).failing
    assert finding.code == "VL916"
    assert "after the server was ready" in finding.message
    (finding,) = check(log(failed, "Traceback (most recent call last):")).failing
    assert "after the server was ready" in finding.message
