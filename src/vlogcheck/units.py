"""Exact memory quantities: bytes are integers, GiB and GB are different, printed values are intervals.

vLLM divides by 2**30 everywhere, also where it prints "GB" (releases 0.4 to 0.8.2 and several plug-ins), so the
unit a value *has* and the unit its label *claims* are kept apart: a record field typed `GiB` holds GiB whatever the
label said.
"""

from __future__ import annotations

from typing import Any

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

__all__ = [
    "GIB",
    "LARGEST_SIZE",
    "MIB",
    "GiB",
    "Interval",
    "SizeError",
    "decimal_interval",
    "format_bytes",
    "format_gib",
]

MIB = 1 << 20
GIB = 1 << 30
LARGEST_SIZE = 1 << 62
"""Bytes from which on a size is no size."""

_DECIMAL = pattern(r"([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")


class SizeError(ValueError):
    """A size that cannot be read, such as `15.4 parsecs`."""


class Interval(NamedTuple):
    """A closed interval of integers (bytes, blocks or tokens): every value from `lo` to `hi` is possible."""

    lo: int
    hi: int

    @classmethod
    def exactly(cls, value: int) -> Interval:
        """Return the interval that holds `value` alone."""
        return cls(value, value)

    @property
    def exact(self) -> bool:
        """Whether only one value is possible."""
        return self.lo == self.hi

    @property
    def mid(self) -> int:
        """The middle, rounded down: for display, never for a comparison."""
        return (self.lo + self.hi) // 2

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.lo <= value <= self.hi

    def overlaps(self, other: Interval) -> bool:
        """Whether some value lies in both."""
        return self.lo <= other.hi and other.lo <= self.hi

    def plus(self, other: Interval | int) -> Interval:
        """Return the sum's interval."""
        other = _interval(other)
        return Interval(self.lo + other.lo, self.hi + other.hi)

    def minus(self, other: Interval | int) -> Interval:
        """Return the difference's interval."""
        other = _interval(other)
        return Interval(self.lo - other.hi, self.hi - other.lo)

    def times(self, factor: int) -> Interval:
        """Return the interval scaled by a whole, non-negative factor."""
        return Interval(self.lo * factor, self.hi * factor)

    def floordiv(self, divisor: int) -> Interval:
        """Return the interval of whole quotients, rounded down as vLLM does."""
        return Interval(self.lo // divisor, self.hi // divisor)

    def distance(self, other: Interval | int) -> int:
        """How far apart the two are: 0 when they overlap, else signed (positive when `self` is the larger)."""
        other = _interval(other)
        if self.lo > other.hi:
            return self.lo - other.hi
        if self.hi < other.lo:
            return self.hi - other.lo
        return 0


def _interval(value: Interval | int) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def decimal_interval(text: str, unit: int = 1, resolution: int | None = None) -> Interval:
    """Return the whole numbers of base units that round to the printed decimal `text`.

    `unit` is the base units per printed unit (2**30 for GiB); `resolution` is the number of decimals the program
    rounded to, at least as many as are printed (a printed `60.0` was rounded to two decimals by vLLM's `format_gib`,
    which drops trailing zeros). Raises `SizeError` if `text` is no decimal.
    """
    match = _DECIMAL.fullmatch(text.replace(",", "").replace("_", "").strip())
    if match is None:
        raise SizeError(f"not a decimal number: {text!r}")
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or ""
    shift = int(exponent or 0)
    if abs(shift) > 400:
        raise SizeError(f"exponent out of range: {text!r}")
    decimals = max(len(fraction) - shift, 0)
    digits = int(whole + fraction) * 10 ** max(shift - len(fraction), 0)
    if sign == "-":
        digits = -digits
    rounded = max(decimals, resolution or 0)
    scaled = 2 * digits * 10 ** (rounded - decimals)
    denominator = 2 * 10**rounded
    lo = -((-(scaled - 1) * unit) // denominator)
    hi = ((scaled + 1) * unit) // denominator
    if lo > hi:  # the unit is finer than the rounding: only the value itself
        lo = hi = (scaled * unit + denominator // 2) // denominator
    return Interval(lo, hi)


class GiB(float):
    """A number of GiB (2**30 bytes) as it was printed: a float that remembers its digits.

    `bytes` is the interval of byte counts that print like this. `GiB("60.0")` counts as rounded to two decimals,
    since vLLM's `format_gib` (mem_utils.py, 0.14.1 and later) drops trailing zeros. `unit` is the bytes of the unit the
    digits were printed in (`GiB("512.00", unit=MIB)` is half a GiB), so the interval stays that of the printed digits.
    """

    text: str
    resolution: int
    unit: int

    def __new__(cls, value: str | float, resolution: int = 2, unit: int = GIB) -> GiB:
        """Keep the printed text, the decimals it was rounded to and the unit it was printed in (bytes per unit)."""
        number = float(str(value).replace(",", ""))
        self = super().__new__(cls, number if unit == GIB else number * unit / GIB)
        self.text = value if isinstance(value, str) else repr(float(value))
        self.resolution = resolution
        self.unit = unit
        return self

    @property
    def bytes(self) -> Interval:
        """The interval of bytes that would be printed this way."""
        return decimal_interval(self.text, self.unit, self.resolution)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.text, self.resolution, self.unit)

    def __repr__(self) -> str:
        return f"GiB('{self}')"

    def __str__(self) -> str:
        return self.text if self.unit == GIB else repr(float(self))


def format_gib(value: int | float) -> str:
    """Return bytes as GiB with two decimals and the unit: `60.31 GiB`."""
    return f"{value / GIB:,.2f} GiB"


def format_bytes(value: int) -> str:
    """Return bytes in the largest binary unit that keeps the number at least 1: `256 KiB`, `1.50 GiB`, `512 B`."""
    magnitude = abs(value)
    for unit, name in ((1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if magnitude >= unit:
            number = value / unit
            return f"{number:,.0f} {name}" if value % unit == 0 else f"{number:,.2f} {name}"
    return f"{value:,} B"
