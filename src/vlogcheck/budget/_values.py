"""Checked reading of values out of a model's configuration.

A ``config.json`` is somebody else's file: any key may hold any JSON value. Every accessor here either returns a value
of the type it names, the default, or raises :class:`ModelConfigError` with the key in its text. Nothing else is ever
raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Larger than any count, length or width a model can have; beyond it a number is a mistake, not a model.
MAX_INT = 2**40

#: More layers than any model has; a pattern longer than this is refused instead of being expanded.
MAX_LAYERS = 100_000
#: More multi-token-prediction modules than any model has.
MAX_MODULES = 100


class ModelConfigError(ValueError):
    """The model configuration is missing, unreadable or holds a value no model can have."""


def as_int(value: object, key: str, *, minimum: int = 0) -> int:
    """Return ``value`` as an int of at least ``minimum``; integral floats such as ``4096.0`` are accepted.

    Raises:
        ModelConfigError: not a number, not integral, NaN or infinite, below ``minimum`` or above ``MAX_INT``.

    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelConfigError(f"config key {key!r} must be an integer, not {_show(value)}")
    if isinstance(value, float):
        if not value.is_integer():  # false for NaN and the infinities
            raise ModelConfigError(f"config key {key!r} must be an integer, not {value!r}")
        value = int(value)
    if not minimum <= value <= MAX_INT:
        raise ModelConfigError(
            f"config key {key!r} must lie between {minimum} and 2**40, not {value:.6g}"
            if value.bit_length() < 900
            else f"config key {key!r} is far too large"
        )
    return value


def as_float(value: object, key: str) -> float:
    """Return ``value`` as a finite float.

    Raises:
        ModelConfigError: not a number, NaN, infinite, or larger in size than ``MAX_INT``.

    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelConfigError(f"config key {key!r} must be a number, not {_show(value)}")
    if not abs(value) <= MAX_INT:  # also true for NaN
        raise ModelConfigError(f"config key {key!r} is not a finite number of sensible size")
    return float(value)


class Values:
    """Typed, checked access to one JSON object."""

    __slots__ = ("data", "where")

    def __init__(self, data: Mapping[str, Any], where: str = "") -> None:
        self.data = data
        self.where = where

    def name(self, key: str) -> str:
        """Return the key as it is named in error messages (with the object it sits in)."""
        return f"{self.where}.{key}" if self.where else key

    def first(self, *keys: str) -> tuple[str, Any] | None:
        """Return the first of ``keys`` whose value is present and not null, with its key."""
        for key in keys:
            value = self.data.get(key)
            if value is not None:
                return key, value
        return None

    def has(self, *keys: str) -> bool:
        """Whether any of ``keys`` is present and not null."""
        return self.first(*keys) is not None

    def integer(self, *keys: str, minimum: int = 0) -> int | None:
        """Return the first of ``keys`` that is present, as an int; ``None`` where all are absent or null."""
        found = self.first(*keys)
        return None if found is None else as_int(found[1], self.name(found[0]), minimum=minimum)

    def need(self, *keys: str, minimum: int = 0) -> int:
        """Like :meth:`integer`, but absence is an error naming the first spelling."""
        value = self.integer(*keys, minimum=minimum)
        if value is None:
            raise ModelConfigError(f"config lacks {self.name(keys[0])!r}")
        return value

    def number(self, *keys: str) -> float | None:
        """Return the first of ``keys`` that is present, as a finite float."""
        found = self.first(*keys)
        return None if found is None else as_float(found[1], self.name(found[0]))

    def text(self, *keys: str) -> str | None:
        """Return the first of ``keys`` that is present, as text."""
        found = self.first(*keys)
        if found is None:
            return None
        if not isinstance(found[1], str):
            raise ModelConfigError(f"config key {self.name(found[0])!r} must be text, not {_show(found[1])}")
        return found[1]

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Return the first of ``keys`` that is present, as a truth value (only true, false, 0 and 1 are taken)."""
        found = self.first(*keys)
        if found is None:
            return default
        if isinstance(found[1], bool) or (isinstance(found[1], int) and found[1] in (0, 1)):
            return bool(found[1])
        raise ModelConfigError(f"config key {self.name(found[0])!r} must be true or false, not {_show(found[1])}")

    def object(self, *keys: str) -> Values:
        """Return the first of ``keys`` that is present, as a nested object; an empty one where all are absent."""
        found = self.first(*keys)
        if found is None:
            return Values({}, self.name(keys[0]))
        if not isinstance(found[1], Mapping):
            raise ModelConfigError(f"config key {self.name(found[0])!r} must be an object, not {_show(found[1])}")
        return Values(found[1], self.name(found[0]))

    def items(self, *keys: str) -> list[Any] | None:
        """Return the first of ``keys`` that is present, as a list of at most ``MAX_LAYERS`` entries."""
        found = self.first(*keys)
        if found is None:
            return None
        if isinstance(found[1], str | bytes) or not isinstance(found[1], Sequence):
            raise ModelConfigError(f"config key {self.name(found[0])!r} must be a list, not {_show(found[1])}")
        if len(found[1]) > MAX_LAYERS:
            raise ModelConfigError(f"config key {self.name(found[0])!r} has {len(found[1])} entries")
        return [*found[1]]

    def strings(self, *keys: str) -> list[str] | None:
        """Like :meth:`items`, every entry text."""
        entries = self.items(*keys)
        if entries is not None:
            for entry in entries:
                if not isinstance(entry, str):
                    raise ModelConfigError(f"config key {self.name(keys[0])!r} must be a list of text")
        return entries

    def integers(self, *keys: str) -> list[int] | None:
        """Like :meth:`items`, every entry an integer not below zero (nulls are read as 0)."""
        entries = self.items(*keys)
        return None if entries is None else [as_int(e or 0, self.name(keys[0])) for e in entries]


def _show(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 900 else "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."
