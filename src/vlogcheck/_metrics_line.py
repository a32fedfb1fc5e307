"""The periodic metrics line, read from raw bytes.

A server prints it every ten seconds for as long as it lives: in a log of gigabytes these are most of the lines that matter.
Where only their sums and peaks are wanted they need no decoding, no record and no look for wrappers: one expression per
wording, put together from the prefix and the templates, gives the figures (6 µs instead of 60). It takes only what it can read
exactly as the long way would; everything else is left to that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from vlogcheck.lines import ANSI, PREFIX, origin_of
from vlogcheck.records import EngineStats
from vlogcheck.wrappers import VLLM_START

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Figures", "metrics_reader"]

_PRINTABLE = bytes(range(0x20, 0x7F))
_HOLES = ("message", "tags", "time", "running", "waiting", "kv_cache_usage_percent", "preemptions", "engine")


class Figures(NamedTuple):
    """What one metrics line adds to `runtime.RunTime`."""

    pid: int | None
    time: str
    running: int
    waiting: int
    usage: float
    preemptions: int
    engine: str | None
    summed: int = 1
    """Engines the line adds up."""


def _bytes(pattern: re.Pattern[str], more: str = "") -> re.Pattern[bytes]:
    return re.compile((pattern.pattern + more).encode("ascii"), pattern.flags & ~re.UNICODE)


def _plain(expression: str) -> str:
    """Return the expression of a wording without exponents and absurdly long numbers: those are read the long way."""
    return expression.replace(r"(?:e[+-]?\d+)?", "").replace(r"\d+", r"\d{1,15}")


def _wording(message: re.Pattern[str]) -> re.Pattern[bytes]:
    """Return the expression of a whole line: holes that this wording does not have are groups that stay empty."""
    missing = "".join(f"(?P<{name}>(?!))?" for name in _HOLES[3:] if name not in message.groupindex)
    return _bytes(PREFIX, f"(?P<message>{message.pattern}){missing}")


def metrics_reader() -> Callable[[bytes], Figures | None]:
    """Return a function from a physical line to its figures; None for a line that must be read the long way."""
    start = _bytes(VLLM_START).match
    without_colour = _bytes(ANSI).sub
    wordings = [_wording(template.lines()[0]).fullmatch for template in EngineStats.templates]
    pids: dict[bytes, int | None] = {}

    def read(raw: bytes) -> Figures | None:
        if not start(raw):
            return None
        if b"\x1b" in raw:
            raw = without_colour(b"", raw)
        raw = raw.rstrip()
        if raw.translate(None, _PRINTABLE):
            return None
        for fullmatch in wordings:
            match = fullmatch(raw)
            if match is not None:
                break
        else:
            return None
        message, tags, time, running, waiting, usage, preemptions, engine = match.group(*_HOLES)
        # Another process's message behind it would bring its own `[file:line]`; Ray marks what it left out.
        if b"]" in message or b" across " in message:
            return None
        pid = pids.get(tags, -1)
        if pid == -1:
            if len(pids) > 4096:  # a log of many short-lived processes
                pids.clear()
            pid = pids[tags] = origin_of(tags.decode()).pid
        try:
            return Figures(
                pid, time.decode(), int(running), int(waiting), float(usage), int(preemptions or 0),
                None if engine is None else engine.decode(),
            )  # fmt: skip
        except ValueError:  # thousands commas, or more digits than a number may have
            return None

    return read
