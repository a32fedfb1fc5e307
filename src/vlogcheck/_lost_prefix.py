"""Prefixes that are not whole: their beginning lost in copying, no date or no source in them, or a word nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern
from vlogcheck._prefix import LEVELS

if TYPE_CHECKING:
    from vlogcheck.lines import LogLine

__all__ = ["without_damaged_prefix"]

# What is left of a prefix whose beginning was not copied, and a prefix whose format leaves the date out.
_LOST = pattern(
    r"[\s>#*`|\u2502\u258c-\u2590]{0,12}(?:[A-Za-z_][\w ]{0,60} pid=(?P<pid>\d{1,15})\) )?(?P<level>[A-Z]{0,8}) ?"
    r"(?P<time>[\d\-]{0,5} ?[\d:]{0,8}) ?"
    r"\[?(?P<file>[\w./\-]{0,120}\.py):(?P<lineno>\d{1,6})\] "
)
_DATELESS = pattern(
    r"[\s>#*`|\u2502\u258c-\u2590]{0,12}(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? (?P<time>)(?:(?:\.{2,3}|\u2026) )?"
    r"\[?(?P<file>[\w./\-]{1,120}\.py):(?P<lineno>\d{1,6})\]?:? "
)
_ODD = pattern(
    r"(?=(?:\S{1,40} ){0,3}[\[(]?(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|\d\d:\d\d:))(?P<time>)"
    r"(?:\S{1,40} ){1,4}\[?(?P<file>[\w./\-]{1,120}\.py):(?P<lineno>\d{1,6})\] "
)
"""A level or a time, something unknown and a place in the code."""
_SOURCELESS = pattern(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) (?!\S*\.py:)"
    r"(?=[A-Za-z#]\S* \S)"
)
_TAGGED = pattern(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>)(?!\S*\.py:)(?=[A-Za-z#]\S* \S)")
"""What is left of a prefix behind a process's tag: the level alone."""


def without_damaged_prefix(line: LogLine) -> LogLine:
    """Take off a prefix that is not whole: its beginning lost in copying, no date or no source in it."""
    found = None
    if any(level in line.message for level in LEVELS):
        found = _DATELESS.match(line.message)
    if found is None and "] " in line.message:
        found = _LOST.match(line.message) or _ODD.match(line.message)
    if found is None:
        if line.message.startswith(LEVELS):
            found = _SOURCELESS.match(line.message) or (_TAGGED.match(line.message) if line.pid is not None else None)
        if found is None:
            return line
        return line._replace(message=line.message[found.end() :], level=found["level"], time=found["time"] or None)
    written = found["level"] or ""
    meant = [level for level in LEVELS if written and level.endswith(written)]
    return line._replace(
        message=line.message[found.end() :].rstrip("`") if "`" in found[0] else line.message[found.end() :],
        level=meant[0] if len(meant) == 1 else None,
        pid=line.pid if line.pid is not None else _number(found.groupdict().get("pid")),
        time=found["time"].strip() or None,
        source=f"{found['file']}:{found['lineno']}",
    )


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
