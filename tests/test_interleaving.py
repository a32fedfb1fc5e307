"""Processes that write into each other's lines: what can be told apart is read, what cannot is named by line, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import Parser, Report, check
from vlogcheck.records import (
    DeviceBlocks,
    EngineInit,
    FreeMemoryTooLow,
    GraphCapture,
    KVCacheCapacity,
    KVCacheMemory,
    KVCacheTooSmall,
    MaxConcurrency,
    MemoryProfile,
    MemoryUse,
    NoKVCacheMemory,
    WeightsLoaded,
    WeightsRead,
)

HEAD = (
    "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m', max_seq_len=4096\n"
)
TAIL = "INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: 63,584 tokens\nINFO:     Application startup complete.\n"
PREFIX = "(Worker_TP{0} pid=1{0}) INFO 03-01 10:00:09 [gpu_worker.py:227] "
FIRST = PREFIX.format(0) + "Available KV cache memory: 4.37 GiB"
SECOND = PREFIX.format(1) + "Available KV cache memory: 4.35 GiB"
BAR = "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.2s/it]"


def read(middle: str) -> tuple[Report, list[tuple[int, str]]]:
    """The report, and line and figure of each KV cache memory that was read."""
    report = check((HEAD + middle + TAIL).encode())
    found = report.startups[0].all(KVCacheMemory)
    return report, sorted((record.line, f"{float(record.gib):.2f}") for record in found)


def unreadable(report: Report) -> set[int | None]:
    return {finding.line for finding in report.findings if finding.code in ("VL009", "VL010")}


def test_two_messages_in_one_line() -> None:
    report, found = read(f"{FIRST}{SECOND}\n\n")
    assert found == [(2, "4.35"), (2, "4.37")]
    assert not unreadable(report)


@pytest.mark.parametrize(
    "glued", [BAR + FIRST, f"\r{BAR}\r{FIRST}", f"服务启动中 {FIRST}", f"\x1b[32m{BAR}\x1b[0m{FIRST}"]
)
def test_what_stands_in_front_of_a_message(glued: str) -> None:
    report, found = read(f"{glued}\n")
    assert found == [(2, "4.37")]
    assert not unreadable(report)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, len(FIRST) - 1), st.booleans())
def test_one_message_written_into_another(cut: int, ends: bool) -> None:
    """Wherever the second one begins: each figure is read as it was printed, or its line is named."""
    report, found = read(f"{FIRST[:cut]}{SECOND}" + "\n" * ends + f"{FIRST[cut:]}\n")
    figures = [figure for _, figure in found]
    assert set(figures) <= {"4.35", "4.37"}
    assert len(set(figures)) == len(figures)
    if len(figures) < 2:
        assert unreadable(report) & {2, 3}


def test_characters_in_turn_are_read_as_nothing() -> None:
    _, found = read("".join(one + other for one, other in zip(FIRST, SECOND, strict=True)) + "\n")
    assert not found


@pytest.mark.parametrize(
    "torn",
    [
        "Model loading took 15.4",
        "Available KV cache memory: 4",
        "GPU KV cache size: 624,2",
        "Maximum concurrency for 4,096 tokens per request: 15",
    ],
)
def test_a_torn_line_of_the_ledger_is_named(torn: str) -> None:
    report, _ = read(f"{PREFIX.format(0)}{torn}{SECOND}\n")
    assert [f.line for f in report.findings if f.code == "VL010"] == [2]


# Any message of the ledger written into any other one

LEDGER = (WeightsLoaded, WeightsRead, KVCacheMemory, KVCacheCapacity, MaxConcurrency, DeviceBlocks, MemoryUse, MemoryProfile,
          GraphCapture, EngineInit, FreeMemoryTooLow, KVCacheTooSmall, NoKVCacheMemory)  # fmt: skip
EXAMPLES = [
    template.example
    for record in LEDGER
    for template in record.templates
    if template.source == "vllm" and "\n" not in template.example
]


def said(text: str) -> tuple[list[tuple[str, object]], int, set[int]]:
    """The fields and values of the records in a log, how many records there are, and the lines that were told of."""
    told: set[int] = set()
    parser = Parser(on_unrecognised=lambda line: told.add(line.number))
    records = [*parser.feed(text.encode()), *parser.close()]
    return [item for record in records for item in record.own_values().items()], len(records), told


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(EXAMPLES),
    st.sampled_from(EXAMPLES),
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from([0, 1, 2]),
)
def test_any_message_written_into_any_other(first: str, second: str, cut: int, late: bool, newlines: int) -> None:
    """No value comes of it that nobody printed, and what is lost has its line named."""
    whole, other = PREFIX.format(0) + first, PREFIX.format(1) + second
    at = len(whole) - 1 - cut % 12 if late else 1 + cut % (len(whole) - 1)
    between, end = [("\n", "\n"), ("", "\n\n"), ("", "\n")][newlines]
    log = f"{PREFIX.format(2)}Hello\n{whole[:at]}{other}{between}{whole[at:]}{end}{PREFIX.format(2)}Hello\n"
    printed = [*said(whole + "\n")[0], *said(other + "\n")[0]]
    values, count, told = said(log)
    assert [item for item in values if item not in printed and str(item[1] or "") not in first + second] == []
    if count < 2:
        assert told & {2, 3}


def test_a_count_at_the_end_of_a_torn_line_is_no_count() -> None:
    torn = PREFIX.format(0) + "# GPU blocks: 27896, # CPU blocks: 20"
    report = check((HEAD + torn + SECOND + "\n48\n" + TAIL).encode())
    assert report.startups[0].all(DeviceBlocks) == []
    assert [finding.line for finding in report.findings if finding.code == "VL010"] == [2]
    whole = check((HEAD + torn + "48\n" + SECOND + "\n" + TAIL).encode())
    assert [record.cpu_blocks for record in whole.startups[0].all(DeviceBlocks)] == [2048]


PROFILE = (
    "Memory profiling takes {0} seconds",
    "the current vLLM instance can use total_gpu_memory (23.50GiB) x gpu_memory_utilization (0.80) = 18.80GiB",
    "model weights take 7.10GiB; non_torch_memory takes 0.20GiB; PyTorch activation peak memory takes 1.40GiB;"
    " the rest of the memory reserved for KV Cache is {1}GiB.",
)


@pytest.mark.parametrize(
    ("order", "line"),
    [("5:0 5:1 6,5:3 :2 6:4 6:5", 3), ("5:0 5:1 6,5:2 :3 6:4 6:5", 4)],
)
def test_a_profile_of_several_lines_goes_on_behind_the_tag_of_another_process(order: str, line: int) -> None:
    texts = [text.format(seconds, rest) for seconds, rest in ((3.25, "10.10"), (3.5, "10.30")) for text in PROFILE]
    log = ""
    for pids, at in (part.split(":") for part in order.split()):
        tags = "".join(f"(Worker pid={pid}) " for pid in pids.split(",") if pid)
        log += f"{tags}INFO 07-01 10:00:09 worker.py:241] {texts[int(at)]}\n"
    found: list[str] = []
    records: list[MemoryProfile] = []
    parser = Parser(on_unrecognised=lambda item: found.append(item.message))
    for record in [*parser.feed(log.encode()), *parser.close()]:
        assert isinstance(record, MemoryProfile)
        records.append(record)
    assert [(r.line, r.pid, float(r.seconds or 0), float(r.kv_cache_gib or 0)) for r in records] == [
        (1, 5, 3.25, 10.1),
        (line, 6, 3.5, 10.3),
    ]
    assert not found


def test_a_profile_that_begins_anew_is_left_when_its_end_does_not_come() -> None:
    texts = [text.format(3.25, "10.10") for text in PROFILE]
    log = "".join(f"(Worker pid=5) INFO 07-01 10:00:09 worker.py:241] {texts[at]}\n" for at in (0, 1, 0, 1, 2))
    report = check((HEAD + log + TAIL).encode())
    assert [record.line for record in report.startups[0].all(MemoryProfile)] == [4]


def test_a_message_that_ends_its_sentence_before_the_next_prefix_is_whole() -> None:
    """A log pasted without its line ends: the last message has an end of its own, though one before it is unknown."""
    tasks = "This model supports multiple tasks: {'embed', 'generate'}. Defaulting to 'generate'."
    banner = "Initializing a V0 LLM engine (v0.8.5) with config: model='org/m', speculative_config=None"
    pasted = " ".join(PREFIX.format(number) + text for number, text in enumerate((tasks, tasks, banner)))
    (startup,) = check((pasted + "\n").encode()).startups
    assert (startup.version, startup.model) == ("0.8.5", "org/m")
