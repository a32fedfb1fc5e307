"""Remedies of VL9xx: the start-up that failed, started again as the remedy says.

A failing line is only left out where the figures say that it would not be printed: what was asked for is then free.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import LOADED, MEMORY, READY, Case, down, remedy
from tests.remedies._device import starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

FATAL = r"^ERROR|^RuntimeError|^Failed"
SIZE = r"allocate ([\d.]+) ([MG])iB.*capacity of ([\d.]+) GiB of which ([\d.]+) ([MG])iB is free"


def allocation(case: Case) -> tuple[Decimal, Decimal, Decimal]:
    """Return GiB asked for, in total and free, of torch's message."""
    match = re.search(SIZE, case.log)
    assert match is not None
    tried, total, free = Decimal(match[1]), Decimal(match[3]), Decimal(match[4])
    return tried / (1024 if match[2] == "M" else 1), total, free / (1024 if match[5] == "M" else 1)


def fits(case: Case, tried: Decimal, free: Decimal, then: str = READY, fatal: str = FATAL) -> Block:
    """Return the log without the failed allocation, if there is room for it."""
    assert tried <= free, "it would fail again"
    return case.without(fatal, then)


def lower(case: Case, share: Decimal) -> tuple[str, Decimal]:
    """Return the utilization that returns what is missing, and the GiB that are free then."""
    tried, total, free = allocation(case)
    fewer = down((share * total - (tried - free)) / total)
    return fewer, free + (share - Decimal(fewer)) * total


def missing(case: Case) -> str:
    tried, _, free = allocation(case)
    return f"{tried - free:.2f}"


@remedy("VL901")
def too_little_free(case: Case) -> Iterator[Block]:
    free, total, share = case.read(r"\(([\d.]+)/([\d.]+) GiB\) on startup is less than .*?\(([\d.]+),")
    fewer = down(free / total)
    case.told(r"who holds ([\d.]+) GiB", total - free)
    case.told(r"--gpu-memory-utilization ([\d.]+) is the largest", fewer)
    assert (Decimal(fewer) + Decimal("0.01")) * total > free
    for left, asked in ((free, Decimal(fewer)), (total, share)):
        block = starts(case, left, asked, total)
        yield Case(block, case.finding).without("^ValueError")


@remedy("VL902")
def nothing_left(case: Case) -> Iterator[Block]:
    lacking, weights = -case.read(r"memory: (-[\d.]+) GiB"), case.read(r"took ([\d.]+) GiB")
    case.told(r"([\d.]+) GiB are missing .*--tensor-parallel-size (\d+)", lacking, 2)
    left = weights / 2 - lacking
    assert left > 0
    block = case.again(
        (r"tensor_parallel_size=1", "tensor_parallel_size=2"), (f"took {weights}", f"took {weights / 2}")
    )
    yield Case(block, case.finding).without(FATAL + "|Available KV", MEMORY.format(f"{left:.2f}") + READY)


@remedy("VL903")
def one_request(case: Case) -> Iterator[Block]:
    if "GPU blocks" in case.log:
        length, tokens = case.read(r"max seq len \((\d+)\).*KV cache \((\d+)\)")
        case.told(r"--max-model-len (\d+), or a KV cache ([\d.]+) times", tokens, "1.61")  # 32,768 ÷ 20,464, rounded up
        assert tokens * Decimal("1.61") >= length
        shorter = case.again((f"max_seq_len={length}", f"max_seq_len={tokens}"))
        larger = case.again((r"GPU blocks: \d+", f"GPU blocks: {int(tokens * Decimal('1.61')) // 16}"))
        for block in (shorter, larger):
            yield Case(block, case.finding).without("^ValueError", READY)
        return
    length, needed, available, longest = case.read(
        r"max seq len \((\d+)\), \(([\d.]+) GiB.*memory \(([\d.]+) GiB\).*length is (\d+)\."
    )
    case.told(r"--max-model-len (\d+), or ([\d.]+) GiB more", longest, needed - available)
    assert needed * longest / length <= available
    shorter = case.again((f"max_seq_len={length}", f"max_seq_len={longest}"))
    yield Case(shorter, case.finding).without(FATAL, MEMORY.format(available) + READY)
    yield case.without(FATAL, MEMORY.format(available + needed - available) + READY)


