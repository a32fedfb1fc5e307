"""Saved card readings: what `nvidia-smi`, `rocm-smi` and `npu-smi` say is in use on each card.

Read are the table of `nvidia-smi` (with its MIG and process sections), `nvidia-smi --query-gpu=… --format=csv` with any
columns that hold the memory, `rocm-smi --showmeminfo vram` as text, CSV or JSON, and the table of `npu-smi info`. `MiB`
and `MB` both mean 2**20 bytes in these tools (65,536 "MB" is a 64 GiB NPU); `(B)` is bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from vlogcheck._attached import AttachedFileError, Source, read_attached
from vlogcheck._lazy import pattern
from vlogcheck.units import GIB, MIB, Interval, decimal_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Card", "CardProcess", "Occupancy", "SmiError", "read_smi"]


class SmiError(AttachedFileError):
    """A file that is no reading of a known tool; the text says what was looked for."""


class CardProcess(NamedTuple):
    """A process on a card."""

    card: int
    pid: int
    name: str
    used: Interval | None
    """Bytes it holds."""


class Card(NamedTuple):
    """One card (or MIG slice) as read. Sizes are bytes, as intervals of the printed rounding."""

    number: int
    """The tool's index of the card."""
    name: str | None
    total: Interval
    used: Interval
    line: int
    """Line of the file."""
    slice: str | None = None
    """Which MIG slice of the card it is."""


class Occupancy(NamedTuple):
    """One reading of all cards of a host."""

    tool: str
    path: str
    cards: list[Card]
    processes: list[CardProcess]


_LARGEST = 1 << 62
_LONGEST_LINE = 1000
"""Characters of a line of a table: the widest ones have about 200."""


def read_smi(source: Source) -> Occupancy:
    """Read a saved reading: a path, the bytes, or a binary file.

    Raises `SmiError` with a message for people when it is none, and `OSError` when it cannot be opened.
    """
    text, path = read_attached(source, "--smi", SmiError)
    whole, text = text, "\n".join(line if len(line) <= _LONGEST_LINE else "" for line in text.splitlines()) + "\n"
    for tool, reader in _READERS:
        try:
            cards = list(reader(whole if reader is _rocm_json else text))
            processes = list(_processes(text)) if cards and tool == "nvidia-smi" else []
        except ValueError:  # more digits than Python reads
            raise SmiError(f"{path} holds numbers that no card has") from None
        if any(card.total.hi >= _LARGEST or card.used.hi >= _LARGEST for card in cards):
            raise SmiError(f"{path} holds sizes that no card has")
        if cards:
            return Occupancy(tool, path, cards, processes)
    if re.match(r"\s*[^,\n]+(,[^,\n]+)+\n", text) and "MiB" in text:
        raise SmiError(
            f"{path} has no column names: save it with them (`nvidia-smi --query-gpu=index,memory.total,memory.used"
            " --format=csv`, without noheader)"
        )
    raise SmiError(
        f"{path} is no card reading: give the saved output of `nvidia-smi`, `nvidia-smi --query-gpu=index,memory.total,"
        "memory.used --format=csv`, `rocm-smi --showmeminfo vram` or `npu-smi info`"
    )


def _mib(text: str) -> Interval:
    return decimal_interval(text, MIB)


_CARD = pattern(r"\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*[0-9A-Fa-f]{4,8}:")
_MEMORY = pattern(r"\|\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")
_SLICE = pattern(r"\|\s*(\d+)\s+(\d+)\s+\d+\s+\d+\s*\|\s*(\d+)\s*MiB\s*/\s*(\d+)\s*MiB")
_PROCESS = pattern(r"\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+\S+\s+(\S.*?)\s+(\d+)\s*MiB\s*\|")


def _nvidia_table(text: str) -> Iterator[Card]:
    index, name = None, None
    slices = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SLICE.search(line):
            slices.append(Card(int(match[1]), None, _mib(match[4]), _mib(match[3]), number, f"instance {match[2]}"))
        elif match := _CARD.search(line):
            index, name = int(match[1]), match[2].strip()
        elif index is not None and (match := _MEMORY.search(line)):
            yield Card(index, name, _mib(match[2]), _mib(match[1]), number)
            index = None
    yield from slices


def _processes(text: str) -> Iterator[CardProcess]:
    for line in text.splitlines():
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


def _rocm_json(text: str) -> Iterator[Card]:
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


_READERS: tuple[tuple[str, Callable[[str], Iterator[Card]]], ...] = (
    ("rocm-smi", _rocm_json),
    ("rocm-smi", _rocm_text),
    ("npu-smi", _npu),
    ("nvidia-smi", _nvidia_table),
    ("nvidia-smi", _nvidia_csv),
    ("rocm-smi", _rocm_csv),
)
