"""The reviewed list of memory-looking messages that say nothing about the ledger."""

from __future__ import annotations

import fnmatch
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from _drift.pieces import show

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _drift.collect import Site

KEYS = frozenset(("path", "function", "call", "text", "reason"))


class IgnoreError(ValueError):
    """An ignore file that cannot be used."""


@dataclass(frozen=True)
class Rule:
    """One entry: a message is ignored when all that is given applies."""

    reason: str
    path: tuple[str, ...] = ()
    """Globs over the path inside the package; `**` is like `*`, which crosses folders."""
    function: re.Pattern[str] | None = None
    call: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    """Searched in the message with its holes as `{}`."""

    def covers(self, site: Site) -> bool:
        if self.path and not any(fnmatch.fnmatchcase(site.path, glob) for glob in self.path):
            return False
        if self.function and not self.function.search(site.function):
            return False
        if self.call and not self.call.fullmatch(site.call):
            return False
        return not self.text or self.text.search(show(site.text)) is not None

    def describe(self) -> str:
        """Return the entry on one line."""
        patterns = (("function", self.function), ("call", self.call), ("text", self.text))
        given = [f"path {', '.join(self.path)}"] if self.path else []
        given += [f"{name} {pattern.pattern}" for name, pattern in patterns if pattern]
        return f"{'; '.join(given)} ({self.reason})"


@dataclass
class IgnoreList:
    """Rules in order, and how many messages each one was the first to cover."""

    rules: tuple[Rule, ...] = ()
    used: dict[Rule, int] = field(default_factory=dict)

    def covers(self, site: Site) -> bool:
        for rule in self.rules:
            if rule.covers(site):
                self.used[rule] = self.used.get(rule, 0) + 1
                return True
        return False

    @property
    def idle(self) -> list[Rule]:
        """Rules that covered nothing."""
        return [rule for rule in self.rules if rule not in self.used]


def load(path: Path) -> IgnoreList:
    """Read an ignore file: an array of `[[ignore]]` tables with a `reason` and at least one condition each.

    Raises:
        IgnoreError: not TOML, an unknown key, a missing reason, no condition, or a broken expression.

    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("ignore", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise IgnoreError(f"{path}: {error}") from error
    return IgnoreList(tuple(_rules(entries, path)))


def _rules(entries: Iterable[Any], path: Path) -> Iterable[Rule]:
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: entry {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
            raise IgnoreError(f"{where} has no reason")
        if unknown := entry.keys() - KEYS:
            raise IgnoreError(f"{where}: unknown key {', '.join(sorted(unknown))}")
        if len(entry) < 2:
            raise IgnoreError(f"{where} has no condition")
        globs = entry.get("path", [])
        try:
            yield Rule(
                reason=entry["reason"],
                path=(globs,) if isinstance(globs, str) else tuple(globs),
                function=re.compile(entry["function"]) if "function" in entry else None,
                call=re.compile(entry["call"]) if "call" in entry else None,
                text=re.compile(entry["text"]) if "text" in entry else None,
            )
        except (re.error, TypeError) as error:
            raise IgnoreError(f"{where}: {error}") from error
