"""What log rotation does to file names: logrotate, kubelet, Docker, Python's handlers, lumberjack, loguru."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Rotation", "looks_like_log", "split_pieces"]

_COMPRESSED = pattern(r"\.(?:gz|zst|zstd|xz|bz2)$")
_EXTENSION = pattern(r"\.(?:log|txt|out|err|json|jsonl)$")
_DATE = r"(?P<date>(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T_\-. ]?[0-2]\d(?:[:\-_]?[0-5]\d){0,2}(?:[.,_]\d{1,9})?)?Z?)"
_DATE_AT_END = pattern(rf"[-._]{_DATE}$")
_DATE_INSIDE = pattern(rf"[-._]{_DATE}(?=\.(?:log|txt|out|err|json|jsonl)$)")
_EPOCH_AT_END = pattern(r"(?<=\.log)-(?P<date>1\d{9})$")
_PIECE = pattern(r"[a-z]+|[0-9]+")
_PIECE_SIZES = range(2, 5)
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


def split_pieces(paths: Iterable[str]) -> dict[str, Rotation]:
    """Find the files that `split` made of one log, each with its place: `serve.log.aa`, `xab.gz`, `serve.log.00`.

    Numbers of rotation have no zero in front, and the newest file has the lowest. Pieces are counted on from `aa` or `00`:
    letters of which one is missing are none, and nothing is a piece where the whole log is named too.
    """
    sets: dict[tuple[str, bool, int], list[tuple[str, str]]] = {}
    named = set()
    for path in paths:
        directory, name = os.path.split(path)
        name = _COMPRESSED.sub("", name)
        named.add(os.path.join(directory, name))
        for size in _PIECE_SIZES:
            stem, suffix = name[:-size], name[-size:]
            if not _PIECE.fullmatch(suffix):
                break
            log = _EXTENSION.search(stem.rstrip("._-")) is not None
            if log or (suffix.isalpha() and (stem == "x" or stem[-1:] in (".", "_", "-"))):
                base = os.path.join(directory, stem.rstrip("._-") or stem)
                sets.setdefault((base, suffix.isalpha(), size), []).append((suffix, path))
    found: dict[str, Rotation] = {}
    for (base, letters, _), pieces in sets.items():
        counted = [_count(suffix) for suffix, _ in sorted(pieces)]
        whole = counted == list(range(len(pieces))) if letters else counted[0] == 0
        if len(pieces) > 1 and whole and base not in named:
            found |= {path: Rotation(base, 0, suffix) for suffix, path in pieces}
    return found


def _count(suffix: str) -> int:
    """Return which piece a suffix names, from 0."""
    if suffix.isdecimal():
        return int(suffix)
    number = 0
    for letter in suffix:
        number = number * 26 + ord(letter) - ord("a")
    return number


def looks_like_log(name: str) -> bool:
    """Whether a file name, without rotation and compression endings, is one a log has."""
    return _EXTENSION.search(Rotation.of(name).base) is not None
