"""The periodic metrics line, read from raw bytes.

A server prints it every ten seconds for as long as it lives: in a log of gigabytes these are most of the lines that matter.
Where only their sums and peaks are wanted they need no decoding, no record and no look for wrappers: one expression per
wording, put together from the prefix and the templates, gives the figures. Lines that differ in their digits alone match alike,
so their figures stand in the same places: those are remembered (3 µs a line, not 60). It takes only what it can read exactly
as the long way would; everything else is left to that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vlogcheck._anchors import METRICS
from vlogcheck._copied import ANSI
from vlogcheck._prefix import PREFIX, origin_of
from vlogcheck._tuples import NamedTuple
from vlogcheck.records import EngineStats
from vlogcheck.wrappers import VLLM_START

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Figures", "metrics_reader"]

_METRICS = METRICS.encode()
_PRINTABLE = bytes(range(0x20, 0x7F))
_HOLES = ("tags", "time", "running", "waiting", "kv_cache_usage_percent", "preemptions", "engine", "engines")
_NUMBERS = ("running", "waiting", "kv_cache_usage_percent", "preemptions", "engines")
_DIGITS = b"0123456789."
_LONGEST = 15
_MOST = 4096
"""Shapes and process tags that are remembered at a time."""


class Figures(NamedTuple):
    """What one metrics line adds to `runtime.RunTime`."""

    pid: int | None
    time: str
    running: int
    waiting: int
    usage: float
    preemptions: int
    engine: str | None
    summed: int
    """Engines the line adds up."""


def _bytes(pattern: re.Pattern[str], more: str = "") -> re.Pattern[bytes]:
    return re.compile((pattern.pattern + more).encode("ascii"), pattern.flags & ~re.UNICODE)


def _wording(message: re.Pattern[str]) -> re.Pattern[bytes]:
    """Return the expression of a whole line: holes that this wording does not have are groups that stay empty."""
    missing = "".join(f"(?P<{name}>(?!))?" for name in _HOLES[2:] if name not in message.groupindex)
    return _bytes(PREFIX, f"(?P<message>{message.pattern}){missing}")


def _alike() -> bytes:
    """Return the table that makes all digits one, but for those that a wording itself names."""
    named = {c for template in EngineStats.templates for line in template.literals() for part in line for c in part}
    return bytes(ord("0") if chr(c) in "0123456789" and chr(c) not in named else c for c in range(256))


def metrics_reader() -> Callable[[bytes], Figures | None]:
    """Return a function from a physical line to its figures; None for a line that must be read the long way."""
    start = _bytes(VLLM_START).match
    without_colour = _bytes(ANSI).sub
    wordings = [_wording(template.lines()[0]).fullmatch for template in EngineStats.templates]
    pids: dict[bytes, int | None] = {}
    alike = _alike()
    shapes: dict[bytes, tuple[slice, ...] | None] = {}

    def places(raw: bytes) -> tuple[slice, ...] | None:
        """Return where the holes of a line stand, an empty place for one that it does not have."""
        if not start(raw) or raw.translate(None, _PRINTABLE):
            return None
        for fullmatch in wordings:
            match = fullmatch(raw)
            if match is not None:
                # Another process's message behind it would bring its own `[file:line]`; Ray marks what it left out.
                if b"]" in match["message"] or b" across " in match["message"]:
                    return None
                numbers = [match[name] or b"" for name in _NUMBERS]
                if any(number.strip(_DIGITS) or len(number) > _LONGEST for number in numbers):
                    return None  # signs, thousands commas, exponents
                return tuple(slice(*match.span(name)) if match[name] else slice(0) for name in _HOLES)
        return None

    def read(raw: bytes) -> Figures | None:
        if b"\x1b" in raw:
            if not start(raw):
                return None
            raw = without_colour(b"", raw)
        raw = raw.rstrip()
        shape = raw.translate(alike)
        try:
            where = shapes[shape]
        except KeyError:
            if _METRICS not in raw:
                return None
            if len(shapes) >= _MOST:
                shapes.clear()
            where = shapes[shape] = places(raw)
        if where is None:
            return None
        tags, time, running, waiting, usage, preemptions, engine, engines = where
        tag = raw[tags]
        pid = pids.get(tag, -1)
        if pid == -1:
            if len(pids) >= _MOST:  # a log of many short-lived processes
                pids.clear()
            pid = pids[tag] = origin_of(tag.decode()).pid
        # A third of the time of the constructor.
        return tuple.__new__(Figures, (
            pid, raw[time].decode(), int(raw[running]), int(raw[waiting]), float(raw[usage]), int(raw[preemptions] or 0),
            raw[engine].decode() or None, int(raw[engines] or 1),
        ))  # fmt: skip

    return read
