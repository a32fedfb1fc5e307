"""What checks give: findings with their severity, and what could not be checked, with the reason."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from typing import Any

from vlogcheck._tuples import NamedTuple

__all__ = ["Finding", "Missing", "Severity", "Skipped"]


class Severity(str, enum.Enum):
    """How much a finding weighs."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def weight(self) -> int:
        """Order: note < warning < error."""
        return ("note", "warning", "error").index(self.value)


class Finding(NamedTuple):
    """One thing that is not as it should be. Every text is for people and carries its units."""

    message: str
    """What is wrong, in one sentence."""
    line: int | None
    """The log line that shows it."""
    expected: str
    observed: str
    remedy: str
    """What to do, in numbers."""
    explanation: str = ""
    """The term of the ledger that explains it, where it is known."""
    fix: Mapping[str, int | float | str] = types.MappingProxyType({})
    """The remedy for programs: vLLM option names (underscores) to the values that would do."""
    severity: Severity | None = None
    """Overrides the check's own severity."""
    code: str = ""
    name: str = ""
    path: str | None = None
    """The log file, where several are read."""
    startup: int | None = None
    """Which start-up of the log it is about, from 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity.value if self.severity else None,
            "path": self.path,
            "line": self.line,
            "startup": self.startup,
            "expected": self.expected,
            "observed": self.observed,
            "message": self.message,
            "remedy": self.remedy,
            "explanation": self.explanation,
            "fix": dict(self.fix),
        }


class Skipped(NamedTuple):
    """A check that could not be made, and why."""

    code: str
    name: str
    reason: str
    startup: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the skipped check for JSON."""
        return self._asdict()


class Missing(Exception):  # noqa: N818  (it is an answer, not an error)
    """What a check needs is not there; the text says what and why."""
