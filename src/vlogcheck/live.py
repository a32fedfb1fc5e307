"""Live: judge a start-up while it is being printed, and say so the moment it can be said.

`Watcher` is the sans-IO core; `watch` and `awatch` feed it from a growing file (through rotation and truncation, as `tail -F`
does), a pipe or any binary stream.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Any

from vlogcheck._reading import source_name
from vlogcheck._tail import pieces_of, pieces_of_file
from vlogcheck._watcher import Event, Watcher
from vlogcheck.api import Inquiry, Report
from vlogcheck.expect import Expectation

__all__ = ["Event", "Watcher", "awatch", "watch"]


def watch(
    source: str | os.PathLike[str] | IO[bytes], expect: Expectation | None = None, timeout: float | None = None, *,
    until: str = "decided", on_event: Callable[[Event], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None, **question: Any,
) -> Report:  # fmt: skip
    """Follow a log until its verdict is known; return the report.

    `source` is a path (it may not exist yet, may be rotated or truncated) or a binary stream (a pipe, standard input). After
    `timeout` seconds the report is inconclusive and names the phase the start-up hung in. `on_bytes` gets the log unchanged.
    The other arguments are those of `vlogcheck.check`.
    """
    history = isinstance(source, (str, os.PathLike))
    name = "<stdin>" if getattr(source, "name", None) == 0 else source_name(source)  # 0: standard input, reopened
    watcher = Watcher(Inquiry(expect, **question), name=name, until=until, history=history)
    for data in pieces_of(source):
        if (report := _step(watcher, data, on_event, on_bytes)) is not None:
            return report
        if timeout is not None and watcher.elapsed >= timeout:
            return watcher.time_out(timeout)
    return watcher.close()


async def awatch(
    source: str | os.PathLike[str] | AsyncIterator[bytes], expect: Expectation | None = None,
    timeout: float | None = None, *, until: str = "decided", on_event: Callable[[Event], None] | None = None,
    **question: Any,
) -> Report:  # fmt: skip
    """`watch` for async code: `source` is a path or an async iterator of bytes (a subprocess's output, say)."""
    import asyncio

    streaming = not isinstance(source, (str, os.PathLike))
    name = "<stream>" if streaming else os.fspath(source)  # type: ignore[arg-type]
    watcher = Watcher(Inquiry(expect, **question), name=name, until=until, history=not streaming)

    async def run() -> Report:
        pieces = source if streaming else pieces_of_file(Path(name))
        async for data in pieces:  # type: ignore[union-attr]
            if (report := _step(watcher, data, on_event)) is not None:
                return report
        return watcher.close()

    try:
        return await asyncio.wait_for(run(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        return watcher.time_out(timeout or 0)


def _step(
    watcher: Watcher, data: bytes | None, on_event: Callable[[Event], None] | None,
    on_bytes: Callable[[bytes], None] | None = None,
) -> Report | None:  # fmt: skip
    """Hand over what came (None: the file was replaced), tell of it, and return the report once it is decided."""
    events = watcher.rotated() if data is None else watcher.feed(data)
    if data == b"":
        watcher.caught_up()
        watcher.idle()
    if data and on_bytes is not None:
        on_bytes(data)
    if on_event is not None:
        for event in events:
            on_event(event)
    return watcher.report
