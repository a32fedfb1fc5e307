"""vLLM's prefix and the process tags in front of a message, whole or cut by another process."""

from __future__ import annotations

import re

from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

__all__ = ["CUT_PREFIX", "LEVELS", "MARK", "PREFIX", "TAGS", "Origin", "origin_of"]

# A process tag: `(EngineCore_DP0 pid=9)`, `(VllmWorker PP0_TP1 pid=9)`, `(VllmWorker rank=1 pid=9)`,
# `(RayWorkerWrapper pid=31, ip=10.0.0.2)`; vllm/utils (0.4.2-0.30), logger.py (0.31 and later), Ray.
# Whoever copied the lines may have left the process id out: `(EngineCore)`, `(Worker_PP0_TP1)`.
_TAG = (
    r"\((?P<{0}name>[A-Za-z_][\w\-.]*(?: [A-Z]+\d+(?:_[A-Z]+\d+)*)?)(?: rank=(?P<{0}rank>\d{{1,9}}))?"
    r"(?: pid=(?P<{0}pid>\d{{1,15}})(?:, ip=(?P<{0}ip>[0-9a-fA-F.:]+))?\)"
    r"|\)(?:(?<=\(EngineCore\))|(?<=\(APIServer\))|(?<=[(_][DEPT]P\d\))|(?<=[(_][DEPT]P\d\d\))))"
)
_PLAIN_TAG = re.sub(r"\?P<\w+>", "?:", _TAG.format(""))
PREFIX = pattern(
    rf"(?P<tags>(?:{_PLAIN_TAG}\s*){{0,8}})"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:vllm(?:\.\w{1,64}){1,12} )?"  # a format that names the logger
    r"(?P<time>(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) "
    r"(?:\[(?P<file>[\w./\-<>*\\]+):(?P<lineno>\d+)\]|(?P<file0>[\w./\-]+\.py):(?P<lineno0>\d+)\]) ?"
)
TAGS = pattern(rf"(?:{_PLAIN_TAG}\s*)+")
# A prefix that another one interrupts.
CUT_PREFIX = pattern(
    r"(?:\([A-Za-z_]\w*(?: [A-Z]+\d[\w]*)?(?: p(?:i(?:d(?:=\d*)?)?)?)?"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d:. \-]*(?:\[[\w./\-]*(?::\d*)?)?)$"
)
MARK = pattern(r"\s*(?:\[[^\[\]]{1,48}\]|<[^<>]{1,48}>|\{[^{}]{1,48}\}|\S{1,48}[:|])\s*")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LAST_TAG = pattern(_TAG.format("") + r"\s*$")
_RANK = pattern(r"TP(\d{1,9})(?!\d)")


class Origin(NamedTuple):
    """Who logged, as far as a process tag says it."""

    process: str | None = None
    pid: int | None = None
    rank: int | None = None


def origin_of(tags: str) -> Origin:
    """Return who logged: the innermost (last) of nested tags."""
    match = _LAST_TAG.search(tags)
    if match is None:
        return Origin()
    name = match["name"]
    rank = match["rank"]
    if rank is None and "PP" not in name and (tp := _RANK.search(name)):
        rank = tp[1]
    return Origin(name, int(match["pid"]) if match["pid"] else None, None if rank is None else int(rank))
