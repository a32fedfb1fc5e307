"""Remedies of VL2xx: what a rank loads."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.remedies._case import Case, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block


def loaded(case: Case) -> Decimal:
    found: Decimal = case.read(r"took ([\d.]+) (?:GiB|GB)")
    return found


def parameters(config: dict[str, int]) -> int:
    """Return the parameters of a Qwen2 model whose head is not tied."""
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    key = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    layer = 2 * hidden * hidden + 2 * hidden * key + hidden + 2 * key + 3 * hidden * inner + 2 * hidden
    return layers * layer + 2 * config["vocab_size"] * hidden + hidden


def near(case: Case, pattern: str, due: Decimal) -> Decimal:
    """Return a figure of the remedy that differs from the parameters alone by buffers and the allocator's rounding."""
    match = re.search(pattern, case.finding.remedy)
    assert match is not None
    said = Decimal(match[1])
    case.told(pattern, said)
    assert abs(said - due) < Decimal("0.1")
    return said


@remedy("VL201")
def not_as_expected(case: Case) -> Iterator[Block]:
    seen, stated = loaded(case), Decimal("4.5")
    case.told(r"--expect-weights ([\d.]+)GiB", f"{seen:.2f}")
    case.told(r"has ([\d.]+) GiB less", f"{seen - stated:.2f}")
    yield case.stating(weights=f"{seen:.2f}GiB")


@remedy("VL202")
def above(case: Case) -> Iterator[Block]:
    half = Decimal(parameters(case.block.arguments["model"]) * 2) / 2**30
    extra = near(case, r"grows by about ([\d.]+) GiB", loaded(case) - half)
    case.told(r"--dtype bfloat(\d+)", 16)
    case.fixed("dtype", "bfloat16")
    yield case.again((r"took [\d.]+ GiB", f"took {loaded(case) - extra:.4f} GiB"))


@remedy("VL203")
def below(case: Case) -> Iterator[Block]:
    whole = Decimal(parameters(case.block.arguments["model"]) * 2) / 2**30
    missing = near(case, r"index: ([\d.]+) GiB per rank", whole - loaded(case))
    yield case.again((r"took [\d.]+ GiB", f"took {loaded(case) + missing:.4f} GiB"))  # the shards are there


@remedy("VL204")
def next_to_none(case: Case) -> Iterator[Block]:
    case.told(r"its (\d+) card \(CUDA_VISIBLE_DEVICES=(\d)\)", 1, 0)
    # 7.6 billion parameters in 16 bits, on the device that is measured; or measured rightly by the next release.
    weights = f"{Decimal(7_615_616_512 * 2) / 2**30:.4f}"
    yield case.again((r"took 0\.0000 GB", f"took {weights} GB"))
    case.told(r"before ([\d.]+) another device", "0.7.3")
    yield case.again((r"took 0\.0000 GB", f"took {weights} GB"), (r"v0\.7\.2", "v0.7.3"))


@remedy("VL205")
def float32(case: Case) -> Iterator[Block]:
    half = loaded(case) / 2
    case.told(r"take ([\d.]+) GiB instead of ([\d.]+) GiB", f"{half:.2f}", f"{loaded(case):.2f}")
    case.told(r"gets ([\d.]+) GiB more", f"{half:.2f}")
    yield case.again(
        (r"torch\.float32", f"torch.{case.finding.fix['dtype']}"), (r"took [\d.]+ GiB", f"took {half:.4f} GiB")
    )


@remedy("VL206")
def numerics(case: Case) -> Iterator[Block]:
    ranks, each = 2, loaded(case)
    case.told(
        r"at most ([\d.]+) GiB on each of (\d+) ranks, or ([\d.]+) GiB on (\d+)\)",
        f"{4 * each:.2f}",
        ranks,
        f"{each:.2f}",
        4 * ranks,
    )
    plain = (r", quantization=gptq", "")
    yield case.again(plain, (r"took [\d.]+ GiB", f"took {4 * each:.4f} GiB"))
    yield case.again(plain, (r"parallel_size=2", f"parallel_size={4 * ranks}"))
