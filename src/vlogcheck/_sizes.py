"""Sizes as people write them: a number and its unit."""

from __future__ import annotations

from vlogcheck._lazy import pattern
from vlogcheck.units import LARGEST_SIZE, Interval, SizeError, decimal_interval

__all__ = ["parse_size"]

_UNITS = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "byte": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "kb": 10**3,
    "m": 1 << 20,
    "mib": 1 << 20,
    "mb": 10**6,
    "g": 1 << 30,
    "gib": 1 << 30,
    "gb": 10**9,
    "t": 1 << 40,
    "tib": 1 << 40,
    "tb": 10**12,
}
_LONGEST_SIZE = 60
_SIZE = pattern(r"\s*([+-]?)([0-9][0-9,_]*)(?:\.([0-9]+))?\s*([A-Za-z]*)\s*")


def parse_size(text: str, *, signed: bool = False) -> Interval:
    """Return the bytes meant by a size with its unit: `15.4GiB`, `65520MiB`, `64GB`, `262144`, `256KiB`.

    A value with decimals is an interval of its rounding; a whole number is exact. A bare number is bytes; single
    letters are binary (`4G` is 4 GiB) as in `docker` and `nvidia-smi`. A negative size is an error
    unless `signed`. Raises `SizeError` with a message for people.
    """
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST_SIZE else None
    shown = repr(text if len(text) <= _LONGEST_SIZE else f"{text[:_LONGEST_SIZE]}…")
    if match is None or match[4].lower() not in _UNITS:
        raise SizeError(f"{shown} is not a size: give a number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB")
    negative = match[1] == "-"
    if negative and not signed:
        raise SizeError(f"{shown} is negative: a size is at least 0")
    unit = _UNITS[match[4].lower()]
    whole = match[2].replace(",", "").replace("_", "")
    if int(whole) * unit >= LARGEST_SIZE:
        raise SizeError(f"{shown} is more than any memory holds")
    if match[3] is None:
        return Interval.exactly(-int(whole) * unit if negative else int(whole) * unit)
    if unit == 1:
        raise SizeError(f"{shown} is not a size: bytes are whole (say GiB if you mean it)")
    return decimal_interval(f"{'-' if negative else ''}{whole}.{match[3]}", unit)
