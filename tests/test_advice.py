"""The table of utilizations and the reserve rule."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vlogcheck.advice import SITUATIONS, advise, largest_utilization, reserve, unified_memory, utilization_advice
from vlogcheck.budget.releases import parse_release
from vlogcheck.units import GIB, Interval

GB = 10**9


@pytest.mark.parametrize(
    ("total", "kept"),
    [(8 * GIB, 2 * GB), (24 * GIB, 2 * GB), (40 * GIB, 2 * GB), (64 * GIB, 64 * GIB // 20), (41 * GIB, 41 * GIB // 20)],
)
def test_reserve(total: int, kept: int) -> None:
    assert reserve(total) == kept


@pytest.mark.parametrize(
    ("total", "version", "options", "row"),
    [
        (64 * GIB, "0.19.1", {}, ("production", "0.9", "0.9")),
        (64 * GIB, "0.20.2", {}, ("production", "0.92", "0.92")),
        (12 * GIB, "0.20.2", {}, ("small", "0.75", "0.8")),
        (64 * GIB, "0.20.2", {"shared": True}, ("shared", "0.8", "0.8")),
        (64 * GIB, "0.20.2", {"others": 10 * GIB}, ("shared", "0.8", "0.8")),
        (64 * GIB, "0.20.2", {"others": 30 * GIB}, ("several", "0.4", "0.7")),
        (None, "0.20.2", {}, ("production", "0.92", "0.92")),
    ],
)
def test_situations(total: int | None, version: str, options: dict[str, int], row: tuple[str, str, str]) -> None:
    found = advise(total, parse_release(version), **options)  # type: ignore[arg-type]
    assert (found.key, found.low, found.high) == (row[0], Fraction(row[1]), Fraction(row[2]))


def test_every_situation_says_why() -> None:
    for row in SITUATIONS.values():
        assert row.text
        assert row.why
        assert (row.low is None) == (row.high is None)


def test_largest_utilization_is_rounded_down() -> None:
    assert largest_utilization(int(121.69 * GIB), int(101.9 * GIB)) == 0.83
    assert largest_utilization(0, 0) == 0


@pytest.mark.parametrize(
    ("total", "name"),
    [
        ("119.7", "GB10 (DGX Spark)"),
        ("121.69", "GB10 (DGX Spark)"),
        ("142.5", "GH200"),
        ("95.0", None),
        ("63.98", None),
    ],
)
def test_unified_memory(total: str, name: str | None) -> None:
    size = int(Fraction(total) * GIB)
    assert unified_memory(Interval(size, size)) == name


@pytest.mark.parametrize(
    ("total", "version", "share", "first", "says"),
    [
        ("63.98", "0.19.1", "1", "1.0 is never right", "at most 0.95"),
        ("63.98", "0.19.1", "0.97", "0.97 leaves 1.92 GiB of the card", "reserve of 3.20 GiB: at most 0.95"),
        ("63.98", "0.19.1", "0.95", "0.95 is more than the 0.90", "one long prompt or large batch ends the process"),
        ("63.98", "0.19.1", "0.9", "0.90 for the card to itself", "0.80 with other programs"),
        ("63.98", "0.20.2", "0.92", "0.92 for the card to itself", "0.40 to 0.70 for each of several models"),
        ("16", "0.20.2", "0.92", "0.92 leaves 1.28 GiB of the card", "reserve of 1.86 GiB: at most 0.88"),
        ("12", "0.19.1", "0.84", "0.84 is more than the 0.75 to 0.80", "fixed overheads weigh more"),
        ("12", "0.19.1", "0.78", "0.75 to 0.80 for a card of at most 12 GB", "0.80 where graph capture fails"),
    ],
)
def test_advice_before_a_server_exists(total: str, version: str, share: str, first: str, says: str) -> None:
    size = int(Fraction(total) * GIB)
    lines = utilization_advice(size, parse_release(version), Fraction(share))
    assert lines[0].startswith(first)
    assert says in "\n".join(lines)
    assert "tightest" not in "\n".join(lines)
    assert (
        "the tightest of the 4 cards" in utilization_advice(size, parse_release(version), Fraction(share), ranks=4)[-1]
    )
