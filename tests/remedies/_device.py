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


@remedy("VL107")
def graphs_outside(case: Case) -> Iterator[Block]:
    graphs = case.read(r"took ([\d.]+) GiB\n")
    if "gpu_memory_utilization" in case.log:
        total, share = Decimal("79.18"), case.read(r"utilization': ([\d.]+)")
        outside = total - total * share
        fewer = down((total * share - (graphs + CENT + reserve(total) - outside)) / total)
        case.told(
            r"--gpu-memory-utilization ([\d.]+) leaves room for them and ([\d.]+) GiB", fewer, f"{reserve(total):.2f}"
        )
        yield with_utilization(case, fewer)
        case.silent = "nothing is captured"
        case.told(r"--enforce-(eager)", "eager")
        eager = case.again((r"max_seq_len=4096", "max_seq_len=4096, enforce_eager=True"))
        yield Case(eager, case.finding).without("Graph capturing")
        return
    case.told(
        r"leave ([\d.]+) GiB more of the card free than its reserve", down(graphs + CENT - Decimal("1e-9"))
    )  # 0.715 less a byte
    yield room_on(case, Decimal("79.18"), graphs + CENT)


@remedy("VL109")
def estimate_too_low(case: Case) -> Iterator[Block]:
    taken, estimate = case.read(r"memory: ([\d.]+) GiB \(actual\), ([\d.]+) GiB")
    more = taken - estimate + 2 * CENT
    if "on startup" in case.log:
        free, total, requested = case.read(r"\(([\d.]+)/([\d.]+) GiB\).*?utilization is \([\d.]+, ([\d.]+) GiB")
        fewer = down(min(requested - more, free - more - reserve(total)) / total)
        case.told(r"--gpu-memory-utilization ([\d.]+) keeps", fewer)
        yield with_utilization(case, fewer)
        return
    case.told(r"leave ([\d.]+) GiB more of the card free than its reserve", f"{more:.2f}")
    yield room_on(case, Decimal(95), more)
    fewer = estimate + BUFFER - 3 * CENT  # fewer sizes: what they take is within the estimate and vLLM's buffer
    yield case.again((r"1\.62 GiB \(actual\)", f"{fewer:.2f} GiB (actual)"))


def room_on(case: Case, total: Decimal, more: Decimal) -> Block:
    """Return the log of the server on a card of known size, with a utilization that leaves so much beside the reserve."""
    share = down((total - reserve(total) - more) / total)
    args = (
        f"INFO 03-01 09:59:59 [api_server.py:1] non-default args: {{'model': 'm', 'gpu_memory_utilization': {share}}}\n"
    )
    return case.stating(total_memory=f"{total}GiB")._replace(log=args + case.log)


@remedy("VL108")
def estimate_too_high(case: Case) -> Iterator[Block]:
    pool = case.read(r"KV cache memory: ([\d.]+) GiB")
    taken, estimate = case.read(r"memory: ([\d.]+) GiB \(actual\), ([\d.]+) GiB")
    size = pool - CENT + (estimate - CENT) - (taken + CENT) - BUFFER
    case.told(r"\(([\d.]+) GiB instead of ([\d.]+) GiB\)", f"{size:.2f}", f"{pool:.2f}")
    given = case.finding.fix["kv_cache_memory_bytes"]
    assert abs(given - size * GIB) < 2
    case.told(r"--kv-cache-memory-bytes (\d+)", given)
    case.silent = "with the size given in bytes no graph estimate takes part in it"
    yield pinned(case, size, r"Available KV|CUDA graph pool")
    # Without the estimate: what it kept back is in the pool.
    case.told(r"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=(\d)", 0)
    yield Case(case.without("CUDA graph pool"), case.finding).again(
        (r"memory: 13\.4 GiB", f"memory: {pool + estimate} GiB")
    )


def pinned(case: Case, size: Decimal, instead_of: str) -> Block:
    """Return the log of the server whose KV cache is given in bytes."""
    return case.without(instead_of, PINNED.format(f"{size:.2f}"))


