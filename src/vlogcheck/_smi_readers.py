"""The tools' own formats: one reader each, from the whole text to its cards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vlogcheck._lazy import pattern
from vlogcheck.smi import Card, CardProcess
from vlogcheck.units import GIB, MIB, Interval, decimal_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["READERS", "processes_of", "rocm_json"]


def _mib(text: str) -> Interval:
    return decimal_interval(text, MIB)


_CARD = pattern(r"\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*[0-9A-Fa-f]{4,8}:")
_MEMORY = pattern(r"\|\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")
_SLICE = pattern(r"\|\s*(\d+)\s+(\d+)\s+\d+\s+\d+\s*\|\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")
_PROCESS = pattern(r"\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+\S+\s+(\S.*?)\s+(\d+)\s*MiB\s*\|")


_WIDEST = 400
"""Columns no row of nvidia-smi comes near: what is wider is none, and not worth the search."""


def _table_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be rows of a table, with their numbers."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if len(line) <= _WIDEST)


def _nvidia_table(text: str) -> Iterator[Card]:
    index, name = None, None
    slices = []
    for number, line in _table_lines(text):
        if match := _SLICE.search(line):
            slices.append(Card(int(match[1]), None, _mib(match[4]), _mib(match[3]), number, f"instance {match[2]}"))
        elif match := _CARD.search(line):
            index, name = int(match[1]), match[2].strip()
        elif index is not None and (match := _MEMORY.search(line)):
            yield Card(index, name, _mib(match[2]), _mib(match[1]), number)
            index = None
    yield from slices


def processes_of(text: str) -> Iterator[CardProcess]:
    """Yield the processes of nvidia-smi's table."""
    for _, line in _table_lines(text):
        if match := _PROCESS.search(line):
            yield CardProcess(int(match[1]), int(match[2]), match[3], _mib(match[4]))


_SIZED = pattern(r"(-?\d+(?:\.\d+)?)\s*([KMGT]?i?B)?", re.IGNORECASE)
_UNITS = {"b": 1, "k": 1 << 10, "m": MIB, "g": GIB, "t": 1 << 40}


def _size(text: str, unit: str | None) -> Interval | None:
    match = _SIZED.fullmatch(text.strip())
    if match is None:
        return None
    factor = _UNITS[(match[2] or unit or "MiB")[0].lower()]
    return decimal_interval(match[1], factor)


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line; these tools quote nothing."""
    for line in text.splitlines():
        yield [cell.strip() for cell in line.split(",")]


def _nvidia_csv(text: str) -> Iterator[Card]:
    """Read CSV with a header; `nounits` leaves the unit to the header."""
    columns: dict[str, tuple[int, str | None]] = {}
    for number, row in enumerate(_rows(text), 1):
        if not columns:
            names = [re.fullmatch(r"\s*([\w.]+)\s*(?:\[(\w+)\])?\s*", cell) for cell in row]
            found = {match[1]: (at, match[2]) for at, match in enumerate(names) if match}
            if sum(key in found for key in ("memory.total", "memory.used", "memory.free")) >= 2:
                columns = found
            continue

        def cell(key: str, row: list[str] = row, columns: dict[str, tuple[int, str | None]] = columns) -> str | None:
            at = columns.get(key, (len(row), None))[0]
            return row[at].strip() if at < len(row) else None

        sizes = {
            key: _size(said, columns[key][1])
            for key in ("memory.total", "memory.used", "memory.free")
            if (said := cell(key)) is not None
        }
        total, used, free = (sizes.get(key) for key in ("memory.total", "memory.used", "memory.free"))
        if total is None and used is not None and free is not None:
            total = used.plus(free)
        if used is None and total is not None and free is not None:
            used = total.minus(free)
        if total is None or used is None:
            continue
        index = cell("index")
        at = int(index) if index is not None and index.isdecimal() else number - 2
        yield Card(at, cell("name") or cell("gpu_name"), total, used, number)


_VRAM = pattern(r"VRAM Total (Used )?Memory \((\w+)\)", re.IGNORECASE)
_VRAM_LINE = pattern(r"(?:GPU|HCU|DCU)\[(\d+)\]\s*:\s*VRAM Total (Used )?Memory \((\w+)\)\s*:\s*(\d+)", re.IGNORECASE)


def _cards(found: dict[int, dict[bool, tuple[Interval, int]]]) -> Iterator[Card]:
    for index, sizes in sorted(found.items()):
        if True in sizes and False in sizes:
            yield Card(index, None, sizes[False][0], sizes[True][0], sizes[True][1])


def _rocm_text(text: str) -> Iterator[Card]:
    found: dict[int, dict[bool, tuple[Interval, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if (match := _VRAM_LINE.search(line)) and (size := _size(match[4], match[3])):
            found.setdefault(int(match[1]), {})[bool(match[2])] = (size, number)
    yield from _cards(found)


def _rocm_csv(text: str) -> Iterator[Card]:
    header: list[re.Match[str] | None] = []
    found: dict[int, dict[bool, tuple[Interval, int]]] = {}
    for number, row in enumerate(_rows(text), 1):
        if not any(header):
            header = [_VRAM.fullmatch(cell.strip()) for cell in row]
            continue
        device = re.search(r"(\d+)$", row[0].strip()) if row else None
        for match, said in zip(header, row, strict=False):
            if match and device and (size := _size(said, match[2])):
                found.setdefault(int(device[1]), {})[bool(match[1])] = (size, number)
    yield from _cards(found)


def rocm_json(text: str) -> Iterator[Card]:
    """Yield the cards of `rocm-smi --json`; nothing where the text is none."""
    import json

    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(data, dict):
        return
    found: dict[int, dict[bool, tuple[Interval, int]]] = {}
    for key, values in data.items():
        device = re.fullmatch(r"card(\d+)", str(key))
        for name, said in values.items() if device and isinstance(values, dict) else ():
            match = _VRAM.fullmatch(str(name).strip())
            if match and device and (size := _size(str(said), match[2])):
                found.setdefault(int(device[1]), {})[bool(match[1])] = (size, 1)
    yield from _cards(found)


_NPU = pattern(r"\|\s*(\d+)\s+(\S+)\s*\|\s*(?:OK|Warning|Alarm|Critical|UNKNOWN|NA)\s*\|", re.IGNORECASE)
_CHIP = pattern(r"\|\s*\d+(?:\s+\d+)?\s*\|\s*[0-9A-Fa-f]{4}:[^|]*\|([^|]*)\|")
_PAIR = pattern(r"(\d+)\s*/\s*(\d+)")


def _npu(text: str) -> Iterator[Card]:
    """Read the two-line rows of `npu-smi info`; the last pair of a chip's row is its device memory."""
    name = None
    seen = 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := _NPU.search(line):
            name = match[2]
        elif name is not None and (match := _CHIP.search(line)):
            pairs = [pair for pair in _PAIR.findall(match[1]) if int(pair[1])]
            if pairs:
                used, total = pairs[-1]
                yield Card(seen, name, _mib(total), _mib(used), number)
                seen += 1


READERS: tuple[tuple[str, Callable[[str], Iterator[Card]]], ...] = (
    ("rocm-smi", rocm_json),
    ("rocm-smi", _rocm_text),
    ("npu-smi", _npu),
    ("nvidia-smi", _nvidia_table),
    ("nvidia-smi", _nvidia_csv),
    ("rocm-smi", _rocm_csv),
)
