"""The log format LMCache keeps inside vLLM: `[2026-02-03 04:05:06,789] LMCache INFO: text (file.py:12:module)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern

if TYPE_CHECKING:
    from vlogcheck.lines import LogLine

__all__ = ["before_format", "without_format"]


_FORMAT = pattern(
    r"(?:\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] )?LMCache (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): *"
)
_BEGINNING = pattern(
    r"(?:\([A-Za-z_][\w\-. ]{0,60} pid=\d{1,15}(?:, ip=[0-9a-fA-F.:]{1,45})?\) ?){0,4}"
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] LMCache (?:DEBUG|INFO|WARNING|ERROR|CRITICAL):"
)
_WHERE = pattern(r" \((?P<file>[\w\-]{1,80}\.py):(?P<line>\d{1,9}):[\w.]{1,200}\)$")


def before_format(text: str) -> str:
    """Return what stands in front of a line of LMCache's and its process tags; nothing where there is none."""
    begun = _BEGINNING.search(text)
    return text[: begun.start()] if begun is not None else ""


def without_format(line: LogLine) -> LogLine:
    """Return a line of LMCache's with its message alone, with level, time and source; another one as it is."""
    head = _FORMAT.match(line.message)
    if head is None:
        return line
    message = line.message[head.end() :]
    where = _WHERE.search(message)
    if where is None:
        return line._replace(message=message, level=head["level"], time=head["time"])
    source = f"{where['file']}:{where['line']}"
    return line._replace(message=message[: where.start()], level=head["level"], time=head["time"], source=source)
