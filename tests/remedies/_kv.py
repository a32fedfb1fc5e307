"""Remedies of VL3xx: bytes, blocks and tokens of the KV cache."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING

from tests.remedies._case import Case, remedy
from tests.remedies._plan import printed_again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block

GIB = 2**30
CENT = Decimal("0.005")
CAPACITY = r"GPU KV cache size|Maximum concurrency"


def size(case: Case) -> int:
    return int(case.read(r"KV cache size: ([\d,]+) tokens"))


def concurrency(case: Case) -> tuple[int, Decimal]:
    length, requests = case.read(r"concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
    return int(length), requests


def capacity(tokens: int, length: int, requests: float | Decimal) -> str:
    """Return the two lines with other figures."""
    return (
        f"INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: {tokens:,} tokens\n"
        f"INFO 03-01 10:00:09 [kv_cache_utils.py:719] Maximum concurrency for {length:,} tokens per request: {requests:.2f}x\n"
    )


@remedy("VL301")
def blocks_and_tokens(case: Case) -> Iterator[Block]:
    blocks, block, length = (
        int(case.read(p)) for p in (r"num_gpu_blocks is: (\d+)", r"block_size=(\d+)", r"max_seq_len=(\d+)")
    )
    case.told(r"smaller figure, ([\d,]+) tokens", min(blocks * block, size(case)))
    # Each server's lines apart: the one with the blocks prints its own tokens, the other one no blocks.
    yield case.without(CAPACITY, capacity(blocks * block, length, blocks * block / length))
    case.silent = "the other server's log prints no blocks"
    yield case.without("num_gpu_blocks is")


@remedy("VL302")
def tokens_and_concurrency(case: Case) -> Iterator[Block]:
    length, requests = concurrency(case)
    case.told(
        r"no more than (\d+) requests of ([\d,]+) tokens", int(min(requests, Decimal(size(case)) / length)), length
    )
    for tokens in (size(case), ceil(requests * length / 16) * 16):  # the two servers, each with its own lines
        yield case.without(CAPACITY, capacity(tokens, length, tokens / length))


@remedy("VL303")
def no_capacity(case: Case) -> Iterator[Block]:
    length, requests = concurrency(case)
    case.told(r"concurrency at ([\d,]+) tokens and nothing", length)
    case.told(r"--expect-concurrency (\d+) --context (\d+)", int(requests), length)
    yield case.stating(concurrency=int(requests), context=length)


@remedy("VL304")
def bytes_per_token(case: Case) -> Iterator[Block]:
    model = case.block.arguments["model"]
    whole = 2 * model["num_hidden_layers"] * model["num_key_value_heads"] * model["head_dim"] * 2
    memory = case.read(r"memory: ([\d.]+) GiB")
    per_token = whole // 2
    assert abs(memory * GIB / size(case) - per_token) < Decimal("0.01") * GIB / size(case)
    case.told(r"plan with ([\d,]+) B", per_token)
    case.told(
        r"token: ([\d,]+) tokens in this memory instead of ([\d,]+)",
        size(case),
        (memory - CENT) * GIB // (whole * 16) * 16,
    )
    # The term that makes half of it: one byte per element, or half the KV heads.
    yield case.again((r"max_seq_len=", "kv_cache_dtype=fp8, max_seq_len="))
    yield case.block._replace(arguments={**case.block.arguments, "model": {**model, "num_key_value_heads": 4}})


@remedy("VL305")
def not_of_the_configuration(case: Case) -> Iterator[Block]:
    length, requests = concurrency(case)
    case.told(r"plan with ([\d,]+) tokens, ([\d.]+) requests of ([\d,]+) tokens", size(case), requests, length)
    model = dict(case.block.arguments["model"])
    # The model that was served: full attention in every layer, whose tokens VL304 judges.
    served = model | {"sliding_window": None, "layer_types": ["full_attention"] * model["num_hidden_layers"]}
    case.silent = "all layers are alike (see VL304)"
    yield case.block._replace(arguments={**case.block.arguments, "model": served})


@remedy("VL306")
def fewer_tokens(case: Case) -> Iterator[Block]:
    wanted, memory = case.block.arguments["expect"].tokens, case.read(r"memory: ([\d.]+) GiB")
    case.told(r"plan with ([\d,]+) tokens", size(case))
    grown = Decimal(wanted) / size(case)
    case.told(
        r"or give it ([\d.]+) GiB more .* \(([\d.]+) GiB in all\)",
        f"{memory * (grown - 1):.2f}",
        f"{memory * grown:.2f}",
    )
    yield case.stating(tokens=size(case))
    yield printed_again(case.block, kv_cache_memory_bytes=case.finding.fix["kv_cache_memory_bytes"])


@remedy("VL307")
def stated_bytes(case: Case) -> Iterator[Block]:
    model, ranks = case.block.arguments["model"], int(case.read(r"tensor_parallel_size=(\d+)"))
    each = 2 * model["num_hidden_layers"] * model["num_key_value_heads"] // ranks * model["head_dim"] * 2
    case.told(r"plan with ([\d,]+) B", each)
    case.fixed("kv_bytes_per_token", each)
    yield case.stating(kv_bytes_per_token=each)


@remedy("VL308")
def type_not_used(case: Case) -> Iterator[Block]:
    case.told(r"plan with the ([\d,]+) tokens there are, not the ([\d,]+)", size(case), 2 * size(case))
    yield case.again((r"'kv_cache_dtype': 'fp8'", f"'kv_cache_dtype': '{case.finding.fix['kv_cache_dtype']}'"))
    length, requests = concurrency(case)  # or a back end that supports it
    block = case.without(CAPACITY, capacity(2 * size(case), length, 2 * requests))
    yield Case(block, case.finding).again((r"kv_cache_dtype=auto", "kv_cache_dtype=fp8"))
