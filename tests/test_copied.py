"""Logs as people pass them on: prefixes cut in copying, supervisors' marks, quotations, messages broken over lines."""

from __future__ import annotations

import textwrap

import pytest

from vlogcheck import check
from vlogcheck._collector import startups
from vlogcheck.lines import Splitter
from vlogcheck.records import FreeMemoryTooLow, KVCacheCapacity, MemoryProfile, OutOfMemory
from vlogcheck.scan import Parser, parse_lines
from vlogcheck.template import Record


def read(*lines: str) -> list[Record]:
    return list(parse_lines(lines))


def one(*lines: str) -> Record:
    (record,) = read(*lines)
    return record


def unrecognised(*lines: str) -> list[str]:
    found: list[str] = []
    parser = Parser(on_unrecognised=lambda line: found.append(line.message))
    parser.feed("\n".join([*lines, ""]).encode())
    parser.close()
    return found


@pytest.mark.parametrize(
    "message",
    ["Available KV cache memory: 9.25 GiB", "GPU KV cache size: 346,368 tokens", "# GPU blocks: 9, # CPU blocks: 2"],
)
def test_level_alone_behind_a_tag(message: str) -> None:
    record = one(f"(EngineCore_DP0 pid=258) INFO {message}")
    assert (record.process, record.pid, record.level, record.source, record.time) == (
        "EngineCore_DP0", 258, "INFO", None, None,
    )  # fmt: skip


def test_file_and_line_that_an_editor_made_an_address() -> None:
    old = one("INFO 02-13 15:56:20 [worker.py:267](http://worker.py:267/)] Loading model weights took 5.3541 GB")
    new = one(
        "(EngineCore pid=3) INFO 02-13 15:56:20 [[worker.py:267](http://worker.py:267)] Available KV cache memory: 9.25 GiB"
    )
    assert (old.source, new.source, new.pid) == ("worker.py:267", "worker.py:267", 3)


def test_prefix_without_date_behind_a_tag() -> None:
    record = one("(EngineCore pid=31) INFO gpu_worker.py:440 Available KV cache memory: 7.25 GiB")
    assert (record.process, record.pid, record.level, record.source, record.time) == (
        "EngineCore", 31, "INFO", "gpu_worker.py:440", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("head", "level", "time", "pid"),
    [
        ("NFO 05-06 07:08:09 ", "INFO", "05-06 07:08:09", None),
        ("NING 05-06 07:08:09 ", "WARNING", "05-06 07:08:09", None),
        ("G 05-06 07:08:09 ", None, "05-06 07:08:09", None),  # the end of DEBUG and of WARNING
        ("-06 07:08:09 ", None, "-06 07:08:09", None),
        (":09 ", None, ":09", None),
        ("", None, None, None),
        ("ker_TP1 pid=77) NFO 05-06 07:08:09 ", "INFO", "05-06 07:08:09", 77),
    ],
)
def test_beginning_of_the_prefix_lost(head: str, level: str | None, time: str | None, pid: int | None) -> None:
    record = one(f"{head}[default_loader.py:397] Loading weights took 8.75 seconds")
    assert type(record).__name__ == "WeightsRead"
    assert (record.level, record.time, record.pid) == (level, time, pid)
    assert record.source == "default_loader.py:397"


@pytest.mark.parametrize("logger", ["vllm.v1.worker.gpu_worker", "vllm.executor"])
@pytest.mark.parametrize("tag", ["", "(EngineCore_DP0 pid=31) "])
def test_format_that_names_the_logger(logger: str, tag: str) -> None:
    record = one(f"{tag}INFO {logger} 05-06 07:08:11 [gpu_worker.py:298] Available KV cache memory: 12.5 GiB")
    assert type(record).__name__ == "KVCacheMemory"
    assert (record.level, record.time, record.source) == ("INFO", "05-06 07:08:11", "gpu_worker.py:298")
    assert record.process == (tag[1:15] or None)


