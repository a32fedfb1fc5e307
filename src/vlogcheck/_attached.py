"""Files that accompany a log (card readings, a metrics page): small, text, read whole."""

from __future__ import annotations

import io
import os
from typing import IO, Union

__all__ = ["AttachedFileError", "Source", "read_attached"]

Source = Union[str, "os.PathLike[str]", bytes, IO[bytes]]
"""A path, the bytes themselves, or a binary file."""

LARGEST = 64 << 20


class AttachedFileError(ValueError):
    """A file beside the log that is not what its option asks for; the text is for people."""


def read_attached(source: Source, option: str, failure: type[AttachedFileError] = AttachedFileError) -> tuple[str, str]:
    """Return the text and what to call it. Raises `failure` for what is no text, or `OSError`."""
    if isinstance(source, bytes):
        stream: IO[bytes] = io.BytesIO(source)
        path = "<bytes>"
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if os.path.isdir(path):
            raise failure(f"{path} is a directory: {option} takes a file")
        stream = open(path, "rb")  # noqa: SIM115 (closed below, like the streams that were given)
    else:
        stream, path = source, str(getattr(source, "name", "<stream>"))
    try:
        with stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise failure(f"{path}: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise failure(f"{path} is larger than {LARGEST >> 20} MiB: {option} takes one saved reading")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").lstrip("\ufeff"), path
    if b"\0" in data:
        raise failure(f"{path} is not a text file: {option} takes a saved reading")
    return data.decode("utf-8-sig", "replace"), path
