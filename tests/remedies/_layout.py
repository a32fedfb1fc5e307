"""Remedies of VL309 to VL317: groups, pages, stages and copies of the KV cache."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import MEMORY, Case, remedy
from tests.remedies._kv import CAPACITY, CENT, GIB, capacity, concurrency, size
from tests.remedies._plan import printed_again, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block


@remedy("VL309")
def hybrid_block(case: Case) -> Iterator[Block]:
    block = int(case.read(r"block size to (\d+) tokens"))
    case.told(r"at least ([\d,]+) tokens in each group", block)
    case.told(r"--block-size (\d+)", block)
    case.silent = "vLLM raises the block size only where less was asked for"
    args = f"INFO 03-01 09:59:59 [utils.py:233] non-default args: {{'model': 'm', 'block_size': {block}}}\n"
    yield case.with_log(args + case.without("Setting attention block size").log)


@remedy("VL310")
def padding(case: Case) -> Iterator[Block]:
    if "mamba page size by" in case.log:
        percent = case.read(r"page size by ([\d.]+)%")
        case.told(r"as ([\d.]+) % of its size; .* below (\d) %", (100 + percent).normalize(), 5)
        yield case.again((r"by 12\.50%", "by 4.99%"))
        return
    layers, percent = case.read(r"Add (\d+) padding layers, may waste at most ([\d.]+)%")
    memory, (length, requests) = case.read(r"memory: ([\d.]+) GiB"), concurrency(case)
    waste = (memory + CENT) * percent / 100
    case.told(r"up to ([\d.]+) GiB per rank", f"{waste:.2f}")
    case.told(
        r"\(([\d.]+) requests of ([\d,]+) tokens\)",
        f"{int(waste * GIB) / (memory * GIB / (requests - CENT)):.2f}",
        length,
    )
    # Another split: stages whose layers fill their groups need no padding, or so much that it is below 5 %.
    case.silent = "no padding is printed"
    stages = (r"pipeline_parallel_size=1", "pipeline_parallel_size=3")
    yield Case(case.without("padding layers"), case.finding).again(stages)
    model = layers / percent * 100  # layers of the model: percent = padding ÷ layers
    yield case.again(
        (
            r"Add 3 padding layers, may waste at most [\d.]+%",
            f"Add 1 padding layers, may waste at most {100 / model:.2f}%",
        )
    )


@remedy("VL311")
def reduced(case: Case) -> Iterator[Block]:
    if "draft model" in case.log:
        short, long = case.read(r"max_model_len \((\d+)\) is smaller than the target model's \((\d+)\)")
        case.told(r"plan with ([\d,]+) tokens per request, or serve without .* to get ([\d,]+)", short, long)
        case.silent = "nothing is reduced"
        yield Case(case.again((f"max_seq_len={long}", f"max_seq_len={short}")), case.finding).without("draft model")
        yield case.without("draft model")
        return
    original, fitted = case.read(r"reduced from (\d+) to (\d+)")
    case.told(r"plan with ([\d,]+) tokens per request; what ([\d,]+) tokens", fitted, original)
    case.fixed("max_model_len", fitted)
    case.silent = "a stated length is not fitted"
    stated = case.again((rf"max_seq_len={original}", f"max_seq_len={fitted}"))
    yield Case(stated, case.finding).without("Auto-fit")


@remedy("VL312")
def manager_off(case: Case) -> Iterator[Block]:
    without = case.again((r", 'kv_transfer_config': \{[^}]*\}", ""))
    lines = [line for line in without.log.splitlines(keepends=True) if "Hybrid KV cache manager" not in line]
    after = printed_again(without._replace(log="".join(lines)))
    on, (_, requests) = setup_of(after).plan(), concurrency(case)
    case.told(r"with the manager on ([\d.]+) requests", on.max_concurrency_text)
    case.told(r"memory, ([\d.]+) times", f"{(on.max_concurrency or 0) / float(requests):.2f}")
    case.silent = "no line and no option turn it off"
    yield after


@remedy("VL313")
def refusal(case: Case) -> Iterator[Block]:
    length, needed, available, fits = case.read(
        r"max seq len \((\d+)\), \(([\d.]+) GiB.*memory \(([\d.]+) GiB\).*length is (\d+)\."
    )
    case.told(r"--max-model-len (\d+)", fits)
    assert needed * fits / length <= available, "so much as the release asks for is there"
    case.silent = "nothing is refused"
    shorter = case.again((rf"max_seq_len={length}", f"max_seq_len={fits}"))
    yield Case(shorter, case.finding).without("^ERROR", MEMORY.format(available))
    # A release that counts a stage's own layers: half of them, which fits.
    assert needed / 2 <= available
    newer = case.again((r"\(v0\.16\.0\)", "(v0.33.0)"))
    yield Case(newer, case.finding).without("^ERROR", MEMORY.format(available))


@remedy("VL314")
def blocks_by_hand(case: Case) -> Iterator[Block]:
    profiled, blocks = case.read(r"num_gpu_blocks=(\d+) with num_gpu_blocks_override=(\d+)")
    case.told(r"override: ([\d,]+) blocks fit, ([\d.]+) times", profiled, f"{profiled / blocks:.2f}")
    case.fixed("num_gpu_blocks_override", "none")
    case.silent = "nothing was set by hand"
    tokens = int(profiled) * 16
    yield case.without("Overriding|" + CAPACITY, capacity(tokens, 4096, tokens / 4096))


@remedy("VL315")
def copies(case: Case) -> Iterator[Block]:
    ranks, heads = int(case.read(r"tensor_parallel_size=(\d+)")), case.block.arguments["model"]["num_key_value_heads"]
    times, memory = ranks // heads, case.read(r"memory: ([\d.]+) GiB")
    case.told(
        r"--decode-context-parallel-size (\d+) keeps each token once and makes the pool (\d+) times", times, times
    )
    case.told(r"--tensor-parallel-size (\d+) with --data-parallel-size (\d+)", heads, times)
    case.told(r"\(([\d.]+) GiB of ([\d.]+) GiB", f"{memory * (times - 1) / times:.2f}", f"{memory:.2f}")
    yield printed_again(case.block, decode_context_parallel_size=times)
    yield printed_again(case.block, tensor_parallel_size=heads, data_parallel_size=times)


@remedy("VL316")
def reserved(case: Case) -> Iterator[Block]:
    model, memory = case.block.arguments["model"], case.read(r"memory: ([\d.]+) GiB")
    head = model["hidden_size"] // model["num_attention_heads"]
    each = 2 * model["num_hidden_layers"] * model["num_key_value_heads"] * head * 2
    case.told(r"plan with ([\d.]+) GiB", f"{Decimal(size(case) * each) / GIB:.2f}")
    tokens = int(memory * GIB) // (each * 16) * 16  # no items: nothing is taken from it
    length, _ = concurrency(case)
    none = "{'model': 'm', 'limit_mm_per_prompt': {'image': 0, 'video': 0}}"
    args = f"INFO 03-01 09:59:59 [utils.py:233] non-default args: {none}\n"
    yield case.with_log(args + case.without(CAPACITY, capacity(tokens, length, tokens / length)).log)


@remedy("VL317")
def stages_divide(case: Case) -> Iterator[Block]:
    stages, blocks = int(case.read(r"pipeline_parallel_size=(\d+)")), int(case.read(r"GPU blocks: (\d+)"))
    case.told(r"count on (\d+) queues of ([\d,]+) tokens each", stages, blocks // stages * 16)
    case.told(r"--tensor-parallel-size (\d+)", stages)
    case.silent = "there are no stages"
    yield case.again(
        (
            r"tensor_parallel_size=1, pipeline_parallel_size=2",
            f"tensor_parallel_size={stages}, pipeline_parallel_size=1",
        )
    )