@pytest.mark.parametrize("mark", ["[stage-1] ", "<blue> ", "{a: 1} ", "serving: "])
def test_logging_prefix_behind_the_tag(mark: str) -> None:
    lines = Splitter().split(
        1, f"(EngineCore_DP0 pid=31) {mark}INFO 05-06 07:08:11 [gpu_worker.py:298] Available KV cache memory: 12.5 GiB"
    )
    assert [(line.process, line.pid, line.message) for line in lines] == [
        ("EngineCore_DP0", 31, "Available KV cache memory: 12.5 GiB")
    ]
    # What one process wrote before another one's line is no mark.
    first, second = Splitter().split(
        1, "(Worker_TP0 pid=31) loading the INFO 05-06 07:08:11 [core.py:69] nothing of note"
    )
    assert (first.process, second.process) == ("Worker_TP0", None)


@pytest.mark.parametrize("quote", ["", "`", "> ", "> `", "# ", "\u258e "])
def test_prefix_without_date_in_a_quotation(quote: str) -> None:
    end = "`" if "`" in quote else ""
    record = one(f"{quote}INFO [kv_cache_utils.py:1319] GPU KV cache size: 90,112 tokens{end}")
    assert record == one(f"{quote}INFO ... [kv_cache_utils.py:1319] GPU KV cache size: 90,112 tokens{end}")
    assert (record.source, record.tokens) == ("kv_cache_utils.py:1319", 90112)  # type: ignore[attr-defined]


def test_name_of_the_file_in_markdown() -> None:
    record = one("INFO 05-06 07:08:09 [**init**.py:1773] Using max model len 24576")
    assert type(record).__name__ == "MaxModelLen"


@pytest.mark.parametrize(
    ("line", "time", "source"),
    [
        ("2025-05-06T07:08:09,512 [WARN ] W-9000-qwen_1.0-stderr MODEL_LOG - {}", "2025-05-06T07:08:09,512", None),
        ("[INFO ] 2025-05-06 07:08:09 PyProcess - W-77-abc-stdout: {}", "2025-05-06 07:08:09", None),
        ("INFO  PyProcess W-77-abc-stdout: {}", None, None),
        ("2025-05-06 07:08:09.812 [Error] (Process) {}", "2025-05-06 07:08:09.812", None),
        ("# {}", None, None),
        ("> > {}", None, None),
        ("// {}", None, None),
        ("**{}**", None, None),
    ],
)
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("INFO 05-06 07:08:11 [gpu_worker.py:298] Available KV cache memory: 12.5 GiB", "KVCacheMemory"),
        ("(APIServer pid=9) INFO:     Application startup complete.", "Ready"),
        (
            "(EngineCore pid=9) INFO 05-06 07:08:11 [kv_cache_utils.py:864] GPU KV cache size: 81,920 tokens",
            "KVCacheCapacity",
        ),
    ],
)
def test_supervisors_and_quotations(line: str, time: str | None, source: str | None, message: str, kind: str) -> None:
    record = one(line.format(message))
    assert type(record).__name__ == kind
    assert record.wrapper_time == time


