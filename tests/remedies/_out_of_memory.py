"""Remedies of VL904 to VL911: memory that ran out, of the device and of the host."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import BANNER, LOADED, MEMORY, READY, Case, down, remedy
from tests.remedies._failures import FATAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

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


@remedy("VL904")
def loading(case: Case) -> Iterator[Block]:
    tried, _, free = allocation(case)
    if "Initializing" not in case.log:
        case.told(r"before line (\d+) too.*at least ([\d.]+) GiB more", 1, missing(case))
        yield case.with_log(
            BANNER + LOADED.format("70.0000") + MEMORY.format("5.00") + case.log
        )  # another check's phase
        return
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
    if "/dev/shm" in case.log:
        ranks = int(case.read(r"tensor_parallel_size=(\d+)"))
        case.told(r"--shm-size (\d+)g", max(16, 4 * ranks))
        yield case.without(FATAL, MEMORY.format("5.36") + READY)  # the segment that was refused finds room
        return
    if "aclrtMallocHost" in case.log:
        case.told(r"memlock=(-1) .*at least (\d+) GB", -1, 32)
        yield case.without(FATAL, MEMORY.format("5.36") + READY)  # it may lock as much as the host has
        return
    weights = case.read(r"(?:took|Checkpoint size:) ([\d.]+) GiB")
    needed = int(weights * 2**30 / 10**9) + 1 + 8 + 4  # weights, graph capture and the system, GB
    case.told(r"([\d.]+) GiB of weights \+ (\d) GB for graph capture", f"{weights:.2f}", 8)
    case.told(r"(\d) GB for the system are (\d+) GB", 4, needed)
    given = max(needed, 32)
    case.told(r"at least (\d+) GB", given)
    assert given * 10**9 >= weights * 2**30 + 12 * 10**9, "loading, capture and the system find room"
    then = READY if "Killed" in case.log else LOADED.format(weights) + MEMORY.format("5.36") + READY
    yield case.without("Killed|bad_alloc|': -9}", then)
