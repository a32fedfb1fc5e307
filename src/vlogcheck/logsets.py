"""Which files are one log: directories looked through, rotated files put in order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vlogcheck._rotation import Rotation, looks_like_log, split_pieces
from vlogcheck._tuples import NamedTuple
from vlogcheck.files import LogFileError, reason

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LogSet", "expand_paths"]


class LogSet(NamedTuple):
    """Files that are one log."""

    name: str
    """The log's own name: the path without what rotation added."""
    paths: tuple[str, ...]
    """Its files, oldest first."""


def _listing(directory: str) -> list[str]:
    """Return the logs in a directory, or, if there are none, in the directories below it (a pod's log directory)."""
    from pathlib import Path

    for depth in range(3):
        pattern = "/".join(["*"] * (depth + 1))
        files = sorted(
            str(path) for path in Path(directory).glob(pattern) if path.is_file() and not path.name.startswith(".")
        )
        pieces = split_pieces(files)
        if logs := [path for path in files if path in pieces or looks_like_log(os.path.basename(path))] or files:
            return logs
    raise LogFileError(f"{directory}: no log file in this directory")


def expand_paths(paths: Iterable[str | os.PathLike[str]]) -> list[LogSet]:
    """Find out which files are pieces of one log, and in which order.

    * A file stands for itself; its rotated neighbours are read only if they are named too.
    * A directory stands for the logs in it: names that end in .log, .txt, .out, .err, .json or .jsonl once rotation
      and compression endings are taken off; every file, if there is none such. If it holds only directories, the
      first level below that holds files counts.
    * Files of one directory that differ only in a rotation ending are one set, oldest first, in whatever order they
      were named: a number at the end (`serve.log.2.gz` is older than `serve.log.1`, `serve.log.old` counts as 1), or a
      date with or without time at the end or in front of the extension (`serve.log-20250101`, `serve-20250101.log`,
      `0.log.20250101-120000.gz`). Dated files come first, then numbered ones, then the one without an ending.
      `worker.1.log` is a log of its own: numbers in front of the extension name ranks more often than rotation.
    * So are the pieces that `split` made of a log (`serve.log.aa`, `serve.log.ab`; `serve.log.00`, `serve.log.01`), from the
      first on.
    * Sets keep the order in which their first file was named (by name inside a directory). "-" is standard input.

    Raises:
        LogFileError: a path does not exist, or a directory holds no log.

    """
    found: list[str] = []
    for given in paths:
        path = os.fspath(given)
        if path == "-":
            found.append(path)
            continue
        try:
            names = _listing(path) if os.path.isdir(path) else [path]
            if names == [path]:
                os.stat(path)
        except LogFileError:
            raise
        except (OSError, ValueError) as error:
            raise LogFileError(f"{path}: {reason(error)}") from error
        found += names
    pieces = split_pieces(found) if len(found) > 1 else {}
    groups: dict[str, list[tuple[Rotation, str]]] = {}
    for name in dict.fromkeys(found):
        rotation = pieces.get(name) or (Rotation.of(name) if name != "-" else Rotation("-", 2, ""))
        groups.setdefault(rotation.base, []).append((rotation, name))
    return [
        LogSet(base, tuple(name for _, name in sorted(group, key=lambda item: item[0].order)))
        for base, group in groups.items()
    ]
