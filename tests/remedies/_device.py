"""Remedies of VL1xx: the card's memory, the utilization, graphs and what else holds the card."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import MEMORY, READY, Case, down, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

GIB = Decimal(2**30)
CENT = Decimal("0.005")
"""Half of the last digit of a figure with two decimals."""
BUFFER = Decimal(150) / 1024
"""What vLLM itself keeps back for graphs, GiB."""
PINNED = (
    "INFO 03-01 10:00:49 [gpu_worker.py:280] Initial free memory 92.0 GiB, reserved {} GiB memory for KV Cache as specified by"
    " kv_cache_memory_bytes config and skipped memory profiling. This does not respect the gpu_memory_utilization config. Only"
    " use kv_cache_memory_bytes config when you want manual control of KV cache memory size. If OOM'ed, check the difference of"
    " initial free memory between the current run and the previous run where kv_cache_memory_bytes is suggested and update it"
    " correspondingly.\n"
)


def reserve(total: Decimal) -> Decimal:
    """Return the GiB to keep free of a card: 5 % above 40 GB, 2 GB at least."""
    least = 2 * Decimal(10**9) / GIB
    return max(total * Decimal("0.05"), least) if total * GIB > 40 * 10**9 else least


def summary(free: Decimal, total: Decimal, share: Decimal, *, consumed: bool = False) -> str:
    """Return what a worker that started says of its memory; the weights take 5 GiB."""
    requested, used = total * share, "5.00 GiB for weight, 0.50 GiB for peak activation, 0.10 GiB for non-torch memory,"
    if consumed:
        used = "5.10 GiB for consumed memory (weights + non-torch), 0.50 GiB for peak activation,"
    pool = requested - Decimal("5.6")
    rest = (pool - Decimal("0.2") - BUFFER) * GIB
    return (
        f"INFO 03-01 10:00:20 [gpu_worker.py:600] Free memory on device ({free:.2f}/{total:.2f} GiB) on startup. Desired GPU"
        f" memory utilization is ({share}, {requested:.2f} GiB). Actual usage is {used} and 0.20 GiB for CUDAGraph memory."
        f" Replace gpu_memory_utilization config with `--kv-cache-memory={int(rest)}` ({rest / GIB:.2f} GiB) to fit into"
        f" requested memory, or `--kv-cache-memory={int(rest)}` ({rest / GIB:.2f} GiB) to fully utilize gpu memory. Current kv"
        f" cache memory in use is {pool:.2f} GiB.\n"
    )


def starts(case: Case, free: Decimal, share: Decimal, total: Decimal) -> Block:
    """Return the log of a server that is refused or starts: as much has to be free as it asks for."""
    assert total * share <= free, "it would be refused again"
    return case.without("^ERROR", summary(free, total, share) + READY)


def with_utilization(case: Case, share: Decimal | str) -> Block:
    """Return the log of the same server with another utilization."""

    def desired(match: re.Match[str]) -> str:
        requested = Decimal(match[1]) * Decimal(share)
        return f"/{match[1]} GiB) on startup. Desired GPU memory utilization is ({share}, {requested:.2f} GiB)"

    log = re.sub(r"('gpu_memory_utilization': )[\d.]+", rf"\g<1>{share}", case.log)
    pattern = r"/([\d.]+) GiB\) on startup\. Desired GPU memory utilization is \([\d.]+, [\d.]+ GiB\)"
    return case.with_log(re.sub(pattern, desired, log))


@remedy("VL101")
def just_released(case: Case) -> Iterator[Block]:
    if "Free memory grew" in case.log:
        now = case.read(r"current ([\d.]+) GiB")
        case.told(r"stands at ([\d.]+) GiB or more", now)
        # Nothing grows between two equal readings, so the line is not printed.
        yield case.without("Free memory grew", summary(now, Decimal(95), Decimal("0.92"), consumed=True))
        return
    free, total, share = case.read(r"\(([\d.]+)/([\d.]+) GiB\) on startup is less than .*?\(([\d.]+),")
    wanted = total - reserve(total)
    case.told(
        r"at least ([\d.]+) GiB free, then start again; if it stays at ([\d.]+) GiB", f"{wanted:.2f}", f"{free:.2f}"
    )
    yield starts(case, wanted, share, total)


@remedy("VL102")
def shared_card(case: Case) -> Iterator[Block]:
    free, total = case.read(r"\(([\d.]+)/([\d.]+) GiB\)")
    share = down((free - CENT - reserve(total)) / total)
    case.told(r"--gpu-memory-utilization ([\d.]+) leaves the others their ([\d.]+) GiB", share, total - free)
    case.told(r"and ([\d.]+) GiB in reserve", f"{reserve(total):.2f}")
    yield starts(case, free, Decimal(share), total)
    yield starts(case, total - reserve(total) / 2, Decimal("0.92"), total)  # one of the two was moved
    case.silent = (
        "the line of the refusal is the only one with what was free: it is kept, the card is said to be shared"
    )
    yield case.stating(shared_card=True)


@remedy("VL103", "VL104")
def default_utilization(case: Case) -> Iterator[Block]:
    case.told(r"--gpu-memory-utilization ([\d.]+)", "0.9")  # of 0.11
    if case.finding.code == "VL104":
        case.told(r"the other (\d+) %", 10)
    case.fixed("gpu_memory_utilization", 0.9)
    yield with_utilization(case, "0.9")


@remedy("VL105")
def small_or_shared(case: Case) -> Iterator[Block]:
    case.told(r"--gpu-memory-utilization ([\d.]+)", "0.8")
    if "on startup" in case.log:
        total, share = case.read(r"/([\d.]+) GiB\).*?utilization is \(([\d.]+),")
        case.told(r"frees ([\d.]+) GiB", f"{(share - Decimal('0.8')) * total:.2f}")
    yield with_utilization(case, "0.8")


@remedy("VL106")
def reserve_too_small(case: Case) -> Iterator[Block]:
    total, requested = case.read(r"/([\d.]+) GiB\).*?utilization is \([\d.]+, ([\d.]+) GiB")
    share = down((total - reserve(total)) / total)
    cost = requested - Decimal(share) * total
    case.told(r"--gpu-memory-utilization ([\d.]+); it costs ([\d.]+) GiB", share, f"{cost:.2f}")
    yield with_utilization(case, share)


@remedy("VL111", "VL112")
def stated_memory(case: Case) -> Iterator[Block]:
    total = case.read(r"/([\d.]+) GiB\)")
    if "total_memory_bytes" in case.finding.fix:
        case.told(r"--total-memory (\d+)MiB", int(total * 1024))
        yield case.stating(total_memory=f"{int(total * 1024)}MiB")
        return
    share = case.block.arguments["expect"].gpu_memory_utilization
    used = case.read(r"utilization is \(([\d.]+),")
    case.told(r"--gpu-memory-utilization ([\d.]+), or budget with ([\d.]+)", share, used)
    yield with_utilization(case, str(share))
    yield case.stating(gpu_memory_utilization=float(used))


@remedy("VL114")
def unified(case: Case) -> Iterator[Block]:
    free, total, share = case.read(r"\(([\d.]+)/([\d.]+) GiB\) on startup is less than .*?\(([\d.]+),")
    fits = down(free / total)
    case.told(r"--gpu-memory-utilization ([\d.]+) is the largest", fits)
    assert Decimal(fits) < share
    yield starts(case, free, Decimal(fits), total)
    yield starts(case, total - 2, share, total)  # the page cache was dropped


@remedy("VL115")
def quota(case: Case) -> Iterator[Block]:
    if "on startup" in case.log:
        whole, slice_size = case.read(r"/([\d.]+) GiB\)"), case.read(r"capacity of ([\d.]+) GiB")
        share = down((slice_size - CENT) / (whole + CENT))
        case.told(r"--gpu-memory-utilization ([\d.]+) of the whole card", share)
        assert Decimal(share) * whole <= slice_size, "what is requested is in the slice: nothing is refused"
        yield Case(with_utilization(case, share), case.finding).without("^ERROR", READY)
        reported = case.again((rf"\(78\.6/{whole} GiB\)", f"({slice_size}/{slice_size} GiB)"))  # the slice is the total
        yield Case(with_utilization(Case(reported, case.finding), "0.9"), case.finding).without("^ERROR", READY)
        return
    tried, total, held = case.read(r"allocate ([\d.]+) GiB.*capacity of ([\d.]+) GiB.*process has ([\d.]+) GiB")
    share = down(held / total)
    case.told(r"between ([\d.]+) and ([\d.]+) GiB", held, held + tried)
    case.told(r"--gpu-memory-utilization ([\d.]+) keeps", share)
    assert Decimal(share) * total <= held, "the process had as much: nothing is refused"
    pool = Decimal(share) * total - case.read(r"took ([\d.]+) GiB") - 1
    case.silent = "the card's memory is printed with the error alone"
    yield case.without("^ERROR", MEMORY.format(f"{pool:.2f}"))


@remedy("VL116")
def charged(case: Case) -> Iterator[Block]:
    initial, weights = case.read(r"initial_memory_usage=([\d.]+)"), case.read(r"weights took ([\d.]+)")
    others = initial - weights
    case.told(r"upgrade to ([\d.]+): ([\d.]+) GiB per rank", "0.6.5", f"{others:.2f}")
    after, outside = case.read(r"post_profile=([\d.]+)"), case.read(r"non_torch_memory=([\d.]+)")
    pool = case.read(r"kv_cache_size=([\d.]+)")
    yield case.again(
        (r"initial_memory_usage=[\d.]+", f"initial_memory_usage={initial - others}"),
        (r"post_profile=[\d.]+", f"post_profile={after - others}"),
        (r"non_torch_memory=[\d.]+", f"non_torch_memory={outside - others}"),
        (r"kv_cache_size=[\d.]+", f"kv_cache_size={pool + others}"),
    )
    case.silent = "0.6.5 charges nobody else's memory"
    yield case.again((r"v0\.6\.4\.post1", "v0.6.5"))
