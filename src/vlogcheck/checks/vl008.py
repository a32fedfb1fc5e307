"""VL008: wordings that the release in the log is not known to print."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from vlogcheck._lazy import pattern
from vlogcheck.budget.releases import is_plain, order
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_SHOWN = 4
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
}
_CLAUSE = pattern(r"(>=|<=|<|>)([\d.]+)")


def _holds(versions: str, version: str) -> bool:
    """Whether a release is among a wording's versions."""
    clauses = [_CLAUSE.fullmatch(clause.strip()) for clause in versions.split(",") if clause.strip()]
    if None in clauses:
        from packaging.specifiers import SpecifierSet  # rare, and 3 ms to import

        return version in SpecifierSet(versions)
    return all(_COMPARE[clause[1]](order(version), order(clause[2])) for clause in clauses if clause is not None)


@check("wordings that the release in the log is not known to print", Severity.NOTE)
def wording_outside_releases(startup: Startup) -> Iterator[Finding]:
    """Flag vLLM's own messages whose wording belongs to other releases than the one the log names."""
    if startup.version is None:
        return
    version = startup.version
    if not is_plain(version):
        from packaging.version import Version

        try:
            parsed = Version(version)
        except ValueError:  # no version; too many digits for one
            return
        if parsed.is_prerelease or parsed.local:
            return  # a nightly or a fork prints what its source has
        version = str(parsed)
    foreign = [
        record
        for record in startup.records
        if (wording := record.template) is not None
        and wording.source == "vllm"
        and not _holds(wording.versions, version)
    ]
    if not foreign:
        return
    names = list(
        dict.fromkeys(f"{type(r).__name__} ({r.template.versions})" for r in foreign if r.template is not None)
    )
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    yield Finding(
        f"{len(foreign)} message{'s are' if len(foreign) != 1 else ' is'} worded as in other releases than {version}",
        line=foreign[0].line,
        expected=f"the wordings of {version}",
        observed=shown,
        remedy=f"check that line {foreign[0].line} comes from the same server: two servers may share this file, or"
        " the server is"
        " patched",
    )
