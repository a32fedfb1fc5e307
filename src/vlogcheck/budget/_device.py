"""What the ledger has to know about the card: its compute capability and its size, read from a name or a size."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vlogcheck._lazy import pattern

#: (part of the name, compute capability ×10, nominal memory in bytes); the first that occurs in the name counts.
_CARDS = (
    ("gb300", 103, 288 << 30), ("b300", 103, 288 << 30), ("gb200", 100, 186 << 30), ("b200", 100, 178 << 30),
    ("gh200", 90, 96 << 30), ("h200", 90, 141 << 30), ("h100", 90, 80 << 30), ("h800", 90, 80 << 30), ("h20", 90,
    96 << 30),
    ("a100", 80, 80 << 30), ("a800", 80, 80 << 30), ("a30", 80, 24 << 30), ("a40", 86, 48 << 30), ("a10", 86, 24 << 30),
    ("a6000", 86, 48 << 30), ("a5000", 86, 24 << 30), ("rtx 3090", 86, 24 << 30), ("l40", 89, 48 << 30), ("l20", 89,
    48 << 30),
    ("l4", 89, 24 << 30), ("rtx 4090", 89, 24 << 30), ("6000 ada", 89, 48 << 30), ("rtx 5090", 120, 32 << 30),
    ("pro 6000", 120, 96 << 30), ("gb10", 121, 120 << 30), ("spark", 121, 120 << 30), ("thor", 110, 122 << 30),
    ("v100", 70, 32 << 30), ("t4", 75, 16 << 30),
)  # fmt: skip
_CAPABILITY = pattern(r"sm_?(\d{2,3})\b|\bcc\s*(\d{1,2})\.(\d)", re.IGNORECASE)
_BYTES = pattern(r"(\d{9,13})\s*B\b")
_NOMINAL = pattern(r"\b(\d{2,3})\s*G(?:i?B)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Device:
    """One accelerator card.

    Attributes:
        name: as given, in lower case.
        capability: compute capability ×10 (90 for Hopper).
        memory: bytes the driver reports, or the nominal size where only that is known.
        assumption: what was assumed about it, ``None`` when nothing was.

    """

    name: str
    capability: int
    memory: int | None
    assumption: str | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU backend serves the model."""
        return self.name == "cpu"


def known_cards() -> list[str]:
    """Return the names by which cards are known, newest first."""
    return [name.upper() if len(name) < 7 else name for name, *_ in _CARDS]


def is_plausible(text: str) -> bool:
    """Whether a text can be the name of a card: `cpu`, or something with a model number in it (MI300X, Ascend 910B)."""
    return text.strip().lower() == "cpu" or any(character.isdigit() for character in text)


_DEFAULT = Device("h100", 90, 80 << 30, "card not given: an H100-class one (compute capability 9.0, 80 GB) assumed")


def parse_device(text: str | None, memory: int | None = None) -> Device:
    """Read a card from its name (``NVIDIA H100 80GB HBM3``, ``sm90`` or bytes may be in it) and its memory in bytes."""
    if text is None or not text.strip():
        if memory is None:
            return _DEFAULT
        return _from_memory(memory)
    name = text.strip().lower()
    if name == "cpu":
        return Device("cpu", 0, memory)
    capability = nominal = None
    for part, number, size in _CARDS:
        if re.search(rf"(?<![a-z0-9]){re.escape(part)}(?![0-9])", name):
            capability, nominal = number, size
            break
    if found := _CAPABILITY.search(name):
        capability = int(found.group(1)) if found.group(1) else int(found.group(2)) * 10 + int(found.group(3))
    if memory is None:
        if found := _BYTES.search(text):
            memory = int(found.group(1))
        elif found := _NOMINAL.search(name):
            memory = int(found.group(1)) << 30
        else:
            memory = nominal
    if capability is None:
        return Device(name, 90, memory, f"card {text.strip()[:60]!r} is not known: compute capability 9.0 assumed")
    return Device(name, capability, memory)


def _from_memory(memory: int) -> Device:
    if memory >= 160 << 30:
        return Device("b200", 100, memory, "card not given: a B200-class one assumed from its memory")
    if any(abs(memory - round(gib * 2**30)) < 20 << 20 for gib in (79.25, 79.32)):
        return Device("a100", 80, memory, "card not given: an A100-80GB-class one assumed from its memory")
    if memory >= 70 << 30:
        return Device("h100", 90, memory, "card not given: an H100-class one (compute capability 9.0) assumed")
    return Device("", 80, memory, "card not given: compute capability 8.0 assumed")
