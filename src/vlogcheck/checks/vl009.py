"""VL009: lines with memory figures that no wording knows."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._lazy import pattern
from vlogcheck.context import LogFacts
from vlogcheck.registry import Finding, Severity, check

_FIGURE = pattern(r"\d\s?(?:[KMGT]iB|[MG]B|tokens|blocks)\b")


@check("lines with memory figures that no wording knows", Severity.NOTE, per_log=True)
def figures_not_recognised(log: LogFacts) -> Iterator[Finding]:
    """Flag messages that hold a size, tokens or blocks and were not read."""
    if not log.startups:
        return
    found = [(line, text) for line, text in log.unrecognised_lines if _FIGURE.search(text)]
    if not found:
        return
    several = len(found) != 1
    yield Finding(
        f"{len(found)} line{'s hold memory figures' if several else ' holds a memory figure'} that no known wording"
        " reads",
        line=found[0][0],
        expected="every figure of the ledger read",
        observed=found[0][1].strip()[:120],
        remedy=f"see {'all ' + str(len(found)) + ' from ' if several else ''}line {found[0][0]}{' on' if several else ''} with"
        " `vlogcheck parse --unrecognised`, and add the figure to the ledger by hand; a wording of vLLM among them is worth a"
        " report",
    )
