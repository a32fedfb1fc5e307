"""What the holes of a template stand for: by a field's type, the expression, how its text is read and how it is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from vlogcheck._tuples import NamedTuple
from vlogcheck.units import GIB, GiB

__all__ = [
    "ANY",
    "HOLES",
    "NUMBER",
    "SIZE_UNITS",
    "Address",
    "Hole",
    "Kernels",
    "Literal",
    "Name",
    "Size",
    "TemplateError",
    "Word",
    "read_gib",
]

T = TypeVar("T")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_COUNT = r"-?\d{1,3}(?:,\d{3})+|-?\d+"
ANY = ".*?"
SIZE_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": GIB, "TiB": 1 << 40}


class TemplateError(ValueError):
    """A template or record that contradicts itself: found when it is compiled, never while reading a log."""


class Hole(NamedTuple):
    """What a field's type means inside a message: its expression, how to read it and how to print it."""

    expression: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    schema: str = "str"
    """The JSON type of the value, as a Python type name."""


_MOST_DIGITS = 64
_LARGEST = 1 << 63
"""No count, no duration and no size in bytes is as large. What claims to be is no figure: its line stays unrecognised."""

_NOT_TOLD = "17179869184.00 GiB"
"""torch's print of what the driver does not tell (2**64 - 1 bytes): memory of processes under WSL2."""


def _within(value: T, size: float) -> T:
    if not -_LARGEST < size < _LARGEST:  # also for NaN
        raise ValueError("out of range")
    return value


def _read_count(text: str) -> int:
    number = int(text.replace(",", ""))
    return _within(number, number)


def _read_float(text: str) -> float:
    number = float(text)
    return _within(number, number)


def read_gib(text: str, resolution: int = 2, unit: int = GIB) -> GiB:
    """Return a printed size. Raises `ValueError` for one that no memory has."""
    if len(text) > _MOST_DIGITS:
        raise ValueError("too many digits")
    size = GiB(text, resolution, unit)
    if "e" in text:
        _ = size.bytes  # raises for an exponent out of range
    return _within(size, size * GIB)


def _read_size(text: str) -> GiB | None:
    if text == _NOT_TOLD:
        return None
    number, _, unit = text.partition(" ")
    return read_gib(number, unit=SIZE_UNITS[unit])


def _read_bool(text: str) -> bool:
    return text == "True"


def _write_size(value: Any) -> str:
    return f"{value} GiB"


def _read_literal(text: str) -> Any:
    from vlogcheck._literals import read_literal

    return read_literal(text)


def _write_literal(value: Any) -> str:
    return repr(value)


_CAPITALISED = r"[A-Z][\w/.\-]*"
_KERNELS = r"(?!(?:KDA|LoRA|MOE|MoE|Mamba|Marlin|Quark|ReplaySSM|SSU|Transformers)(?![\w/.\-]))" + _CAPITALISED

HOLES: dict[str, Hole] = {
    "GiB": Hole(NUMBER, read_gib, str, "float"),
    "float": Hole(NUMBER, _read_float, repr, "float"),
    "int": Hole(_COUNT, _read_count, str, "int"),
    "bool": Hole("True|False", _read_bool, str, "bool"),
    "str": Hole(ANY, str, str, "str"),
    "Address": Hole(r"[^\s,;'\"`]+", str, str, "str"),
    "Word": Hole(r"[^\s,;()\[\]'\"]+", str, str, "str"),
    "Name": Hole(f"{_CAPITALISED}(?: {_CAPITALISED}){{0,4}}", str, str, "str"),
    "Kernels": Hole(f"{_KERNELS}(?: {_KERNELS}){{0,4}}", str, str, "str"),
    "Size": Hole(r"-?\d+(?:\.\d+)? (?:bytes|B|[KMGT]iB)", _read_size, _write_size, "float"),
    "Literal": Hole(".*", _read_literal, _write_literal, "object"),
}
"""Hole by the name of the field's type. `Name` is up to five capitalised words; `Kernels` those that name attention kernels, the
other back ends of a model being worded alike; `Size` is torch's own free choice of
unit and becomes GiB."""
Address = str
Word = str
Name = str
Kernels = str
Size = GiB
Literal = Any
