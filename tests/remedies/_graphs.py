"""Remedies of VL1xx: graphs, and terms that the ledger does not hold."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import Case, down, remedy
from tests.remedies._device import BUFFER, CENT, GIB, PINNED, reserve, with_utilization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block


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
