"""Time between two lines of a log, where their times can be compared."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vlogcheck.template import Record

__all__ = ["between", "duration", "elapsed"]

_SHORT = pattern(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")
_FULL = pattern(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)")


def _read(text: str | None) -> tuple[bool, datetime] | None:
    """Return the moment and whether its year is known; vLLM prints none, so such times only compare with each other."""
    if not text:
        return None
    try:
        if match := _FULL.match(text):
            year, month, day, hour, minute, second = map(int, match.groups())
            return True, datetime(year, month, day, hour, minute, second)
        if match := _SHORT.match(text):
            month, day, hour, minute, second = map(int, match.groups())
            return False, datetime(2000, month, day, hour, minute, second)
    except ValueError:  # such as month 13: somebody else's digits
        return None
    return None


def elapsed(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds from one time as printed to another, None where they cannot be compared or run backwards."""
    first, second = _read(earlier), _read(later)
    if first is None or second is None or first[0] != second[0]:
        return None
    seconds = (second[1] - first[1]).total_seconds()
    return seconds if seconds >= 0 else None


def between(earlier: Iterable[Record], later: Iterable[Record]) -> float | None:
    """Return the seconds from the last record that has a time to the first one that can be compared with it."""
    times = [t for record in earlier for t in (record.time, record.wrapper_time) if t]
    for record in later:
        for then in reversed(times):
            for now in (record.time, record.wrapper_time):
                if (seconds := elapsed(then, now)) is not None:
                    return seconds
    return None


def duration(seconds: float) -> str:
    """Return a duration for people: `45 s`, `12 min`, `3 h 20 min`, `2 days 4 h`."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 120:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{days} days {hours % 24} h"
