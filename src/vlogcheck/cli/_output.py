"""Output that holds: whatever the terminal can show, whoever stops reading, whatever a log would like it to do."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any

import click

from vlogcheck._lazy import pattern

__all__ = ["finish", "mute", "prepare", "put", "put_bytes"]

_KEPT_OR_CONTROL = pattern(r"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Colours; then what moves the cursor, renames the window or turns text around: it can only come from a log."""
_ESCAPED = "vlogcheck"


def _escape(character: str) -> str:
    """Return a character as JSON escapes it, which people can read as well."""
    code = ord(character)
    if code < 1 << 16:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_escape, error.object[error.start : error.end])), error.end


codecs.register_error(_ESCAPED, _unencodable)


def prepare() -> None:
    """Make standard output and error take any text, also where they are closed or know ASCII alone."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (for the rest of the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPED)


def put(text: str, *, err: bool = False) -> None:
    """Print a report. Where nobody reads any more (head, less), go on without: the exit status still counts."""
    if not text.replace("\n", "").isprintable():
        text = _KEPT_OR_CONTROL.sub(lambda found: found[1] or _escape(found[0]), text)
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        mute(sys.stderr if err else sys.stdout)


def put_bytes(data: bytes) -> None:
    """Pass a log through to standard output, as long as somebody reads it."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        mute(sys.stdout)


def mute(stream: Any) -> None:
    """Send what is still written to a stream nowhere, and keep the interpreter from failing on its own flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def finish(status: int) -> int:
    """Write what is still buffered; return the exit status: 2 where the output could not be written."""
    try:
        sys.stderr.flush()
    except OSError:
        mute(sys.stderr)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        mute(sys.stdout)
    except OSError as error:
        mute(sys.stdout)
        put(f"vlogcheck: the output cannot be written: {error.strerror or error}", err=True)
        return 2
    return status
