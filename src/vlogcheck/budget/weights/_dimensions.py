"""Dimensions of tensors: padding, numbers no model has, and what is outside the rules."""

from __future__ import annotations

from vlogcheck.budget._values import ModelConfigError, Values

__all__ = ["NotDivisible", "NotModelled", "layers_in", "pad", "ratio_in"]

#: More layers than any tower or encoder has.
_MOST_LAYERS = 10_000


class NotModelled(Exception):  # noqa: N818 -- not an error of the program: it becomes an estimate marked unknown
    """The model or one of its settings is outside the rules; the text says which."""


class NotDivisible(NotModelled):
    """A dimension is not a multiple of the parallel size, which vLLM refuses."""


def pad(size: int, multiple: int) -> int:
    """``size`` rounded up to a multiple."""
    return -(-size // multiple) * multiple


def layers_in(values: Values, *keys: str) -> int:
    """Return the number of layers of a tower or encoder.

    Raises:
        ModelConfigError: no key is present, or the number is one no model has.

    """
    count = values.need(*keys)
    if count > _MOST_LAYERS:
        raise ModelConfigError(f"config key {values.name(keys[0])!r} is {count}: no model has that many layers")
    return count


def ratio_in(values: Values, key: str, default: float) -> float:
    """Return a scale between 1/64 and 1.

    Raises:
        ModelConfigError: the value lies outside.

    """
    found = values.number(key)
    if found is None:
        return default
    if not 1 / 64 <= found <= 1:
        raise ModelConfigError(f"config key {values.name(key)!r} must lie between 1/64 and 1, not {found:.6g}")
    return found
