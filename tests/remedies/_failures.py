"""Remedies of VL9xx: the start-up that failed, started again as the remedy says.

A failing line is only left out where the figures say that it would not be printed: what was asked for is then free.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import BANNER, MEMORY, READY, Case, down, remedy
from tests.remedies._device import starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

FATAL = r"^ERROR|^RuntimeError|^Failed"


@remedy("VL901")
def too_little_free(case: Case) -> Iterator[Block]:
    if "Externally held" in case.log:
        held, total, share = case.read(r"\(([\d.]+)/([\d.]+) GiB\) exceed .*?\(([\d.]+),")
        enough = Decimal(down(held / total)) + Decimal("0.01")
        case.told(r"above ([\d.]+): the KV cache", enough)
        assert share * total < held < enough * total
        yield case.without(FATAL, MEMORY.format(f"{enough * total - held:.2f}") + READY)
        return
    if "on kv cache allocation" in case.log:
        free, asked = case.read(r"\(([\d.]+)/[\d.]+ GiB\) on kv cache .*requested memory for kv \(([\d.]+) GiB")
        case.told(r"at most ([\d.]+) GiB .* or free ([\d.]+) GiB", free, asked - free)
        for given, left in ((free, free), (asked, free + (asked - free))):
            assert given <= left
            yield case.without(FATAL, MEMORY.format(given) + READY)
        return
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
    if "gpu_memory_utilization" in case.log.splitlines()[0]:
        share, total = case.read(r"utilization': ([\d.]+)"), Decimal("23.99")
        more = Decimal(down(share + lacking / total)) + Decimal("0.01")
        case.told(r"more than ([\d.]+) GiB: above --gpu-memory-utilization ([\d.]+)", lacking, more)
        left = (more - share) * total - lacking
        assert left > 0
        block = case.again((f"utilization': {share}", f"utilization': {more}"))
        yield Case(block, case.finding).without(FATAL + "|Available KV", MEMORY.format(f"{left:.2f}") + READY)
        return
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


@remedy("VL912")
def died(case: Case) -> Iterator[Block]:
    if "access fault" in case.log:
        case.told(r"for the time of line (\d+)", case.line_of("access fault"))
        yield case.without("access fault", MEMORY.format("5.36") + READY)  # another kernel keeps to its memory
        return
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
    if "clients joined" in case.log:
        joined, ranks = case.read(r"(\d)/(\d) clients")
        case.told(r"missing \((\d) of (\d)\).*up to line (\d)'s time", ranks - joined, ranks, 2)
        yield case.without(FATAL, MEMORY.format("5.36") + READY)  # the one that was missing is there: all join
        return
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
    banner = BANNER.replace("v0.11.0", "v0.8.5")
    if "max_num_batched_tokens" in case.log:
        tokens, length = case.read(r"tokens \((\d+)\) is smaller than max_model_len \((\d+)\)")
        case.told(r"--max-num-batched-tokens (\d+), or --max-model-len (\d+)", length, tokens)
        args = "INFO 03-01 10:00:01 [api_server.py:1] non-default args: {{'model': 'm', '{}': {}}}\n"
        for option, value, longest in (("max_num_batched_tokens", length, length), ("max_model_len", tokens, tokens)):
            started = args.format(option, value) + banner.replace("4096", str(longest)) + MEMORY.format("5.36") + READY
            yield case.without("^ValueError", started)
        return
    if "swap space" in case.log:
        swap, total = case.read(r"space\. ([\d.]+) GiB out of the ([\d.]+) GiB")
        most = int(total * 7 // 10)  # vLLM refuses more than 70 % of the host's memory
        case.told(r"at most (\d+) GiB together", most)
        assert most / total < Decimal("0.7") < swap / total
        yield case.without("^ValueError", banner + MEMORY.format("5.36") + READY)
        return
    if "must be less than 1.0" in case.log:
        case.told(r"--gpu-memory-utilization ([\d.]+), the default", "0.9")
        args = "INFO 03-01 10:00:01 [api_server.py:1] non-default args: {'model': 'm', 'gpu_memory_utilization': 0.9}\n"
        yield case.without("^ValueError", args + banner + MEMORY.format("5.36") + READY)
        return
    longest = case.read(r"max_position_embeddings=(\d+)")
    case.told(r"--max-model-len (\d+)", longest)
    banner = (
        "INFO 03-01 10:00:02 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m', dtype=torch.bfloat16,"
        f" max_seq_len={longest}\n"
    )
    yield case.without("ValidationError|Value error", banner + MEMORY.format("5.36") + READY)
