"""Log files: open whatever a log was saved as.

Compression and encoding are told from the first bytes, never from the name. Everything is read in bounded pieces.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, BinaryIO

from vlogcheck._encodings import encoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LogFile", "LogFileError", "compression_of_head", "open_log", "reason"]

_CHUNK = 1 << 18
_LONGEST_MAGIC = 10


class LogFileError(OSError):
    """A log cannot be read at all: missing, a directory, no permission, an archive. The message is one line."""


class LogFile(io.RawIOBase):
    """A log's text as UTF-8 bytes, read once from front to back.

    `read(n)` gives up to n bytes, b"" at the end; for an uncompressed file that is still being written, later reads
    give what has been added.
    """

    name: str
    """The path as it was given, "-" for standard input."""
    compression: str | None
    """gzip, zstd, xz, bzip2, or None."""
    encoding: str
    """How the text was encoded: utf-8, utf-16-le or utf-16-be."""
    plain_path: str | None
    """The path, if the file holds just the bytes this reader gives (so that it can be mapped into memory)."""
    damage: str | None
    """Set while reading, when a compressed log is cut off or damaged: what could be read has been given."""

    def __init__(self, raw: BinaryIO | io.RawIOBase, name: str, path: str | None = None, close: bool = True) -> None:
        self.name, self.damage, self.plain_path = name, None, None
        self._raw, self._close = raw, close
        self._pending = b""
        self._at = 0
        head = self._head()
        if head.startswith(b"PK\x03\x04"):
            raise LogFileError(f"{name}: is a zip archive, unpack it first")
        found = _compression(head)
        self.compression = found[0] if found else None
        self._pieces: Iterator[bytes] | None = None
        if found:
            self._pieces = found[1](self._chunks(head))
            head = self._next()
        self.encoding, bom = encoding_of(head)
        self._pending = head[bom:]
        self._decoder: codecs.IncrementalDecoder | None = None
        if self.encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
            self._pending = self._decoder.decode(self._pending).encode("utf-8", "replace")
        elif found is None and bom == 0:
            self.plain_path = path

    def _read_raw(self) -> bytes:
        # A pipe gives what there is: read() would wait for a whole chunk.
        read = getattr(self._raw, "read1", None) or self._raw.read
        return read(_CHUNK) or b""

    def _head(self) -> bytes:
        """Read enough to tell compression and encoding; from a pipe not more than needed."""
        head = b""
        while len(head) < _LONGEST_MAGIC and (data := self._read_raw()):
            head += data
        return head

    def _chunks(self, head: bytes) -> Iterator[bytes]:
        if head:
            yield head
        while data := self._read_raw():
            yield data

    def _next(self) -> bytes:
        """Return the next decompressed piece, b"" at the end or where the damage begins."""
        if self._pieces is None:
            return self._read_raw()
        from ._inflate import DAMAGE

        try:
            return next(self._pieces, b"")
        except EOFError:
            self.damage = f"{self.name}: the {self.compression} data is cut off"
        except DAMAGE as error:
            self.damage = f"{self.name}: the {self.compression} data is damaged ({error})"
        self._pieces = iter(())
        return b""

    def _fill(self) -> None:
        while self._at >= len(self._pending):
            data = self._next()
            self._at = 0
            if self._decoder is None:
                self._pending = data
            else:
                self._pending = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                return

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer, as far as one piece goes; 0 at the end."""
        if self.closed:
            raise ValueError("read of a closed log file")
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        self._fill()
        size = min(len(view), len(self._pending) - self._at)
        view[:size] = memoryview(self._pending)[self._at : self._at + size]
        self._at += size
        return size

    def chunks(self, size: int = _CHUNK) -> Iterator[bytes]:
        """Give the whole rest in pieces of at most `size` bytes."""
        while True:
            self._fill()
            data = self._pending[self._at : self._at + size] if self._at or len(self._pending) > size else self._pending
            if not data:
                return
            self._at += len(data)
            yield data

    def fileno(self) -> int:
        """Return the descriptor of a plain file.

        Raises:
            io.UnsupportedOperation: the bytes on disk are not the bytes this reader gives.

        """
        if self.plain_path is None:
            raise io.UnsupportedOperation("fileno")
        return self._raw.fileno()

    def close(self) -> None:
        """Close the log, and the file if this reader opened it."""
        if not self.closed and self._close:
            self._raw.close()
        super().close()


def compression_of_head(head: bytes) -> str | None:
    """Return how a file is compressed that begins so, or None where it is not."""
    found = _compression(head)
    return found[0] if found else None


def _compression(head: bytes) -> tuple[str, Callable[[Iterator[bytes]], Iterator[bytes]]] | None:
    """Name the compression a file begins with, and its decompressor."""
    if head[:1] not in (b"\x1f", b"\x28", b"\xfd", b"B"):  # how the magic of gzip, zstd, xz, bzip2 begins
        return None
    from ._inflate import compression_of

    return compression_of(head)


def reason(error: OSError | ValueError) -> str:
    """Return in one line why a file cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, IsADirectoryError):
        return "is a directory"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).replace("\n", " ")


def open_log(path: str | os.PathLike[str] | BinaryIO) -> LogFile:
    """Open a log for reading: a path, "-" for standard input, or an open binary file.

    Compressed (gzip, zstd, xz, bzip2) and UTF-16 logs are turned into UTF-8 while reading; a byte order mark is
    dropped. A file object that was passed in, and standard input, stay open when the log is closed.

    Raises:
        LogFileError: the log cannot be read at all. Damage inside a compressed log does not raise: see
            `LogFile.damage`.

    """
    if not isinstance(path, (str, os.PathLike)):
        if not hasattr(path, "read"):
            raise TypeError(f"a log is a path, bytes or an open binary file, not {type(path).__name__}")
        return LogFile(path, str(getattr(path, "name", "<log>")), close=False)
    name = os.fspath(path)
    if name == "-":
        if sys.stdin is None:
            raise LogFileError("-: standard input is closed")
        return LogFile(sys.stdin.buffer, "-", close=False)
    try:
        raw = open(name, "rb", buffering=0)  # noqa: SIM115 - the reader owns it
    except (OSError, ValueError) as error:
        raise LogFileError(f"{name}: {reason(error)}") from error
    try:
        return LogFile(raw, name, name if os.path.isfile(name) else None)
    except OSError as error:
        raw.close()
        if isinstance(error, LogFileError):
            raise
        raise LogFileError(f"{name}: {reason(error)}") from error
