"""Remedies of VL5xx: ranks, cards and the figures beside the log."""

from __future__ import annotations

import re
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

from tests.remedies._case import Case, remedy
from tests.remedies._kv import CENT, capacity, concurrency, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

POOL = r"KV cache memory: ([\d.]+) GiB"
MIB = Decimal(1024)


def beside(block: Block, name: str, text: str) -> Block:
    """Return the block with another file beside the log."""
    assert block.arguments[name].decode() != text
    return block._replace(arguments={**block.arguments, name: text.encode()})


def pools(case: Case) -> list[Decimal]:
    return [Decimal(text) for text in re.findall(POOL, case.log)]


def with_pools(case: Case, *sizes: Decimal) -> Block:
    """Return the block with other KV cache memory on its ranks, and the capacity of the smallest."""
    new = iter(sizes)
    block = case.with_log(re.sub(POOL, lambda _: f"KV cache memory: {next(new):.2f} GiB", case.log))
    if "Maximum concurrency" not in case.log:
        return block
    grown, (length, requests) = min(sizes) / min(pools(case)), concurrency(case)
    lines = capacity(int(size(case) * grown) // 16 * 16, length, requests * grown)
    return Case(block, case.finding).without("KV cache size|Maximum concurrency", lines)


@remedy("VL501")
def uneven_weights(case: Case) -> Iterator[Block]:
    least, most = (case.read(r"took ([\d.]+) GiB", nth) for nth in (0, 1))
    case.told(r": ([\d.]+) GiB of KV cache are lost", f"{most - least:.2f}")
    yield case.again((f"took {most} GiB", f"took {least} GiB"))  # the same checkpoint with the same sizes


@remedy("VL502")
def uneven_pools(case: Case) -> Iterator[Block]:
    (roomy, tight), (length, requests) = pools(case), concurrency(case)
    gain = roomy - tight - 2 * CENT
    one = tight / (requests - CENT)
    case.told(r"gains up to ([\d.]+) GiB \(([\d.]+) requests of ([\d,]+)", f"{gain:.2f}", f"{gain / one:.2f}", length)
    case.told(r"until then ([\d.]+) GiB lie idle", f"{roomy - tight:.2f}")
    yield with_pools(case, roomy, tight + gain)


@remedy("VL503")
def uneven_stages(case: Case) -> Iterator[Block]:
    (roomy, tight), (length, requests) = pools(case), concurrency(case)
    gain = (roomy - tight) / 2
    one = tight / (requests - CENT)
    case.told(
        r"up to ([\d.]+) GiB more per rank \(([\d.]+) requests of ([\d,]+)", f"{gain:.2f}", f"{gain / one:.2f}", length
    )
    block = with_pools(case, roomy - gain, tight + gain)  # layers that take as much move to the other stage
    weights = (
        (r"took 13\.1000", f"took {Decimal('13.1') + gain:.4f}"),
        (r"took 17\.7000", f"took {Decimal('17.7') - gain:.4f}"),
    )
    yield Case(block, case.finding).again(*weights)


@remedy("VL504")
def copies(case: Case) -> Iterator[Block]:
    ranks, heads = int(case.read(r"tensor_parallel_size=(\d+)")), case.block.arguments["model"]["num_key_value_heads"]
    times = ranks // heads
    case.told(r"--tensor-parallel-size (\d+) with (\d+) engines \(--data-parallel-size (\d+)\)", heads, times, times)
    case.told(r"keeps (\d+) times the tokens", times)
    case.told(r"--decode-context-parallel-size (\d+)", times)
    size_of = rf"tensor_parallel_size={ranks}"
    yield case.again((size_of, f"tensor_parallel_size={heads}, data_parallel_size={times}"))
    yield case.again((size_of, f"tensor_parallel_size={ranks}, decode_context_parallel_size={times}"))


@remedy("VL505")
def ranks_missing(case: Case) -> Iterator[Block]:
    missing = int(case.read(r"tensor_parallel_size=(\d+)")) - 1
    case.told(r"\((\d+) ranks\)", missing)
    other = case.lines()[-1].replace("TP0 pid=11", "TP1 pid=12")
    yield case.with_log(case.log + other)


def used(case: Case) -> list[int]:
    """Return MiB in use on each card of the reading."""
    found: list[Any] = re.findall(r"(\d+) MiB$", case.block.arguments["smi"].decode(), re.M)
    return [int(text) for text in found]


def with_use(case: Case, block: Block, card: int, mib: int) -> Block:
    text, row = case.block.arguments["smi"].decode(), f"{card}, K100_AI, 65520 MiB, "
    return beside(block, "smi", text.replace(f"{row}{used(case)[card]} MiB", f"{row}{mib} MiB"))


@remedy("VL510")
def more_than_the_ledger(case: Case) -> Iterator[Block]:
    most = Decimal(case.finding.expected.split()[3])  # weights, KV cache and what a server may take besides
    over = used(case)[1] / MIB - most
    weights, pool = case.read(r"took ([\d.]+) GiB"), pools(case)[1]
    assert weights + pool < most < weights + pool + 6
    case.told(r"; at least ([\d.]+) GiB there are somebody else's", f"{over:.2f}")
    yield with_use(case, case.block, 1, used(case)[1] - ceil(over * MIB))


@remedy("VL511")
def uneven_cards(case: Case) -> Iterator[Block]:
    full, low = used(case)[0], used(case)[3]
    gain = (full - low) / MIB
    case.told(r"card (\d)", 3)
    case.told(r"came out ([\d.]+) GiB smaller, .* gains up to ([\d.]+) GiB", f"{gain:.2f}", f"{gain:.2f}")
    *even, tight = pools(case)
    yield with_use(case, with_pools(case, *even, tight + gain), 3, full)


@remedy("VL520")
def metrics_page(case: Case) -> Iterator[Block]:
    length, requests = concurrency(case)
    page = case.block.arguments["metrics"].decode()
    said = int(re.findall(r'tokens="(\d+)"', page)[0])
    least = min(said, size(case))
    case.told(r"smaller figure: ([\d.]+) requests of ([\d,]+) tokens", f"{least / length:.2f}", length)
    case.told(r"longer than ([\d,]+) tokens can finish", least)
    # The page of the server that wrote the log, and the log of the server that wrote the page, started with that length.
    right = page.replace(f'tokens="{said}"', f'tokens="{size(case)}"').replace('"0.47"', f'"{requests}"')
    yield beside(case.block, "metrics", right)
    log = case.without("KV cache size|Maximum concurrency", capacity(said, least, 1.0)).log
    other = case.with_log(log.replace(f"max_seq_len={length}", f"max_seq_len={least}"))
    yield beside(other, "metrics", page.replace('"0.47"', '"1.0"'))


@remedy("VL521")
def below_the_ceiling(case: Case) -> Iterator[Block]:
    page = case.block.arguments["metrics"].decode()
    running, usage = (
        float(re.findall(rf"{name}\S+ ([\d.]+)$", page, re.M)[0]) for name in ("requests_running", "usage_perc")
    )
    tokens = int(usage * size(case) / running)
    if "--max-num-batched-tokens" in case.finding.remedy:
        waiting = int(float(re.findall(r"requests_waiting\S+ ([\d.]+)$", page, re.M)[0]))
        case.told(r"(\d+) running requests hold ([\d,]+) tokens each", int(running), tokens)
        # Prompts are computed in one turn: those that waited run, and take as much as the others.
        more = page.replace(f" {running}", f" {running + waiting}").replace(f" {float(waiting)}", " 0.0")
        yield beside(case.block, "metrics", more.replace(f" {usage}", f" {usage * (running + waiting) / running}"))
        return
    case.told(r"--context (\d+): about (\d+) such requests", tokens, f"{running / usage:.0f}")
    yield case.stating(context=tokens)
