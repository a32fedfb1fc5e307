"""What the generic tests over templates do not show: texts inside texts, units, and what must not become a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vlogcheck import check
from vlogcheck._unknown import looks_like_memory
from vlogcheck.lines import LogLine
from vlogcheck.recognise import Recogniser
from vlogcheck.records import (
    EngineStats,
    FreeMemoryTooLow,
    HostAllocationFailed,
    NoKVCacheMemory,
    OOMKilled,
    OutOfMemory,
    ProcessKilled,
    ProfilingMemoryChanged,
    Progress,
    PromptTooLong,
    WorkerFailed,
)
from vlogcheck.scan import parse_lines
from vlogcheck.units import GIB, MIB, GiB

if TYPE_CHECKING:
    from vlogcheck.template import Record

TEMPLATES = Recogniser().templates


def one(message: str, **line: Any) -> Record | None:
    return Recogniser(TEMPLATES).recognise(LogLine(1, message, **line))


NEW = (
    "CUDA out of memory. Tried to allocate 896.00 MiB. GPU 3 has a total capacity of 95.00 GiB of which 508.12 MiB is free."
    " Including non-PyTorch memory, this process has 94.49 GiB memory in use. Of the allocated memory 91.24 GiB is allocated"
    " by PyTorch, and 1.17 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try"
    " setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
SHARED = (
    "CUDA out of memory. Tried to allocate 1.25 GiB. GPU 1 has a total capacity of 93.02 GiB of which 1.18 GiB is free."
    " Process 4242 has 60.00 GiB memory in use. Process 4243 has 1.00 GiB memory in use. Including non-PyTorch memory, this"
    " process has 30.82 GiB memory in use. Of the allocated memory 30.00 GiB is allocated by PyTorch, with 41.88 MiB"
    " allocated in private pools (e.g., CUDA Graphs), and 120.54 MiB is reserved by PyTorch but unallocated."
)
OLD = (
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.20 GiB total capacity; 76.10 GiB already allocated; 1.20 GiB"
    " free; 77.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
)
ALLOWED = (
    "HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of which 244.65 GiB is free."
    " 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, and 54.99 MiB is reserved by PyTorch but"
    " unallocated."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NEW, {"backend": "CUDA", "device": "3", "total_gib": 95.0, "process_gib": 94.49, "allocated_gib": 91.24}),
        (SHARED, {"other_gib": 60.0, "process_gib": 30.82, "unallocated_gib": 120.54 / 1024, "free_gib": 1.18}),
        (OLD, {"backend": "CUDA", "tried_gib": 2.0, "free_gib": 1.2, "reserved_gib": 77.0}),
        (ALLOWED, {"backend": "HIP", "total_gib": 255.98, "process_gib": None, "allocated_gib": 1017.01 / 1024}),
        (
            "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 23.69 GiB of which 0 bytes is free.",
            {"free_gib": 0.0, "tried_gib": 20 / 1024},
        ),
        (
            "NPU out of memory. Tried to allocate 52.00 MiB (NPU 0; 60.96 GiB total capacity; 59.36 GiB already allocated;"
            " 59.36 GiB current active; 120.00 MiB free; 59.90 GiB reserved in total by PyTorch)",
            {"backend": "NPU", "device": "0", "total_gib": 60.96, "free_gib": 120 / 1024},
        ),
        ("XPU out of memory. Tried to allocate 2.00 GiB", {"backend": "XPU", "tried_gib": 2.0, "total_gib": None}),
        ("MPS backend out of memory (MPS allocated: 17.21 GB, max allowed: 18.13 GB).", {"backend": "MPS"}),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", {"backend": "CUDA"}),
        ("HIP error: out of memory", {"backend": "HIP"}),
        ("CUDA out of memory. Tried to alloxxxx 1.02 xxx.", {"backend": "CUDA", "tried_gib": None}),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "torch.OutOfMemoryError: {}",
        "torch.cuda.OutOfMemoryError: {}",
        "RuntimeError: {}",
        "torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block: {}",
        "RuntimeError: Worker failed with error '{}', please check the stack trace above for the root cause",
        "ERROR something of mine went wrong: {}",
    ],
)
def test_out_of_memory_wherever_it_stands(text: str, expected: dict[str, Any], around: str) -> None:
    record = one(around.format(text))
    assert isinstance(record, OutOfMemory)
    values = record.own_values()
    for name, value in expected.items():
        if isinstance(value, float):
            assert values[name] == pytest.approx(value)
        else:
            assert values[name] == value


def test_loading_says_in_which_phase_memory_ran_out() -> None:
    record = one(
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights,"
        " increasing --tensor-parallel-size, or using --quantization. See"
        f" https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more tips. (original error: {NEW})"
    )
    assert isinstance(record, OutOfMemory)
    assert (record.phase, record.device, record.tried_gib) == ("load", "3", 896 / 1024)


def test_sizes_keep_the_interval_of_what_was_printed() -> None:
    record = one(NEW)
    assert isinstance(record, OutOfMemory)
    assert record.free_gib is not None
    lo, hi = record.free_gib.bytes
    assert lo <= 508.12 * MIB <= hi
    assert hi - lo <= 0.01 * MIB


def test_a_quoted_message_is_its_own_record_and_an_unknown_one_stays_the_quoters() -> None:
    quote = "Worker failed with error '{}', please check the stack trace above for the root cause"
    refusal = (
        "Free memory on device cuda:0 (4.8/63.98 GiB) on startup is less than desired GPU memory utilization (0.9, 57.58 GiB)."
        " Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    record = one(quote.format(refusal))
    assert isinstance(record, FreeMemoryTooLow)
    assert record.requested_gib == 57.58
    other = one(quote.format("list index out of range"))
    assert isinstance(other, WorkerFailed)
    assert other.error == "list index out of range"


def test_a_message_quoted_a_thousand_times_does_not_exhaust_the_stack() -> None:
    head, tail = "Worker failed with error '", "', please check the stack trace above for the root cause"
    assert isinstance(one(head * 3000 + "x" + tail * 3000), WorkerFailed)


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_what_a_request_quotes_is_no_failure(level: str) -> None:
    quoted = f"Received request cmpl-1: prompt: 'Why {NEW} and std::bad_alloc and OOMKilled?', params: SamplingParams()"
    assert one(quoted, level=level, source="logger.py:39") is None
    assert isinstance(one(f"it broke: {NEW}", level="ERROR", source="core.py:1"), OutOfMemory)


@pytest.mark.parametrize(
    "text",
    [
        'vllm:kv_cache_usage_perc{engine="0"} 0.42',
        "# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.",
        'INFO:     127.0.0.1:40000 - "POST /v1/completions HTTP/1.1" 200 OK',
    ],
)
def test_metrics_and_access_lines_are_no_records(text: str) -> None:
    assert one(text) is None


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ('./serve.sh: line 193: 124064 Killed                  vllm serve "$MODEL" --dtype auto', ProcessKilled),
        ("run.sh: line 3:  4242 Killed", ProcessKilled),
        ("[1]+  Killed                  vllm serve m", ProcessKilled),
        ("Killed", ProcessKilled),
        ("vllm-1 exited with code 137", ProcessKilled),
        ("    Reason:       OOMKilled", OOMKilled),
        (
            "[12345.6] Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:31457280kB, file-rss:0kB",
            OOMKilled,
        ),
        ("  what():  std::bad_alloc", HostAllocationFailed),
        ("OSError: [Errno 12] Cannot allocate memory", HostAllocationFailed),
    ],
)
def test_death_of_the_host_side(text: str, record: type[Record]) -> None:
    assert type(one(text)) is record


def test_the_kernels_figures() -> None:
    record = one("Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:31457280kB, file-rss:0kB")
    assert isinstance(record, OOMKilled)
    assert (record.killed_pid, record.name, record.resident_gib) == (4242, "python3", 30.0)
    mapped = one(
        "RuntimeError: unable to mmap 4976698672 bytes from file </m/a.safetensors>: Cannot allocate memory (12)"
    )
    assert isinstance(mapped, HostAllocationFailed)
    assert mapped.tried_gib is not None
    assert tuple(mapped.tried_gib.bytes) == (4976698672, 4976698672)


def test_a_bar_redrawn_in_one_line_gives_each_state() -> None:
    bar = (
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]\r"
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:59<00:59, 59.00s/it]\r"
        "Loading safetensors checkpoint shards: 100% Completed | 2/2 [01:02:03<00:00, 12.00s/it]\n"
    )
    states = [(r.done, r.total, r.percent, r.seconds) for r in parse_lines([bar]) if isinstance(r, Progress)]
    assert states == [(0, 2, 0, 0), (1, 2, 50, 59), (2, 2, 100, 3723)]


def test_bytes_and_unrounded_gib_in_the_same_wording() -> None:
    text = (
        "Error in memory profiling. Initial free memory {}, current free memory {}. This happens when the NPU memory was not"
        " properly cleaned up before initializing the vLLM instance."
    )
    in_bytes, in_gib = one(text.format(GIB, 2 * GIB)), one(text.format("60.123456789012345", "61.5"))
    assert isinstance(in_bytes, ProfilingMemoryChanged)
    assert isinstance(in_gib, ProfilingMemoryChanged)
    assert (in_bytes.initial_free_gib, in_bytes.current_free_gib) == (1.0, 2.0)
    assert (in_gib.initial_free_gib, in_gib.current_free_gib) == (60.123456789012345, 61.5)


def test_figures_summed_over_engines() -> None:
    record = one(
        "2 Engines Aggregated: Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 2.5 tokens/s, Running: 3 reqs,"
        " Waiting: 4 reqs, Deferred: 1 reqs, Preemptions: 2, GPU KV cache usage: 97.3%, Prefix cache hit rate: 12.1%,"
        " Corrupted: 0 reqs, External prefix cache hit rate: 3.0%, MM cache hit rate: 4.0%"
    )
    assert isinstance(record, EngineStats)
    assert (record.engine, record.engines, record.running, record.waiting, record.deferred) == (None, 2, 3, 4, 1)
    assert (record.preemptions, record.corrupted, record.mm_cache_hit_percent) == (2, 0, 4.0)


def test_a_refused_request_in_an_answer() -> None:
    record = one(
        '{"error":{"message":"This model\'s maximum context length is 2044 tokens. However, your request has 400000 input'
        ' tokens. Please reduce the length of the input messages.","type":"BadRequestError"}}'
    )
    assert isinstance(record, PromptTooLong)
    assert (record.max_model_len, record.prompt_tokens) == (2044, 400000)


@pytest.mark.parametrize(
    "line",
    [
        '    raise ValueError("No available memory for the cache blocks. "',
        "    kv_cache_config = get_kv_cache_config(memory, blocks)",
        "    self.memory = blocks()",
        '    "--gpu-memory-utilization", "0.85",',
        '  File "/opt/vllm/memory.py", line 12, in run',
        "| N/A   38C    P8              9W /   70W |       3MiB /  15360MiB |      0%      Default |",
        "/usr/bin/python3 -m vllm.entrypoints.openai.api_server --gpu-memory-utilization 0.9",
        "config.yaml:mem_fraction: 0.65  # less KV cache",
        "Throughput: 2.28 tokens/s",
    ],
)
def test_source_tables_and_commands_are_no_unrecognised_messages(line: str) -> None:
    assert not looks_like_memory(line)
    assert one(line) is None


@pytest.mark.parametrize(
    "message",
    [
        "Reserved 3 GiB for a purpose of a later release",
        "n_model_bytes = 12.30 GB",
        "# HPU blocks: 12, # spare blocks: 3  # of them free: 1 blocks",
        "torch.zeros pinned tensor 7×7 (7 GB): 7 s",
        "total_hbm_used_gb=17.2GiB exceeds total_hbm_limit_cap_gb=15.1GiB",
    ],
)
def test_messages_of_a_later_release_stay_visible(message: str) -> None:
    assert looks_like_memory(message)


def test_the_line_of_a_traceback_that_quotes_the_text_is_not_counted_twice() -> None:
    lines = [
        "ERROR 01-01 00:00:00 [core.py:1] Traceback (most recent call last):",
        'ERROR 01-01 00:00:00 [core.py:1]     raise ValueError("No available memory for the cache blocks. "',
        "ERROR 01-01 00:00:00 [core.py:1] ValueError: No available memory for the cache blocks. Try increasing"
        " `gpu_memory_utilization` when initializing the engine.",
    ]
    unknown: list[LogLine] = []
    found = list(parse_lines(lines, on_unrecognised=unknown.append))
    assert [type(record) for record in found] == [NoKVCacheMemory]
    assert not unknown


def test_units_of_a_reading() -> None:
    half = GiB("512.00", unit=MIB)
    assert half == 0.5
    assert str(half) == "0.5"
    assert half.bytes.lo <= 512 * MIB <= half.bytes.hi
    assert GiB("7", resolution=0, unit=MIB).bytes.hi >= 7.4 * MIB


@pytest.mark.parametrize(
    ("process", "verdict"), [("EngineCore_DP2 pid=215", "fail"), ("trainer pid=215", "inconclusive")]
)
def test_a_peer_that_an_engine_lost_is_told_of_without_its_start(process: str, verdict: str) -> None:
    lost = (
        f"({process}) RuntimeError: Worker failed with error '[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544]"
        " Connection closed by peer [172.16.0.147]:10634', please check the stack trace above for the root cause\n"
    )
    assert check(lost.encode()).verdict == verdict


def test_a_method_that_failed_ends_no_engine() -> None:
    at = "(EngineCore_0 pid=18516) ERROR 10-09 09:40:09 [core.py:769] "
    lines = [
        f"{at}Invocation of profile method failed",
        f"{at}Traceback (most recent call last):",
        f"{at}RuntimeError: no",
    ]
    assert check("\n".join([*lines, ""]).encode()).verdict == "inconclusive"
    assert check("\n".join([*lines[1:], ""]).encode()).verdict == "fail", "without the announcement it may be fatal"
