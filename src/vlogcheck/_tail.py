"""What is appended to a growing file or comes out of a pipe, piece by piece."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from vlogcheck.files import LogFileError, compression_of_head

__all__ = ["POLL_SECONDS", "Tail", "pieces_of", "pieces_of_file"]

POLL_SECONDS = 0.005
"""How often a file is looked at: well below the 100 ms in which a verdict is due, and not felt by a CPU."""
_IDLE_SECONDS = 0.1
"""How long a pipe, which wakes up its reader, is waited for at a time."""


def pieces_of(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[bytes | None]:
    """Yield what is appended, b"" when nothing was for a moment, None when the file was replaced."""
    if isinstance(source, (str, os.PathLike)):
        for data in Tail(Path(source)):
            yield data
            if data == b"":
                time.sleep(POLL_SECONDS)
        return
    try:
        number = source.fileno()
        waitable = not stat.S_ISREG(os.fstat(number).st_mode)
    except (OSError, AttributeError, ValueError):
        waitable = False
    while True:
        if waitable:
            ready, _, _ = select.select([number], [], [], _IDLE_SECONDS)
            if not ready:
                yield b""
                continue
            data = os.read(number, 1 << 16)
        else:
            data = source.read(1 << 16)
        if not data:
            return
        yield data


async def pieces_of_file(path: Path) -> AsyncIterator[bytes | None]:
    """Yield the same of a file, for async code."""
    import asyncio

    for data in Tail(path):
        yield data
        if data == b"":
            await asyncio.sleep(POLL_SECONDS)


class Tail:
    """Iterates over what is appended to a file, for ever: bytes, b"" when there is nothing new, None after a replacement.

    The file may not exist yet. A new file under the same name (rotation) is read from its start once the old one is
    exhausted; a file that shrinks (truncation) is read again from its start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._identity: tuple[int, int] | None = None
        self._regular = True
        self._begun = False

    def __iter__(self) -> Iterator[bytes | None]:
        try:
            while True:
                yield self._next()
        finally:
            if self._file is not None:
                self._file.close()

    def _next(self) -> bytes | None:
        if self._file is None:
            return b"" if not self._open() else self._read()
        data = self._read()
        if data:
            return data
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(self.path)
            if (there.st_dev, there.st_ino) != self._identity:
                self._file.close()
                self._file = None
                return None
            if self._regular and there.st_size < self._file.tell():
                self._file.seek(0)
                return None
        return b""

    def _open(self) -> bool:
        try:
            # A pipe that nobody writes to yet must not hold up the time-out.
            self._file = open(self.path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115  (closed at the end)
        except FileNotFoundError:
            return False
        there = os.fstat(self._file.fileno())
        self._identity = (there.st_dev, there.st_ino)
        self._regular = stat.S_ISREG(there.st_mode)
        self._begun = False
        return True

    def _read(self) -> bytes:
        assert self._file is not None
        data = self._file.read(1 << 16) or b""
        if data and not self._begun:
            self._begun = True
            if (packed := compression_of_head(data)) is not None:
                raise LogFileError(f"{self.path}: is compressed ({packed}): only plain text can be followed")
        return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
