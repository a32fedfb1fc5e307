"""Saved card readings: what `nvidia-smi`, `rocm-smi` and `npu-smi` say is in use on each card.

Read are the table of `nvidia-smi` (with its MIG and process sections), `nvidia-smi --query-gpu=… --format=csv` with any
columns that hold the memory, `rocm-smi --showmeminfo vram` as text, CSV or JSON, and the table of `npu-smi info`. `MiB`
and `MB` both mean 2**20 bytes in these tools (65,536 "MB" is a 64 GiB NPU); `(B)` is bytes.
"""

from __future__ import annotations

import re

from vlogcheck._attached import AttachedFileError, Source, read_attached
from vlogcheck._tuples import NamedTuple
from vlogcheck.units import Interval

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
    from vlogcheck._smi_readers import READERS, processes_of, rocm_json

    text, path = read_attached(source, "--smi", SmiError)
    whole, text = text, "\n".join(line if len(line) <= _LONGEST_LINE else "" for line in text.splitlines()) + "\n"
    for tool, reader in READERS:
        try:
            cards = list(reader(whole if reader is rocm_json else text))
            processes = list(processes_of(text)) if cards and tool == "nvidia-smi" else []
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
