"""How the value of a ``vllm serve`` flag is read, by the kind of value it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from vlogcheck._lazy import pattern
from vlogcheck.budget._flagtypes import Kind

__all__ = ["PARSERS", "FlagError", "human_int"]


class FlagError(ValueError):
    """A known flag without its value, or with one that cannot be meant."""


_NUMBER = pattern(r"([+-]?\d+(?:_\d+)*(?:\.\d+)?)\s*([A-Za-z]*)")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LARGEST = 2**60
_MOST = {
    "tensor_parallel_size": 65_536,
    "pipeline_parallel_size": 1024,
    "data_parallel_size": 65_536,
    "decode_context_parallel_size": 65_536,
    "prefill_context_parallel_size": 65_536,
}
"""Ranks that no deployment has: the plan is made rank by rank."""


def human_int(name: str, value: object, *, binary_suffixes: bool = False) -> int:
    """Read a whole number as vLLM's command line does: ``32k`` is 32 000, ``32K`` is 32 768, ``25.6k`` is 25 600.

    With ``binary_suffixes`` also ``80GiB``, ``80GB`` (10**9) and ``80MiB``.

    Raises:
        FlagError: not such a number, or one beyond 2**60.

    """
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        raise FlagError(f"{flag} needs a number, not {value}")
    if isinstance(value, float):
        if not value.is_integer() or abs(value) > _LARGEST:
            raise FlagError(f"{flag} needs a whole number, not {value}")
        value = int(value)
    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise FlagError(f"{flag} is far too large")
        return value
    if not isinstance(value, str) or len(value) > 60:
        raise FlagError(f"{flag} needs a number, not {_short(value)}")
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        raise FlagError(f"{flag} needs a number, not {_short(value)}")
    digits, suffix = match.group(1).replace("_", ""), match.group(2)
    if suffix in _DECIMAL:
        factor = _DECIMAL[suffix]
    elif suffix in _BINARY:
        factor = _BINARY[suffix]
        if "." in digits:
            raise FlagError(f"{flag}: a decimal fraction cannot be given with the binary suffix {suffix!r}")
    elif binary_suffixes and suffix.lower() in {"kib", "mib", "gib", "tib"}:
        factor = _BINARY[suffix[0].upper()]
    elif binary_suffixes and suffix.lower() in {"kb", "mb", "gb", "tb"}:
        factor = _DECIMAL[suffix[0].lower()]
    elif suffix in {"", "b", "B"} and (binary_suffixes or not suffix):
        factor = 1
    else:
        raise FlagError(f"{flag}: unknown suffix {suffix!r} in {_short(value)}")
    whole, _, fraction = digits.partition(".")
    if factor == 1 and fraction.strip("0"):
        raise FlagError(f"{flag} needs a whole number, not {_short(value)}")
    # exact: 25.6k is 25600, not 25.6 * 1000.0
    sign = -1 if whole.startswith("-") else 1
    scaled = sign * (abs(int(whole)) * factor + (int(fraction) * factor // 10 ** len(fraction) if fraction else 0))
    if abs(scaled) > _LARGEST:
        raise FlagError(f"{flag} is far too large")
    return scaled


def _count(name: str, value: object) -> int:
    number = human_int(name, value)
    if number < 1:
        raise FlagError(f"--{name.replace('_', '-')} must be at least 1, not {number}")
    most = _MOST.get(name)
    if most is not None and number > most:
        raise FlagError(f"--{name.replace('_', '-')} is {number:,}: more than {most:,} cannot be meant")
    return number


def _length(name: str, value: object) -> int:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return -1
    number = human_int(name, value)
    if number < 1 and number != -1:
        raise FlagError(f"--{name.replace('_', '-')} must be at least 1, or -1 to fit it to the memory, not {number}")
    return number


def _bytes(name: str, value: object) -> int:
    number = human_int(name, value, binary_suffixes=True)
    if number < 0:
        raise FlagError(f"--{name.replace('_', '-')} must not be negative")
    return number


def _number(name: str, value: object) -> float:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FlagError(f"{flag} needs a number, not {_short(value)}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise FlagError(f"{flag} needs a number, not {_short(value)}") from None
    if not -_LARGEST < number < _LARGEST:
        raise FlagError(f"{flag} needs a finite number, not {_short(value)}")
    return number


def _fraction(name: str, value: object) -> float:
    number = _number(name, value)
    if not 0 < number <= 1:
        raise FlagError(f"--{name.replace('_', '-')} must lie above 0 and not above 1, not {number}")
    return number


def _gib(name: str, value: object) -> float:
    number = _number(name, value)
    if number < 0:
        raise FlagError(f"--{name.replace('_', '-')} must not be negative")
    return number


def _switch(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise FlagError(f"--{name.replace('_', '-')} is a switch, not {_short(value)}")


def _object(name: str, value: object) -> Mapping[str, Any] | None:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, str):
        text = value.strip()
        if text.isdigit() and name == "compilation_config":
            return MappingProxyType({"mode": int(text[:3])})
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FlagError(f"{flag} needs a JSON object: {error}") from None
    elif name == "compilation_config" and isinstance(value, int) and not isinstance(value, bool):
        value = {"mode": value}
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise FlagError(f"{flag} needs a JSON object, not {_short(value)}")
    return MappingProxyType({str(key): item for key, item in value.items()})


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise FlagError(f"--{name.replace('_', '-')} needs a word, not {_short(value)}")
    return value


def _words(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(","))
    if not isinstance(value, Sequence):
        raise FlagError(f"--{name.replace('_', '-')} needs words, not {_short(value)}")
    if len(value) == 1 and isinstance(value[0], str) and value[0].lstrip().startswith("["):
        try:  # a list written as one JSON word, as engine arguments are filed
            found = json.loads(value[0])
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list):
            value = found
    return tuple(str(item) for item in value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


PARSERS: dict[Kind, Callable[[str, Any], Any]] = {
    Kind.COUNT: _count,
    Kind.LENGTH: _length,
    Kind.BYTES: _bytes,
    Kind.FRACTION: _fraction,
    Kind.GIB: _gib,
    Kind.SWITCH: _switch,
    Kind.OBJECT: _object,
    Kind.TEXT: _text,
    Kind.WORDS: _words,
}
