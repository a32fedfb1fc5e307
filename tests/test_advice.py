"""The table of utilizations and the reserve rule."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vlogcheck.advice import SITUATIONS, advise, largest_utilization, reserve, unified_memory
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
