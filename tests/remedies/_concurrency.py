"""Remedies of VL4xx: requests at once, promised and at run time."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import READY, Case, remedy
from tests.remedies._kv import CENT, GIB, capacity, concurrency, size
from tests.remedies._plan import printed_again, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

LINE = r"Running: (\d+) reqs, Waiting: (\d+) reqs,(?: Preemptions: \d+,)? GPU KV cache usage: ([\d.]+)%"


def running(case: Case) -> list[tuple[int, int, Decimal]]:
    """Return running, waiting and KV usage in percent of every metrics line."""
    return [(int(a), int(b), Decimal(c)) for a, b, c in re.findall(LINE, case.log)]


def load(case: Case, *lines: tuple[int, int, Decimal]) -> Block:
    """Return the block with other figures in its metrics lines, none of them preempted."""
    new = iter(lines)

    def line(_: re.Match[str]) -> str:
        busy, waiting, usage = next(new)
        assert usage <= 100, "more than there is"
        return f"Running: {busy} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage:.1f}%"

    return case.with_log(re.sub(LINE, line, case.log))


@remedy("VL401")
def promised(case: Case) -> Iterator[Block]:
    wanted, memory = int(case.block.arguments["expect"].concurrency), case.read(r"memory: ([\d.]+) GiB")
    longest, more = case.finding.fix["max_model_len"], case.finding.fix["kv_cache_memory_bytes"]
    planned = case.block.arguments.get("model")
    if planned is None:
        # Blocks of 16 tokens: the longest length of which so many fit, and the memory in proportion to the requests.
        case.told(r"--max-model-len (\d+)", size(case) // 16 // wanted * 16)
        needed = (memory + CENT) * wanted / (concurrency(case)[1] - CENT)
        case.told(r"GiB more for the KV cache \(([\d.]+) GiB in all\)", f"{needed:.2f}")
    else:
        setup = setup_of(case.block)
        enough, less = (setup.plan(available=size).max_concurrency for size in (more, more - 1))
        assert (enough or 0) >= wanted > (less or 0)
        case.told(r"\(([\d.]+) GiB in all\)", f"{more / GIB:.2f}")
        case.told(r"--max-model-len (\d+)", longest)
        assert (setup.plan(max_model_len=longest).max_concurrency or 0) >= wanted
        assert (setup.plan(max_model_len=longest + 16).max_concurrency or 0) < wanted
    yield printed_again(case.block, max_model_len=longest)
    for name in ("kv_cache_memory_bytes", "kv_cache_dtype", "tensor_parallel_size"):
        if name in case.finding.fix:
            yield printed_again(case.block, **{name: case.finding.fix[name]})


@remedy("VL402")
def capped(case: Case) -> Iterator[Block]:
    cap, (_, requests) = int(case.read(r"'max_num_seqs': (\d+)")), concurrency(case)
    case.told(r"--max-num-seqs (\d+) uses .* keep (\d+)", int(requests), cap)
    yield case.again((rf"'max_num_seqs': {cap}", f"'max_num_seqs': {int(requests)}"))


@remedy("VL403")
def out_of_reach(case: Case) -> Iterator[Block]:
    plan = setup_of(case.block).plan()
    assert plan.num_blocks is not None
    least = plan.blocks_per_request(1)
    assert least is not None
    most = plan.num_blocks // least
    case.told(r"--max-num-seqs (\d+)", most)
    yield case.again((r"'max_num_seqs': \d+", f"'max_num_seqs': {most}"))


@remedy("VL404")
def longest_request(case: Case) -> Iterator[Block]:
    if "GPU blocks" in case.log:
        length = int(case.read(r"GPU blocks: (\d+)")) * 16
        case.told(r"--max-model-len (\d+)", length)
        yield case.again((r"max_seq_len=\d+", f"max_seq_len={length}"))
        return
    if "max_model_len" in case.finding.fix:
        case.told(r"--max-model-len (\d+)", size(case))
        yield printed_again(case.block, max_model_len=size(case))
        return
    memory, (length, requests) = case.read(r"memory: ([\d.]+) GiB"), concurrency(case)
    grown = Decimal("1.05") / (requests - CENT)  # more than is printed may not be there
    case.told(r"([\d.]+) GiB more .* \(([\d.]+) GiB in all\)", f"{memory * (grown - 1):.2f}", f"{memory * grown:.2f}")
    block = case.again((rf"memory: {memory} GiB", f"memory: {memory * grown:.2f} GiB"))
    lines = capacity(int(size(case) * grown), length, requests * grown)
    yield Case(block, case.finding).without("KV cache size|Maximum concurrency", lines)


@remedy("VL405")
def state_slots(case: Case) -> Iterator[Block]:
    slots = int(case.read(r"Mamba cache blocks \((\d+)\)"))
    case.told(r"--max-num-seqs (\d+) starts", slots)
    case.silent = "nothing is refused"
    args = f"INFO 03-01 09:59:59 [utils.py:233] non-default args: {{'model': 'm', 'max_num_seqs': {slots}}}\n"
    yield case.with_log(args + case.without("^ERROR", capacity(292_522, 4096, 71.42) + READY).log)


@remedy("VL406")
def encoder_budget(case: Case) -> Iterator[Block]:
    budget, items = case.read(r"budget of (\d+) tokens, and profiled with (\d+) image")
    wanted = int(case.block.arguments["expect"].concurrency)
    case.told(r"--max-num-batched-tokens (\d+) admits (\d+)", budget // items * wanted, wanted)
    case.told(r"of ([\d,]+) tokens fit as they are", budget // wanted)
    larger = case.finding.fix["max_num_batched_tokens"]
    for tokens, each in ((larger, budget // items), (budget, budget // wanted)):
        yield case.again(
            (
                r"budget of \d+ tokens, and profiled with \d+",
                f"budget of {tokens} tokens, and profiled with {tokens // each}",
            )
        )


@remedy("VL407")
def routing(case: Case) -> Iterator[Block]:
    _, requests = concurrency(case)
    if not running(case):
        case.told(r"more than (\d+) lets the rest wait; .* promise (\d+) per engine", int(requests), int(requests))
        yield case.stating(concurrency=int(requests))
        return
    (idle, none, _), (busy, waiting, full) = running(case)
    case.told(r"each engine gets its (\d+) before", int(requests))
    total = idle + none + busy + waiting
    # By load both get the same, and no more than one of them holds run.
    yield load(case, (busy, total // 2 - busy, full), (busy, total - total // 2 - busy, full))


@remedy("VL408")
def never_appeared(case: Case) -> Iterator[Block]:
    if len(running(case)) == 1:
        ((busy, waiting, usage),) = running(case)
        wanted = int(case.block.arguments["expect"].concurrency)
        case.told(r"(?:--max-num-seqs|send) (\d+)", wanted)
        more = load(case, (wanted, max(busy + waiting - wanted, 0), usage / busy * wanted))
        yield (
            more
            if not waiting
            else Case(more, case.finding).again((f"'max_num_seqs': {busy}", f"'max_num_seqs': {wanted}"))
        )
        return
    full = [(busy, usage) for busy, waiting, usage in running(case) if waiting]
    wanted, average = (
        int(case.block.arguments["expect"].concurrency),
        Decimal(sum(busy for busy, _ in full)) / len(full),
    )
    case.told(r"plan for (\d+) requests of that length", int(average))
    case.told(r"make them ([\d.]+) times as long", f"{average / wanted:.2f}")
    case.told(r"the KV cache ([\d.]+) times the memory", f"{wanted / average:.2f}")
    yield case.stating(concurrency=int(average))
    first, *rest = running(case)
    for share in (average / wanted, 1 / (wanted / average)):  # shorter requests, or more memory: each takes less of it
        yield load(
            case,
            first,
            *((int(busy / share), max(waiting + busy - int(busy / share), 0), usage) for busy, waiting, usage in rest),
        )


@remedy("VL409")
def preempted(case: Case) -> Iterator[Block]:
    (busy, _, usage), (_, waiting, _) = running(case)
    case.told(r"--max-num-seqs (\d+) keeps", busy - 1)
    each = usage / busy  # of the KV cache, per request
    yield load(case, (busy - 1, 0, each * (busy - 1)), (busy - 1, waiting + 1, each * (busy - 1)))


@remedy("VL410")
def cache_full(case: Case) -> Iterator[Block]:
    first, (busy, waiting, usage) = running(case)
    tokens = int(size(case) * usage / 100 / busy)
    case.told(
        r"plan for (\d+) requests at once of ([\d,]+) tokens; (\d+) need ([\d.]+) times",
        busy,
        tokens,
        busy + waiting,
        f"{Decimal(busy + waiting) / busy:.2f}",
    )
    yield load(case, first, (busy, 0, usage))  # as many as planned are sent
    times = Decimal(busy + waiting) / busy
    grown = Case(load(case, first, (busy + waiting, 0, usage)), case.finding)
    length, requests = concurrency(case)
    yield grown.without(
        "KV cache size|Maximum concurrency", capacity(int(size(case) * times), length, requests * times)
    )


@remedy("VL411")
def room(case: Case) -> Iterator[Block]:
    ((busy, waiting, usage),) = running(case)
    if "max_num_seqs" not in case.log:
        step = case.read(r"max_num_batched_tokens=(\d+)")
        case.told(r"from ([\d,]+) to (\d+), which is what the (\d+) prompts", step, 2 * step, waiting)
        more = Case(load(case, (busy + waiting, 0, usage / busy * (busy + waiting))), case.finding)
        yield more.again((rf"tokens={step}", f"tokens={2 * step}"))
        return
    held = int(busy * 100 / usage)
    case.told(r"--max-num-seqs (\d+): .* holds about ([\d,]+)", min(held, busy + waiting), held)
    cap = case.finding.fix["max_num_seqs"]
    more = Case(load(case, (cap, busy + waiting - cap, usage / busy * cap)), case.finding)
    yield more.again((rf"'max_num_seqs': {busy}", f"'max_num_seqs': {cap}"))


@remedy("VL412")
def too_long(case: Case) -> Iterator[Block]:
    context = case.block.arguments["expect"].context
    case.told(r"--max-model-len (\d+)", context)
    yield printed_again(case.block, max_model_len=context)


@remedy("VL413")
def never_seen(case: Case) -> Iterator[Block]:
    ((busy, _, usage),) = running(case)
    most = int(100 / ((usage - Decimal("0.05")) / busy))
    case.told(r"--max-num-seqs (\d+)", most)
    yield case.again((r"'max_num_seqs': \d+", f"'max_num_seqs': {most}"))