def test_error_without_prefix_behind_a_model_server() -> None:
    record = one(
        "2025-05-06T07:08:09,512 [WARN ] W-9000-qwen_1.0-stderr MODEL_LOG - ValueError: No available memory for the cache"
        " blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    )
    assert type(record).__name__ == "NoKVCacheMemory"
    assert record.container == "W-9000-qwen_1.0"


SERVE_ONE = (
    "To serve at least one request with the model's max seq len (65536), (9.5 GiB KV cache is needed, which is larger than the"
    " available KV cache memory (3.25 GiB). Based on the available memory, the estimated maximum model length is 22416. Try"
    " increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
FREE = (
    "Free memory on device cuda:0 (20.5/47.5 GiB) on startup is less than desired GPU memory utilization (0.85, 40.38 GiB)."
    " Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
OOM = (
    "CUDA out of memory. Tried to allocate 640.00 MiB. GPU 0 has a total capacity of 15.60 GiB of which 312.00 MiB is free."
    " Including non-PyTorch memory, this process has 15.28 GiB memory in use."
)


@pytest.mark.parametrize(
    ("message", "kind", "pieces"),
    [
        (SERVE_ONE, "KVCacheTooSmall", 2),
        (SERVE_ONE, "KVCacheTooSmall", 5),
        (FREE, "FreeMemoryTooLow", 3),
        (OOM, "OutOfMemory", 3),
    ],
)
@pytest.mark.parametrize("blank", [True, False])
@pytest.mark.parametrize("error", ["ValueError: ", "torch.OutOfMemoryError: ", ""])
def test_message_broken_over_lines(message: str, kind: str, pieces: int, blank: bool, error: str) -> None:
    whole = one(message)
    size = len(message) // pieces + 1
    cut = textwrap.wrap(message, size) if blank else [message[n : n + size] for n in range(0, len(message), size)]
    first, *rest = cut
    record = one("INFO 05-06 07:08:11 [core.py:69] nothing of note", error + first, *rest)
    assert type(record).__name__ == kind
    assert record.line == 2
    told = (
        "max_model_len",
        "needed_gib",
        "estimated_max_model_len",
        "free_gib",
        "total_gib",
        "requested_gib",
        "tried_gib",
    )
    assert [getattr(record, name, None) for name in told] == [getattr(whole, name, None) for name in told]


def test_piece_behind_a_tag_has_none() -> None:
    record = one(
        f"(EngineCore pid=31) ValueError: {SERVE_ONE[:90]}",
        SERVE_ONE[90:200],
    )
    assert (type(record).__name__, record.pid) == ("KVCacheTooSmall", 31)


@pytest.mark.parametrize("remark", ["", "   [vllm/v1/worker/xpu_worker.py:119]", "  # why?"])
def test_remark_behind_a_broken_message(remark: str) -> None:
    refused = one(
        "ValueError: Free memory on device xpu:1 (0.0/60.79 GiB) on startup is less than",
        f"desired GPU memory utilization (0.9, 54.71 GiB){remark}",
    )
    assert isinstance(refused, FreeMemoryTooLow)
    assert (refused.device, refused.requested_gib) == ("xpu:1", 54.71)


def test_the_cpu_s_refusal_broken_and_cut_and_behind_an_arrow() -> None:
    broken = one(
        "ValueError: Available memory on node 0 (3.86/16.0 GiB) on startup is less than",
        "desired CPU memory utilization (0.92, 14.72 GiB). On the CPU backend, the",
        "`--gpu-memory-utilization` flag controls the fraction of CPU memory reserved",
        "(despite its name).",
    )
    assert isinstance(broken, FreeMemoryTooLow)
    assert (broken.free_gib, broken.requested_gib) == (3.86, 14.72)
    arrow = one(
        "=> Available memory on node 0 (0.01/0.47 GiB) on startup is less than desired CPU memory utilization (0.9, 0.43"
        " GiB). Decrease --gpu-memory-utilization or reduce CPU memory used by other processes."
    )
    assert isinstance(arrow, FreeMemoryTooLow)
    assert arrow.total_gib == 0.47


def test_the_profile_of_0_6_4_wrapped_and_as_a_bullet_in_backticks() -> None:
    said = (
        "Memory profiling results: duration=18.41 seconds, total_gpu_memory=191.98GiB, initial_memory_usage=71.40GiB,"
        " peak_torch_memory=86.79GiB, memory_usage_post_profile=73.77GiB, non_torch_memory=6.07GiB, kv_cache_size=95.28GiB,"
        " gpu_memory_utilization=0.98."
    )
    for lines in (
        textwrap.wrap(f"INFO 12-25 14:00:28 worker.py:265] {said}", 113, break_on_hyphens=False),
        [f"- `INFO 12-25 14:00:28 worker.py:265] {said}`", "- `INFO 12-25 14:00:29 config.py:9] Hello`"],
    ):
        (profile,) = read(*lines)
        assert isinstance(profile, MemoryProfile)
        assert (profile.non_torch_gib, profile.kv_cache_gib) == (6.07, 95.28)


@pytest.mark.parametrize("device", ["GPU", "CPU", "NPU"])
def test_capacity_broken_behind_its_comma(device: str) -> None:
    pool = one(
        f"(EngineCore pid=26105) INFO [kv_cache_utils.py:2395] {device} KV cache size: 34,032 tokens,",
        "  Maximum concurrency for 4,096 tokens per request: 8.31x",
    )
    assert isinstance(pool, KVCacheCapacity)
    assert (pool.tokens, pool.max_model_len, pool.max_concurrency, pool.device) == (34032, 4096, 8.31, device)


@pytest.mark.parametrize("backend", ["CUDA", "HIP", "XPU", "MUSA"])
def test_out_of_memory_broken_at_its_sentences(backend: str) -> None:
    failed = one(
        f"torch.OutOfMemoryError: {backend} out of memory. Tried to allocate 28.00 GiB.",
        "GPU 0 has a total capacity of 79.92 GiB of which 9.25 GiB is free.",
    )
    assert isinstance(failed, OutOfMemory)
    assert (failed.backend, failed.tried_gib, failed.total_gib) == (backend, 28, 79.92)


def test_repeated_prefix_of_a_broken_message() -> None:
    prefix = "(EngineCore pid=31) ERROR 05-06 07:08:11 [core.py:708] "
    record = one(f"{prefix}ValueError: {FREE[:80]}", prefix + FREE[81:])
    assert type(record).__name__ == "FreeMemoryTooLow"
    # Another message of the same process ends the attempt.
    other = "(EngineCore pid=31) ERROR 05-06 07:08:11 [utils.py:9] something else"
    assert [type(r).__name__ for r in read(f"{prefix}ValueError: {FREE[:80]}", other, prefix + FREE[81:])] == ["Raised"]


@pytest.mark.parametrize("kept", [130, 160, len(FREE) - 1])
def test_end_without_figures_cut_off(kept: int) -> None:
    record = one(f"ValueError: {FREE[:kept]}", "", "and the story goes on")
    assert type(record).__name__ == "FreeMemoryTooLow"


def test_end_with_a_figure_cut_off_is_no_record() -> None:
    (record,) = read(f"ValueError: {FREE[:112]}", "")
    assert type(record).__name__ == "Raised"
    assert unrecognised(FREE[:112], "") == [FREE[:112]]


def test_message_between_marks() -> None:
    lines = (
        "\u258e Available KV cache memory: 5.75 GiB",
        "#   GPU KV cache size: 90,112 tokens",
        "| Maximum concurrency for 8,192 tokens per request: 11.00x |",
    )
    assert [type(r).__name__ for r in read(*lines)] == ["KVCacheMemory", "KVCacheCapacity", "MaxConcurrency"]
    assert float(one("> `Available KV cache memory: 5.75 GiB`").gib) == 5.75  # type: ignore[attr-defined]
    assert not unrecognised(*lines)


def test_log_put_into_one_line() -> None:
    messages = (
        "Loading model weights took 7.5060 GB",
        "# GPU blocks: 1655, # CPU blocks: 1365",
        "Graph capturing finished in 12 secs.",
    )
    text = " ".join(f"INFO 07-17 21:58:1{n} worker.py:{n}] {message}" for n, message in enumerate(messages))
    assert [type(r).__name__ for r in read(f"the output is {text}")] == [
        "WeightsLoaded",
        "DeviceBlocks",
        "GraphCapture",
    ]
    # Without the blank, a process may have written into another one's figure.
    assert [type(r).__name__ for r in read(text.replace(" INFO", "INFO"))] == ["WeightsLoaded", "GraphCapture"]


def test_words_in_bold_type() -> None:
    record = one(
        "INFO 05-06 07:08:11 [gpu_model_runner.py:1608] Graph capturing finished in **19 secs**, took **0.75 GiB**"
    )
    assert (record.seconds, float(record.gib)) == (19, 0.75)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "tried", "total"),
    [
        (
            "[rank3]:[E506 07:08:09.123456789 compiler_depend.ts:444] NPU out of memory. NPUWorkspaceAllocator tried to allocate"
            " 256.00 MiB(NPU 3; 61.25 GiB total capacity; 64.00 MiB free). If you want to reduce memory usage, take a try",
            0.25,
            61.25,
        ),
        (
            "  Failed to allocate resource[DeviceMemory] with info [size:3221225472]. Reason: Memory resources are exhausted.",
            3,
            None,
        ),
        ("EL0004: [PID: 77] 2025-05-06-07:08:09.123.456 Failed to allocate memory.", None, None),
        ("RuntimeError: SYS_EBUSY: Lack of device memory. (code: -16)", None, None),
    ],
)
def test_out_of_memory_in_the_words_of_runtimes(line: str, tried: float | None, total: float | None) -> None:
    record = one(line)
    assert type(record).__name__ == "OutOfMemory"
    assert (record.tried_gib, record.total_gib) == (tried, total)  # type: ignore[attr-defined]


def test_prose_is_no_message() -> None:
    prose = (
        "- GPU KV cache: 90,112 tokens; available KV cache memory: 5.75 GiB",
        "The log said `Available KV cache memory: -2.5 GiB`, then `ValueError: No available memory for the cache blocks`.",
        "Model loading took 12.5 GiB (with the drafter)",
        "| KV cache memory | 5.75 GiB |",
    )
    assert not read(*prose)


def test_source_lines_of_a_traceback_open_nothing() -> None:
    traceback = (
        '    raise ValueError("No available memory for the cache blocks. "',
        '        f"To serve at least one request with the models\'s max seq len "',
        '        f"({max_model_len}), ({needed_memory/GiB_bytes:.2f} GiB KV "',
    )
    parser = Parser()
    assert not parser.feed("\n".join([*traceback, ""]).encode())
    assert not parser.close()


def test_another_record_ends_a_broken_message() -> None:
    records = read(f"ValueError: {FREE[:80]}", "Available KV cache memory: 5.75 GiB", FREE[81:])
    assert [type(r).__name__ for r in records] == ["Raised", "KVCacheMemory"]


def test_a_record_of_another_line_is_kept_while_one_waits() -> None:
    records = read(
        f"ValueError: {FREE[:80]}",
        "(EngineCore pid=4) INFO 05-06 07:08:11 [gpu_worker.py:298] Available KV cache memory: 12.5 GiB",
        FREE[81:],
    )
    assert sorted(type(r).__name__ for r in records) == ["FreeMemoryTooLow", "KVCacheMemory"]


@pytest.mark.parametrize("escape", ["", "^[", "ESC", "\\x1b", "\\u001b", "\\033", "\x1b"])
def test_visible_colours(escape: str) -> None:
    line = (
        f"{escape}[1;36m(EngineCore_DP0 pid=285){escape}[0;0m {escape}[32mINFO{escape}[0m 05-06 07:08:11 [gpu_worker.py:298]"
        " Available KV cache memory: 12.5 GiB"
    )
    record = one(line)
    assert (record.process, record.pid, record.level, float(record.gib)) == ("EngineCore_DP0", 285, "INFO", 12.5)  # type: ignore[attr-defined]


def test_brackets_that_are_no_colours() -> None:
    record = one(
        "INFO 05-06 07:08:11 [core.py:69] Initializing a V1 LLM engine (v0.9.1) with config: model='/m[5m]/x', seed=0"
    )
    assert record.model == "/m[5m]/x"  # type: ignore[attr-defined]


@pytest.mark.parametrize("left", ["", "\u2502 ", "| "])
@pytest.mark.parametrize("right", ["", " \u2502", "   \u2503", "    |", "    "])
def test_frame_around_a_pane(left: str, right: str) -> None:
    record = one(f"{left}INFO 05-06 07:08:11 [default_loader.py:397] Loading weights took 8.75 seconds{right}")
    assert record.seconds == 8.75  # type: ignore[attr-defined]


def test_progress_bar_has_no_frame() -> None:
    (line,) = Splitter().split(1, "Capturing CUDA graphs: 100%|#####|")
    assert line.message.endswith("|#####|")


def test_characters_of_a_web_page() -> None:
    record = one("ValueError: " + SERVE_ONE.replace("'", "&#39;").replace("`", "&#96;"))
    assert record.estimated_max_model_len == 22416  # type: ignore[attr-defined]
    record = one("INFO 05-06 07:08:11 [default_loader.py:397] Loading&nbsp;weights took 8.75&#32;seconds")
    assert record.seconds == 8.75  # type: ignore[attr-defined]


def test_summary_of_ascend_without_a_suggestion() -> None:
    record = one(
        "(EngineCore pid=9) INFO 05-06 07:08:11 [worker.py:1029] Free memory on device (60.5/61.0 GiB) on startup. Desired GPU"
        " memory utilization is (0.6, 36.6 GiB). Actual usage: 27.5 GiB for weights, 0.25 GiB for peak activation, 0.2 GiB for"
        " non-torch memory, 0.5 GiB for NPU graph memory. Current KV cache memory: 8.15 GiB."
    )
    assert (float(record.graphs_gib), float(record.kv_cache_gib), record.suggested_bytes) == (0.5, 8.15, None)  # type: ignore[attr-defined]


def test_gaudi_steps() -> None:
    step = one(
        "INFO 05-06 07:08:11 hpu_worker.py:217] Initializing cache engine took 21.5 GiB of device memory (37.25 GiB/94.62 GiB"
        " used) and 1.25 GiB of host memory (101.5 GiB/1007 GiB used)"
    )
    assert (type(step).__name__, float(step.device_gib), float(step.host_gib)) == ("HPUMemoryStep", 21.5, 1.25)  # type: ignore[attr-defined]
    weights = one(
        "INFO 05-06 07:08:11 hpu_model_runner.py:744] Loading model weights took in total 512 MiB of device memory (512"
        " MiB/94.62 GiB used) and -1.5 MiB of host memory (99.5 GiB/1007 GiB used)"
    )
    assert (type(weights).__name__, float(weights.gib)) == ("WeightsLoaded", 0.5)  # type: ignore[attr-defined]


def test_weights_of_a_build_between_releases() -> None:
    record = one(
        "INFO 03-02 07:08:11 [model_runner.py:1117] Loading model weights took 4.2050 GB and 41.775431 seconds"
    )
    assert (float(record.gib), record.seconds, record.unit_label) == (4.205, 41.775431, "GB")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        "(VllmWorker rank=2 pid=83) ERROR 05-06 07:08:11 [multiproc_executor.py:487] WorkerProc failed to start.",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "INFO 05-06 07:08:11 [default_loader.py:397] Loading weights took 8.75 seconds",
        "INFO 05-06 07:08:11 [core.py:218] init engine (profile, create kv cache, warmup model) took 19.25 seconds",
    ],
)
def test_a_piece_of_a_start_up_is_one(line: str) -> None:
    (startup,) = startups(read(line))
    assert startup.identified


