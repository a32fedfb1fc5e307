"""Checks: how one is declared, what it finds, and how what it needs is found for it.

A check is a generator function in `checks/vlNNN.py` that names the records, ledgers and expectations it needs as parameters.
What the log does not have makes the check `Skipped` with the reason, never passed.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vlogcheck.template import Record

if TYPE_CHECKING:
    from vlogcheck.context import Context

__all__ = ["Check", "Finding", "Missing", "Severity", "Skipped", "all_checks", "check", "run_checks"]


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


class Check(NamedTuple):
    """A declared check."""

    code: str
    name: str
    summary: str
    severity: Severity
    since: str
    function: Callable[..., Iterator[Finding]]
    per_log: bool
    """Whether it looks at the log as a whole instead of one start-up."""

    @property
    def page(self) -> str:
        """The check's page in Markdown (`checks/vlNNN.md`)."""
        from importlib.resources import files

        return (files("vlogcheck.checks") / f"{self.code.lower()}.md").read_text("utf-8")

    @property
    def needs(self) -> dict[str, Any]:
        """Parameter names and types, resolved."""
        return _needs(self.function)


_CHECKS: dict[str, Check] = {}
_CODE = re.compile(r"vl\d{3}")


def check(
    summary: str, severity: Severity, *, since: str = "0.1.0", per_log: bool = False
) -> Callable[[Callable[..., Iterator[Finding]]], Callable[..., Iterator[Finding]]]:
    """Declare a check: `summary` says what it flags, its code is the name of its module, its name the function's."""

    def declare(function: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        code = function.__module__.rsplit(".", 1)[-1]
        if not _CODE.fullmatch(code):
            raise ValueError(f"a check lives in checks/vlNNN.py, not in {function.__module__}")
        code = code.upper()
        if code in _CHECKS and _CHECKS[code].function.__qualname__ != function.__qualname__:
            raise ValueError(f"two checks in {function.__module__}")
        _CHECKS[code] = Check(code, function.__name__, summary, severity, since, function, per_log)
        return function

    return declare


def all_checks() -> dict[str, Check]:
    """Return every check by code, importing the modules that declare them."""
    import vlogcheck.checks as package

    for module in pkgutil.iter_modules(package.__path__):
        if _CODE.fullmatch(module.name) and module.name.upper() not in _CHECKS:
            importlib.import_module(f"vlogcheck.checks.{module.name}")
    return dict(sorted(_CHECKS.items()))


_NEEDS: dict[Callable[..., Any], dict[str, Any]] = {}


def _needs(function: Callable[..., Any]) -> dict[str, Any]:
    needs = _NEEDS.get(function)
    if needs is None:
        hints = typing.get_type_hints(function)
        needs = _NEEDS[function] = {name: hints[name] for name in inspect.signature(function).parameters}
    return needs


def _resolve(kind: Any, context: Context) -> Any:
    """Return the value for a parameter type: `X` last, `Sequence[X]` all, `X | None` optional. Raises `Missing`."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        for option in options:
            try:
                return _resolve(option, context)
            except Missing:
                continue
        if type(None) in typing.get_args(kind):
            return None
        names = " or ".join(getattr(option, "__name__", str(option)) for option in options)
        raise Missing(f"no {names} in the log")
    if origin in (list, Sequence):
        inner = typing.get_args(kind)[0]
        found = context.all(inner)
        if not found:
            raise Missing(f"no {inner.__name__} in the log")
        return found
    if isinstance(kind, type) and issubclass(kind, Record):
        found = context.all(kind)
        if not found:
            raise Missing(f"no {kind.__name__} in the log")
        return found[-1]
    return context.get(kind)


def run_checks(
    context: Context, checks: Sequence[Check], *, per_log: bool = False
) -> tuple[list[Finding], list[Skipped]]:
    """Run the checks of one scope; return what they found and which could not be made."""
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    number = None if per_log else context.number
    for item in checks:
        if item.per_log != per_log:
            continue
        try:
            values = {name: _resolve(kind, context) for name, kind in item.needs.items()}
            for finding in item.function(**values):
                severity = finding.severity or item.severity
                path = finding.path or context.path
                findings.append(
                    finding._replace(code=item.code, name=item.name, severity=severity, path=path, startup=number)
                )
        except Missing as reason:
            skipped.append(Skipped(item.code, item.name, str(reason), number))
    return findings, skipped
