"""Card readings: every tool's output, and what is none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck.smi import SmiError, read_smi
from vlogcheck.units import MIB, Interval

SMI = Path(__file__).parents[1] / "fixtures" / "smi"
H100 = 81559


@pytest.mark.parametrize(
    ("file", "tool", "cards"),
    [
        ("nvidia-smi-table.txt", "nvidia-smi", [(0, H100, 73012), (1, H100, 4)]),
        ("nvidia-smi-query.csv", "nvidia-smi", [(0, H100, 73012), (1, H100, 4)]),
        ("nvidia-smi-query-nounits.csv", "nvidia-smi", [(0, H100, 73551), (1, H100, 544)]),
        ("hy-smi.txt", "rocm-smi", [(0, 65520, 58368)]),
        ("npu-smi.txt", "npu-smi", [(0, 65536, 60411), (1, 65536, 3345)]),
    ],
)
def test_cards_in_mib(file: str, tool: str, cards: list[tuple[int, int, int]]) -> None:
    occupancy = read_smi(SMI / file)
    assert occupancy.tool == tool
    assert [card.number for card in occupancy.cards] == [number for number, _, _ in cards]
    for card, (_, total, used) in zip(occupancy.cards, cards, strict=True):
        assert total * MIB in card.total
        assert used * MIB in card.used
        assert card.total.hi - card.total.lo <= MIB
        assert card.used.hi - card.used.lo <= 2 * MIB


@pytest.mark.parametrize("file", ["rocm-smi-57-57-57-49.txt", "rocm-smi.csv", "rocm-smi.json"])
def test_cards_in_bytes(file: str) -> None:
    occupancy = read_smi(SMI / file)
    assert occupancy.tool == "rocm-smi"
    assert occupancy.cards[0].total == Interval.exactly(68702699520)
    assert occupancy.cards[0].used == Interval.exactly(61203283968)
    assert occupancy.cards[0].total.lo == 65520 * MIB


def test_processes_are_named() -> None:
    processes = read_smi(SMI / "nvidia-smi-table.txt").processes
    assert [(p.card, p.pid, p.name) for p in processes] == [
        (0, 4401, "VLLM::Worker_TP0"),
        (0, 9120, "python3 train.py"),
    ]


def test_slices_are_told_from_cards() -> None:
    cards = read_smi(SMI / "nvidia-smi-mig.txt").cards
    assert [(card.number, card.slice) for card in cards] == [(0, None), (0, "instance 1"), (0, "instance 2")]
    assert 40448 * MIB in cards[1].total


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no card reading"),
        (
            b"INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config: model='m'\n",
            "nvidia-smi",
        ),
        (b"0, 81559 MiB, 4 MiB\n1, 81559 MiB, 4 MiB\n", "noheader"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "not a text file"),
        (b'{"data": 1}', "no card reading"),
    ],
)
def test_other_files_are_refused_with_what_is_wanted(content: bytes, says: str) -> None:
    with pytest.raises(SmiError, match=says):
        read_smi(content)


def test_a_directory_is_refused() -> None:
    with pytest.raises(ValueError, match="directory"):
        read_smi(SMI)


@given(st.text(max_size=400))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(SmiError):
        assert read_smi(text.encode("utf-8", "surrogatepass")).cards
