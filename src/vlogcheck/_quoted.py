"""Messages quoted in a document or in source code: what stands before and behind them there is taken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern

if TYPE_CHECKING:
    from vlogcheck.lines import LogLine

__all__ = ["server_lines", "unquoted", "without_level"]

_LEVEL = pattern(
    r"[A-Z]{4,8}(?::|:? \[?(?:\.{2,3}|\u2026)\]?)"
    r"(?: \[?(?:\.{2,3}|\u2026)\]?| \[?[\w./\-]{1,120}\.py(?::\d{1,6})?\])? +"
)
"""A level and dots, or nothing, for the rest of the prefix that somebody left out."""
_STRING = pattern(r"\s*[rbf]?[\"'](?=\([A-Za-z_][\w ]{0,60} pid=|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :])")
_END = pattern(r"(?<!\\[nr])(?:\\[nr])*[\"'][\s,;+)\]}]*$")
"""A string literal of source code begins, ends."""
_NOTE = pattern(r"(?<! )(?: {2,}(?:#|//|--|<-|\[[\w./\-]{1,120}\.py:\d{1,6}\]$)| +\u2190).*$")
"""A remark behind a message. Runs of blanks are tried from their beginning alone: one pass, however long they are."""
_NEXT = pattern(
    r" (?:```| ?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d [\d:]{0,8} ?\[?[\w./]{0,120}(?::\d{0,6})?(?:\.{3}|\u2026)$"
    r"| ?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[[\w./]{0,120}(?::\d{0,6})?$)"
)
"""In a log put into one line: the end of the quotation, or of the next prefix no more than its beginning."""
_SERVER = pattern(
    r" (?:\([A-Za-z_]\w{0,40} pid=\d{1,15}\) {0,4})?INFO: +(?:[A-Z]|\d{1,3}(?:\.\d{1,3}){3}:\d{1,5} - \")"
)


def server_lines(message: str) -> list[str]:
    """Return a message of a log that was put into one line, and the web server's lines behind it, which have no prefix."""
    starts = [found.start() for found in _SERVER.finditer(message)]
    return [message[:at] for at in starts[:1]] + [
        message[at + 1 : end] for at, end in zip(starts, [*starts[1:], None], strict=True)
    ] or [message]


def unquoted(line: LogLine) -> str:
    """Return a message without what a document or source code has around it; as it is where nothing is around it."""
    message = line.message
    if message[-1:] in "\"',;)]}+" and (end := _END.search(message)) is not None:
        start = _STRING.match(message) if line.source is None else None
        if start is not None or line.source is not None or message.startswith("INFO:"):
            message = message[start.end() if start else 0 : end.start()]
    if "\u2588" in message:  # the logo on a page, which shows one blank for several
        message = message.replace("\u2588 version ", "\u2588  version ").replace("\u2588 model ", "\u2588  model   ")
    if message[-1:] == "`" and message.count("`") % 2:
        message = message[:-1]
    if ("  " in message or "\u2190" in message) and message[:1] != "#":
        message = _NOTE.sub("", message)
    if (
        line.source is not None
        and ("```" in message or message[-1:] in ".\u2026" or " [" in message[-140:].rpartition("]")[2])
        and (following := _NEXT.search(message))
    ):
        message = message[: following.start()]
    return message.replace("\u00d7", "x") if "\u00d7" in message else message


def without_level(message: str) -> str:
    """Return a message without a level and dots, which are left of its prefix."""
    found = _LEVEL.match(message)
    return message[found.end() :] if found is not None else message