@remedy("VL904")
def loading(case: Case) -> Iterator[Block]:
    tried, _, free = allocation(case)
    held = case.read(r"this process has ([\d.]+) GiB")
    case.told(r"at least ([\d.]+) GiB more .*--tensor-parallel-size (\d+)", missing(case), 2)
    block = Case(case.again((r"tensor_parallel_size=1", "tensor_parallel_size=2")), case.finding)
    half = (held + tried) / 2
    yield fits(block, tried, free + held - half, LOADED.format(f"{half:.4f}") + MEMORY.format("21.36") + READY)


@remedy("VL905")
def profiling(case: Case) -> Iterator[Block]:
    tried, _, free = allocation(case)
    batch = int(case.read(r"max_num_batched_tokens=(\d+)"))
    case.told(r"([\d.]+) GiB are missing at least: --max-num-batched-tokens (\d+)", missing(case), batch // 2)
    block = Case(case.again((f"tokens={batch}", f"tokens={batch // 2}")), case.finding)
    yield fits(
        block, tried / 2, free, MEMORY.format(f"{free - tried / 2:.2f}") + READY
    )  # activations follow the tokens


@remedy("VL906")
def allocating(case: Case) -> Iterator[Block]:
    fewer, free = lower(case, Decimal("0.9"))  # 0.11's default
    case.told(r"--gpu-memory-utilization ([\d.]+) gives back the missing ([\d.]+) GiB", fewer, missing(case))
    args = (
        f"INFO 03-01 09:59:59 [api_server.py:1] non-default args: {{'model': 'm', 'gpu_memory_utilization': {fewer}}}\n"
    )
    yield fits(Case(case.with_log(args + case.log), case.finding), allocation(case)[0], free)


@remedy("VL907")
def capturing(case: Case) -> Iterator[Block]:
    share = case.read(r"'gpu_memory_utilization': ([\d.]+)")
    fewer, free = lower(case, share)
    tried, total, left = allocation(case)
    case.told(r"--gpu-memory-utilization ([\d.]+) leaves the ([\d.]+) GiB that were missing", fewer, missing(case))
    for other, room in ((Decimal(fewer), free), (Decimal("0.80"), left + (share - Decimal("0.80")) * total)):
        yield fits(Case(case.again((f"utilization': {share}", f"utilization': {other}")), case.finding), tried, room)
    eager = case.again((r"max_seq_len=4096", "max_seq_len=4096, enforce_eager=True"))  # captures nothing
    yield Case(eager, case.finding).without(FATAL, READY)


@remedy("VL908")
def warming_up(case: Case) -> Iterator[Block]:
    tried, _, left = allocation(case)
    requests = int(case.read(r"with (\d+) dummy requests"))
    case.told(r"--max-num-seqs (\d+) halves what (\d+) requests need", requests // 2, requests)
    fewer, free = lower(case, Decimal("0.9"))
    case.told(r"--gpu-memory-utilization ([\d.]+) leaves the ([\d.]+) GiB", fewer, missing(case))
    args = "INFO 03-01 09:59:59 [api_server.py:1] non-default args: {{'model': 'm', '{}': {}}}\n"
    for option, size, room in (("max_num_seqs", tried / 2, left), ("gpu_memory_utilization", tried, free)):
        log = args.format(option, case.finding.fix[option]) + case.log
        yield fits(Case(case.with_log(log), case.finding), size, room)


@remedy("VL909")
def survived(case: Case) -> Iterator[Block]:
    tried, _, free = allocation(case)
    case.told(r"leave ([\d.]+) GiB more free", f"{tried:.2f}")
    yield fits(case, tried, free + tried, "", "Skipping a tactic")


@remedy("VL910")
def serving(case: Case) -> Iterator[Block]:
    share = case.read(r"'gpu_memory_utilization': ([\d.]+)")
    fewer, free = lower(case, share)
    case.told(r"--gpu-memory-utilization ([\d.]+) returns the ([\d.]+) GiB", fewer, missing(case))
    block = Case(case.again((f"utilization': {share}", f"utilization': {fewer}")), case.finding)
    yield fits(block, allocation(case)[0], free, "")


@remedy("VL911")
def host(case: Case) -> Iterator[Block]:
    weights = case.read(r"(?:took|Checkpoint size:) ([\d.]+) GiB")
    needed = int(weights * 2**30 / 10**9) + 1 + 8 + 4  # weights, graph capture and the system, GB
    case.told(r"([\d.]+) GiB of weights \+ (\d) GB for graph capture", f"{weights:.2f}", 8)
    case.told(r"(\d) GB for the system are (\d+) GB", 4, needed)
    given = max(needed, 32)
    case.told(r"at least (\d+) GB", given)
    assert given * 10**9 >= weights * 2**30 + 12 * 10**9, "loading, capture and the system find room"
    then = READY if "Killed" in case.log else LOADED.format(weights) + MEMORY.format("5.36") + READY
    yield case.without("Killed|bad_alloc", then)


@remedy("VL912")
def died(case: Case) -> Iterator[Block]:
    time, line = re.search(r"ERROR (03-01 [\d:]+)", case.log), case.line_of("died unexpectedly")
    assert time is not None
    case.told(r"at (03-01 [\d:]+) \(line (\d+)\)", time[1], line)
    # What the kernel said at that time, beside the log: VL911 has the cause then.
    word = "Out of memory: Killed process 4242 (VLLM::Worker) total-vm:98765432kB, anon-rss:31234567kB, file-rss:0kB\n"
    lines = case.lines()
    yield case.with_log("".join([*lines[: line - 1], word, *lines[line - 1 :]]))
    yield case.without(FATAL)  # and with a host that has the memory nobody dies


@remedy("VL913")
def not_heard(case: Case) -> Iterator[Block]:
    line, waited = case.line_of("Watchdog"), case.read(r"ran for (\d+) milliseconds")
    case.told(r"missing among (\d+)", case.read(r"tensor_parallel_size=(\d+)"))
    case.told(r"from (\d+) min before line (\d+) on", int(waited) // 60000, line)
    lines = case.lines()
    # The output of the rank that is missing, from then on: it says what it died of.
    word = "terminate called after throwing an instance of 'std::bad_alloc'\n"
    yield case.with_log("".join([*lines[: line - 1], word, *lines[line - 1 :]]))


@remedy("VL914")
def gave_back(case: Case) -> Iterator[Block]:
    before, after = case.read(r"Initial free memory ([\d.]+) GiB, current free memory ([\d.]+) GiB")
    case.told(r"let go of its ([\d.]+) GiB \(free memory stands at ([\d.]+) GiB\)", after - before, after)
    weights = case.read(r"took ([\d.]+) GiB")
    assert after - weights < after, "free memory falls while the model runs: nothing is refused"
    yield case.without(FATAL, MEMORY.format("68.20") + READY)


@remedy("VL915")
def in_time(case: Case) -> Iterator[Block]:
    seconds = int(case.read(r"Waited (\d+)s"))
    case.told(r"VLLM_ENGINE_READY_TIMEOUT_S=(\d+)", 2 * seconds)
    took = seconds * 7 // 5  # longer than it waited, shorter than it waits now
    assert seconds < took < case.finding.fix["VLLM_ENGINE_READY_TIMEOUT_S"]
    loaded = (
        f"INFO 03-01 10:14:02 [gpu_model_runner.py:2392] Model loading took 14.2683 GiB and {took}.861336 seconds\n"
    )
    ready = READY.replace("10:00:12", "10:14:12")
    yield case.without("^TimeoutError", loaded + MEMORY.format("5.36").replace("10:00:09", "10:14:09") + ready)


@remedy("VL916")
def other_reason(case: Case) -> Iterator[Block]:
    line = case.line_of("IndexError")
    case.told(r"ends at line (\d+)", line)
    # What that traceback is of is put right: neither it nor what follows from it is printed.
    begins = case.line_of("EngineCore failed to start")
    yield case.with_log("".join(case.lines()[: begins - 1]) + MEMORY.format("5.36") + READY)


@remedy("VL917")
def refused(case: Case) -> Iterator[Block]:
    longest = case.read(r"max_position_embeddings=(\d+)")
    case.told(r"--max-model-len (\d+)", longest)
    banner = (
        "INFO 03-01 10:00:02 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m', dtype=torch.bfloat16,"
        f" max_seq_len={longest}\n"
    )
    yield case.without("ValidationError|Value error", banner + MEMORY.format("5.36") + READY)
