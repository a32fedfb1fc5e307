"""The periodic metrics line, read from raw bytes.

A server prints it every ten seconds for as long as it lives: in a log of gigabytes these are most of the lines that matter.
Where only their sums and peaks are wanted they need no decoding, no record and no look for wrappers: one expression per
wording, put together from the prefix and the templates, gives the figures (3 µs instead of 40). It takes only what it can read
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


def metrics_reader() -> Callable[[bytes], Figures | None]:
    """Return a function from a physical line to its figures; None for a line that must be read the long way."""
    start = _bytes(VLLM_START).match
    without_colour = _bytes(ANSI).sub
    wordings = [_bytes(PREFIX, f"(?P<message>{t.lines()[0].pattern})").fullmatch for t in EngineStats.templates]
    pids: dict[bytes, int | None] = {}

    def read(raw: bytes) -> Figures | None:
        if not start(raw):
            return None
        if b"\x1b" in raw:
            raw = without_colour(b"", raw)
        raw = raw.rstrip()
        if raw.translate(None, _PRINTABLE):
            return None
        match = next((found for fullmatch in wordings if (found := fullmatch(raw)) is not None), None)
        if match is None:
            return None
        # Another process's message behind it would bring its own `[file:line]`; Ray marks what it left out.
        if raw.find(b"]", match.start("message")) >= 0 or b" across " in raw:
            return None
        tags = match["tags"]
        pid = pids.get(tags, -1)
        if pid == -1:
            if len(pids) > 4096:  # a log of many short-lived processes
                pids.clear()
            pid = pids[tags] = origin_of(tags.decode()).pid
        holes = match.groupdict()  # not every wording has all of them
        engine = holes.get("engine")
        try:
            return Figures(
                pid, holes["time"].decode(), int(holes["running"]), int(holes["waiting"]),
                float(holes["kv_cache_usage_percent"]), int(holes.get("preemptions") or 0),
                engine.decode() if engine is not None else None, int(holes.get("engines") or 1),
            )  # fmt: skip
        except ValueError:  # thousands commas, or more digits than a number may have
            return None

    return read