def test_the_end_of_another_server_is_none() -> None:
    (startup,) = startups(read("INFO:     Application startup complete."))
    assert not startup.identified


PROFILE = (
    "Memory profiling takes 21.50 seconds",
    "the current vLLM instance can use total_gpu_memory (23.50GiB) x gpu_memory_utilization (0.90) = 21.15GiB",
    "model weights take 7.25GiB; non_torch_memory takes 0.05GiB; PyTorch activation peak memory takes 1.35GiB;"
    " the rest of the memory reserved for KV Cache is 12.50GiB.",
)
HEAD = "INFO 05-06 07:08:11 worker.py:267] "


@pytest.mark.parametrize("at", [14, 46, 90, 121, 130, 150, len(PROFILE[2]) - 1])
@pytest.mark.parametrize("head", [HEAD, ""])
def test_last_line_of_the_profile_broken(at: int, head: str) -> None:
    *lines, last = (head + line for line in PROFILE)
    at += len(head)
    assert one(*lines, last[:at], "  " + last[at:]).own_values() == one(*lines, last).own_values()
    again = at + (len(last) - at) // 2
    assert one(*lines, last[:at], last[at:again], last[again:]).own_values() == one(*lines, last).own_values()


def test_profile_without_its_first_line() -> None:
    whole, part = (
        one(*(HEAD + line for line in PROFILE)).own_values(),
        one(*(HEAD + line for line in PROFILE[1:])).own_values(),
    )
    assert part == {**whole, "seconds": None}