@remedy("VL110")
def graphs_twice(case: Case) -> Iterator[Block]:
    suggested, estimate = case.read(r"--kv-cache-memory=(\d+)"), case.read(r"([\d.]+) GiB \(estimated\)")
    right = suggested + (estimate - CENT) * GIB
    given = case.finding.fix["kv_cache_memory_bytes"]
    assert abs(given - right) < 2
    case.told(r"--kv-cache-memory-bytes (\d+) is", given)
    case.silent = "with the size given in bytes nothing is suggested"
    yield pinned(case, right / GIB, "Free memory on device|CUDA graph pool")


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


@remedy("VL113")
def does_not_close(case: Case) -> Iterator[Block]:
    terms = [case.read(pattern) for pattern in (
        r"= ([\d.]+)GiB", r"weights take ([\d.]+)", r"memory takes ([\d.]+)", r"peak memory takes ([\d.]+)",
        r"KV Cache is ([\d.]+)")]  # fmt: skip
    gap = terms[0] - sum(terms[1:])
    sure = gap - 4 * CENT  # of five rounded figures, without the one that stands for the whole
    case.told(r"another process; ([\d.]+) GiB per rank", f"{sure:.2f}")
    yield case.again(
        (r"KV Cache is [\d.]+GiB", f"KV Cache is {terms[-1] + gap:.2f}GiB")
    )  # an idle card: nothing is missing


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


@remedy("VL117")
def rest_exceeds_pool(case: Case) -> Iterator[Block]:
    batch, pool = case.read(r"'max_num_batched_tokens': (\d+)"), case.read(r"KV cache memory: ([\d.]+)")
    share, weights = case.read(r"'gpu_memory_utilization': ([\d.]+)"), case.read(r"took ([\d.]+) GiB")
    rest = Decimal("44.42") * share - weights - pool
    case.told(r"--max-num-batched-tokens (\d+) gives up to ([\d.]+) GiB", batch // 2, f"{rest / 2:.2f}")
    yield case.again((rf": {batch}", f": {batch // 2}"), (rf"memory: {pool} GiB", f"memory: {pool + rest / 2:.2f} GiB"))


@remedy("VL118")
def negative(case: Case) -> Iterator[Block]:
    if "Graph capturing" in case.log:
        below = -case.read(r"took (-[\d.]+) GiB\n")
        case.told(r"([\d.]+) GiB and what the graphs took came back", below)
        graphs = Decimal("0.52")  # by another start: both readings are of the same quiet card
        case.silent = "the log prints no term that could be below zero"
        yield case.again((rf"took -{below} GiB", f"took {graphs} GiB"))
        return
    below, pool = -case.read(r"(-[\d.]+) GiB for non-torch"), case.read(r"in use is ([\d.]+) GiB")
    given = case.finding.fix["kv_cache_memory_bytes"]
    assert abs(given - (pool - CENT - below + CENT) * GIB) < 2
    case.told(r"--kv-cache-memory-bytes (\d+) \(([\d.]+) GiB\)", given, f"{pool - below:.2f}")
    case.silent = "with the size given in bytes nothing is measured"
    yield pinned(case, pool - below, "Free memory on device")


@remedy("VL119")
def unseen(case: Case) -> Iterator[Block]:
    # A and B of query, key, value, output, gate, up and down in 32 layers, 2 bytes each; 16 adapters of rank 64.
    hidden, key, inner, slots, rank = 4096, 8 * 128, 14336, 16, 64
    each = 2 * (hidden + hidden) + 2 * (hidden + key) + 3 * (hidden + inner)
    size = Decimal(2 * slots * rank * 32 * each) / GIB
    case.told(r"utilization by ([\d.]+) GiB", f"{size:.2f}")
    case.told(r"--max-loras (\d+) or --max-lora-rank (\d+) halves", slots // 2, rank // 2)
    total = Decimal(80)
    share = down((total - size - reserve(total)) / total)
    block = case.stating(total_memory=f"{total}GiB")
    yield block._replace(log=case.log.replace("enable_lora=True", f"gpu_memory_utilization={share}, enable_lora=True"))
    yield case.again(
        (
            r"llm_engine.py:237\] Initializing an LLM engine \(v0.6.3.post1\)",
            "core.py:77] Initializing a V1 LLM engine (v0.11.0)",
        )
    )
