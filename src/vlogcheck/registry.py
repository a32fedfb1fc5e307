"""Checks: how one is declared, what it finds, and how what it needs is found for it.

A check is a generator function in `checks/vlNNN.py` that names the records, ledgers and expectations it needs as parameters.
What the log does not have makes the check `Skipped` with the reason, never passed.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vlogcheck._findings import Finding, Missing, Severity, Skipped
from vlogcheck._tuples import NamedTuple
from vlogcheck.template import Record

if TYPE_CHECKING:
    from vlogcheck.context import Context

__all__ = ["Check", "Finding", "Missing", "Severity", "Skipped", "all_checks", "check", "run_checks"]


class Need(NamedTuple):
    """What one parameter of a check asks for."""

    kinds: tuple[type[Any], ...]
    several: bool
    optional: bool


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
    def needs(self) -> dict[str, Need]:
        """What each parameter asks for."""
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

    for directory in package.__path__:
        for file in os.listdir(directory):  # pkgutil would bring half the import system along
            name = file.partition(".")[0]
            if file.endswith(".py") and _CODE.fullmatch(name) and name.upper() not in _CHECKS:
                importlib.import_module(f"vlogcheck.checks.{name}")
    return dict(sorted(_CHECKS.items()))


_NEEDS: dict[Callable[..., Any], dict[str, Need]] = {}


def _needs(function: Callable[..., Any]) -> dict[str, Need]:
    needs = _NEEDS.get(function)
    if needs is None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        needs = _NEEDS[function] = {name: _need(function, name) for name in names}
    return needs


def _need(function: Callable[..., Any], name: str) -> Need:
    """Read a parameter's annotation: `X`, `X | Y`, `X | None` or `Sequence[X]`.

    By hand, because `typing.get_type_hints` compiles every annotation: for all checks that takes longer than reading a log.
    """
    annotation = str(function.__annotations__[name])
    several = annotation.startswith(("Sequence[", "list["))
    text = annotation[annotation.index("[") + 1 : -1] if several else annotation
    words = [word.strip() for word in text.split("|")]
    try:
        kinds = tuple(function.__globals__[word] for word in words if word != "None")
    except KeyError as error:
        raise TypeError(f"{function.__module__}: {name}: no type {error} in the module") from None
    return Need(kinds, several, "None" in words)


def _resolve(need: Need, context: Context) -> Any:
    """Return the value for a parameter: `X` last, `Sequence[X]` all, `X | None` optional. Raises `Missing`."""
    if need.several:
        found = context.all(need.kinds[0])
        if not found:
            raise Missing(f"no {need.kinds[0].__name__} in the log")
        return found
    reason = None
    for kind in need.kinds:
        try:
            return _value(kind, context)
        except Missing as missing:
            reason = missing
    if need.optional:
        return None
    if len(need.kinds) == 1 and reason is not None:
        raise reason
    raise Missing(f"no {' or '.join(kind.__name__ for kind in need.kinds)} in the log")


def _value(kind: type[Any], context: Context) -> Any:
    if issubclass(kind, Record):
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
            values = {name: _resolve(need, context) for name, need in item.needs.items()}
            for finding in item.function(**values):
                severity = finding.severity or item.severity
                path = (
                    finding.path or getattr(finding.line, "path", None) or context.path
                )  # of several files, the line's
                findings.append(
                    finding._replace(code=item.code, name=item.name, severity=severity, path=path, startup=number)
                )
        except Missing as reason:
            skipped.append(Skipped(item.code, item.name, str(reason), number))
        except ArithmeticError as error:  # whatever figures a log invents, the other checks are made
            why = f"the log's figures cannot be meant: {type(error).__name__.removesuffix('Error')} in its arithmetic"
            skipped.append(Skipped(item.code, item.name, why, number))
    return findings, skipped