def test_what_follows_a_profile_cut_short_is_read() -> None:
    cut = [HEAD + line for line in (*PROFILE[:2], PROFILE[2][:60])]
    after = "# GPU blocks: 1395, # CPU blocks: 2340"
    assert type(one(*cut, HEAD + after)).__name__ == type(one(*cut, after)).__name__ == "DeviceBlocks"
    assert unrecognised(*cut, after)[0] == PROFILE[0]
    assert PROFILE[2][:60].strip() in unrecognised(*cut, after)


@pytest.mark.parametrize("tag", ["EngineCore", "APIServer", "Worker_TP10", "Worker_PP0_TP1", "EngineCore_DP0"])
@pytest.mark.parametrize("prefix", ["INFO 05-06 07:08:11 [x.py:1] ", "INFO [x.py:1] "])
def test_tags_without_the_process_id(tag: str, prefix: str) -> None:
    found = one(f"({tag}) {prefix}Available KV cache memory: 6.14 GiB")
    assert (type(found).__name__, found.process, found.pid) == ("KVCacheMemory", tag, None)


def test_stages_that_only_the_tags_name_need_not_be_alike() -> None:
    log = [f"(Worker_PP{n} pid={n}) {HEAD}Model loading took {30 - n}.52 GiB and 9.01 seconds\n" for n in (0, 1)]
    assert "VL501" not in {finding.code for finding in check("".join(log).encode()).findings}
    log = [line.replace("PP", "TP") for line in log]
    assert "VL501" in {finding.code for finding in check("".join(log).encode()).findings}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "INFO 05-06 07:08:11 [loggers.py:259] Engine 000: Avg prompt throughput: 3.2 tokens/s, Avg generation throughput:"
            " 18.1 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 19.3%, Prefix cache hit rate: 0.0%",
            "the log begins after the start-up",
        ),
        ("INFO 05-06 07:08:11 [monitor.py:53] torch.compile took 3.28 s in total", "lines of vLLM's, none of which"),
        ("INFO 05-06 07:08:11 [server.py:53] listening", "this is not a vLLM log, or it begins after"),
        ("INFO:     Application startup complete.", "this is not a vLLM log, or it begins after"),
    ],
)
def test_what_a_log_without_a_start_up_is(line: str, message: str) -> None:
    (finding,) = check(line.encode()).findings
    assert (finding.code, finding.message.startswith(message)) == ("VL001", True)


def test_carriage_returns_that_a_pager_made_visible() -> None:
    assert one(*(HEAD + line + "^M" for line in PROFILE)).own_values() == one(*(HEAD + p for p in PROFILE)).own_values()
    bar = "Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:04<00:00,  4.65s/it]"
    assert type(read(f"{bar}^M{HEAD}# GPU blocks: 1395, # CPU blocks: 2340^M")[-1]).__name__ == "DeviceBlocks"


def test_banner_from_a_web_page() -> None:
    lines = ("▄▄ ▄█ █ █ █ ▀▄▀ █ version 0.19.0", "█▄█▀ █ █ █ █ model openai/gpt-oss-20b")
    (startup,) = startups(read(*("INFO 04-18 20:22:57 [utils.py:299] " + line for line in lines)))
    assert (startup.version, startup.model) == ("0.19.0", "openai/gpt-oss-20b")


def test_first_sentence_of_a_refusal() -> None:
    (finding,) = check(b"ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (969).\n").failing
    assert (finding.code, finding.fix) == ("VL405", {"max_num_seqs": 969})
