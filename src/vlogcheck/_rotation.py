"""What log rotation does to file names: logrotate, kubelet, Docker, Python's handlers, lumberjack, loguru."""

from __future__ import annotations

import os
import re

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

__all__ = ["Rotation", "looks_like_log"]

_COMPRESSED = pattern(r"\.(?:gz|zst|zstd|xz|bz2)$")
_EXTENSION = pattern(r"\.(?:log|txt|out|err|json|jsonl)$")
_DATE = r"(?P<date>(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T_\-. ]?[0-2]\d(?:[:\-_]?[0-5]\d){0,2}(?:[.,_]\d{1,9})?)?Z?)"
_DATE_AT_END = pattern(rf"[-._]{_DATE}$")
_DATE_INSIDE = pattern(rf"[-._]{_DATE}(?=\.(?:log|txt|out|err|json|jsonl)$)")
_EPOCH_AT_END = pattern(r"(?<=\.log)-(?P<date>1\d{9})$")
_NUMBER = pattern(r"\.(?P<number>\d{1,4}|old)$")


class Rotation(NamedTuple):
    """A path, its log's name without rotation, and its place among the log's files."""

    base: str
    kind: int
    """0 dated, 1 numbered, 2 the file being written."""
    key: str
    """Sorts the files of one kind, oldest first."""

    @property
    def order(self) -> tuple[int, str]:
        """Sorts the files of one log, oldest first."""
        return self.kind, self.key

    @classmethod
    def of(cls, path: str) -> Rotation:
        """Read the rotation out of a path's last component."""
        directory, name = os.path.split(path)
        name = _COMPRESSED.sub("", name)
        number = _NUMBER.search(name)
        dated = None
        if any(map(str.isdecimal, name)):  # else the expressions need not even be compiled
            dated = _DATE_AT_END.search(name) or _EPOCH_AT_END.search(name) or _DATE_INSIDE.search(name)
        if dated and dated.start():
            base = name[: dated.start()] + name[dated.end() :]
            digits = re.sub(r"\D", "", dated["date"])
            return cls(os.path.join(directory, base), 0, digits)
        if number and number.start():
            age = 1 if number["number"] == "old" else int(number["number"])
            return cls(os.path.join(directory, name[: number.start()]), 1, f"{10_000 - age:05d}")
        return cls(os.path.join(directory, name), 2, "")


def looks_like_log(name: str) -> bool:
    """Whether a file name, without rotation and compression endings, is one a log has."""
    return _EXTENSION.search(Rotation.of(name).base) is not None
