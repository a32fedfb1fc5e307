"""Logs copied from a terminal of 80 or 120 columns: the ledger's records are those of the log as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from vlogcheck import parse
from vlogcheck._copied import strip_ansi

from .conftest import ROOT, SHARED

CORE = {
    "DeviceBlocks", "EngineInit", "FreeMemoryTooLow", "GraphCapture", "KVCacheCapacity", "KVCacheMemory", "KVCacheTooSmall",
    "MaxConcurrency", "MemoryProfile", "MemoryUse", "NoKVCacheMemory", "OutOfMemory", "Ready", "WeightsLoaded", "WeightsRead",
}  # fmt: skip
OWN = {"line", "time", "wrapper_time", "container", "path"}
CORPUS = sorted((SHARED / "corpus").glob("*.log"))
LOGS = [
    path
    for path in [*sorted((ROOT / "fixtures" / "logs").glob("0.*/*.log")), *CORPUS]
    if "json" not in path.name
    and not path.read_bytes().startswith((b"{", b"\xff\xfe"))  # nobody copies those from a screen
]


def columns(char: str) -> int:
    return 2 if "一" <= char <= "鿿" or "　" <= char <= "〿" or "！" <= char <= "｠" else 1


def folded(line: str, width: int) -> Iterator[str]:
    """The rows a terminal shows a line in."""
    row, used = "", 0
    for char in line:
        if used + columns(char) > width:
            yield row
            row, used = "", 0
        row += char
        used += columns(char)
    yield row


def core(text: str) -> list[str]:
    return [
        json.dumps({name: value for name, value in record.to_dict().items() if name not in OWN}, default=str)
        for record in parse((text + "\n").encode())
        if type(record).__name__ in CORE
    ]


def test_there_is_a_corpus() -> None:
    if not CORPUS:
        pytest.skip(f"no {SHARED / 'corpus'}: only recorded logs are folded")
    assert len(LOGS) > len(CORPUS)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_ledger_survives_a_copy_from_the_terminal(path: Path) -> None:
    shown = [strip_ansi(line).rstrip("\r") for line in path.read_bytes().decode("utf-8", "replace").split("\n")]
    plain = core("\n".join(shown))
    for width in (80, 120):
        assert core("\n".join(row for line in shown for row in folded(line, width))) == plain, width
