"""Decompression in bounded steps: a few bytes that stand for gigabytes never become gigabytes in memory."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DAMAGE", "MAGIC", "compression_of"]

_STEP = 1 << 18
"""Most bytes one step of gzip, bzip2 and xz gives."""
_ZSTD_SLICE = 128
"""Input of one zstd step. Its smallest block takes four bytes and stands for 128 KiB: a step gives 4 MiB at most."""

DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What a decompressor raises on damaged or cut data."""


def _gzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    engine = zlib.decompressobj(31)
    for data in chunks:
        while True:
            if engine.eof:
                data = data.lstrip(b"\0")  # padding between or after members
                if not data:
                    break
                engine = zlib.decompressobj(31)
            out = engine.decompress(data, _STEP)
            if out:
                yield out
            data = engine.unused_data if engine.eof else engine.unconsumed_tail
            if not data and len(out) < _STEP:
                break
    if not engine.eof:
        raise EOFError


def _streams(
    new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], chunks: Iterator[bytes]
) -> Iterator[bytes]:
    engine = new()
    for data in chunks:
        while True:
            if engine.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                engine = new()
            out = engine.decompress(data, _STEP)
            if out:
                yield out
            data = engine.unused_data if engine.eof else b""
            if not data and (engine.eof or engine.needs_input):
                break
    if not engine.eof:
        raise EOFError


def _bzip2(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return _streams(bz2.BZ2Decompressor, chunks)


def _xz(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return _streams(lzma.LZMADecompressor, chunks)


def _zstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor()
    engine = decompressor.decompressobj()
    for chunk in chunks:
        for start in range(0, len(chunk), _ZSTD_SLICE):
            data = chunk[start : start + _ZSTD_SLICE]
            while data:
                if engine.eof:
                    engine = decompressor.decompressobj()
                if out := engine.decompress(data):
                    yield out
                data = engine.unused_data if engine.eof else b""
    if not engine.eof:
        raise EOFError


MAGIC: tuple[tuple[str, bytes, Callable[[Iterator[bytes]], Iterator[bytes]]], ...] = (
    ("gzip", b"\x1f\x8b\x08", _gzip),
    ("zstd", b"\x28\xb5\x2f\xfd", _zstd),
    ("xz", b"\xfd7zXZ\x00", _xz),
    ("bzip2", b"BZh", _bzip2),
)


def compression_of(head: bytes) -> tuple[str, Callable[[Iterator[bytes]], Iterator[bytes]]] | None:
    """Name the compression a file begins with, and its decompressor."""
    for name, magic, inflate in MAGIC:
        # "BZh" is text too: the level and the block's own magic follow it.
        if head.startswith(magic) and (name != "bzip2" or head[4:10] in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")):
            return name, inflate
    return None
