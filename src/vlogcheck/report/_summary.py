"""What decides a verdict, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.api import Report
    from vlogcheck.context import ConcurrencyCeiling, Context
    from vlogcheck.registry import Finding

__all__ = ["decisive", "summary"]


def summary(report: Report) -> str:
    """Return the finding that fails, why nothing is decided, or what was kept of the expectation."""
    verdict, worst = report.verdict, decisive(report)
    if verdict == "fail" and worst is not None:
        others = dict.fromkeys(finding.code for finding in report.failing if finding.code != worst.code)
        return f"{worst.code} {worst.message}" + (f"; also {', '.join(others)}" if others else "")
    if verdict == "inconclusive":
        return report.inconclusive or ""
    return "; ".join(_kept(report)) or "nothing was expected, and no check fails"


def decisive(report: Report) -> Finding | None:
    """Return the finding to name first: one that fails, and a server that is gone before all others; None without any."""
    failing = report.failing
    if not failing:
        return report.findings[0] if report.findings else None
    return min(failing, key=lambda finding: (-_weight(finding), not finding.code.startswith("VL9")))


def _weight(finding: Finding) -> int:
    return finding.severity.weight if finding.severity is not None else 0


_JUDGED_BY = (
    ("weights", "VL201", "weights per rank"),
    ("kv_bytes_per_token", "VL307", "KV cache bytes per token"),
)
"""Stated sizes, the check that holds the log against each, and what it is called."""


def _kept(report: Report) -> list[str]:
    """Return which statements the log bears out. What was stated and not looked at (`--ignore`) is not claimed."""
    contexts = report.contexts
    expected = contexts[-1].expectation
    said = []
    ceilings = [ceiling for context in contexts if (ceiling := _ceiling(context)) is not None]
    if expected.concurrency is not None and len(ceilings) == len(contexts):
        least = min(ceilings, key=lambda ceiling: ceiling.lo)
        if least.lo >= expected.concurrency:
            fits = "request of {} tokens fits" if expected.concurrency == 1 else "requests of {} tokens fit"
            said.append(
                f"{expected.concurrency:,g} {fits.format(f'{least.context:,}')} at once, the ceiling is {least.text}"
            )
    engines = [engine for context in contexts for engine in context.observation.engines]
    tokens = [held.lo for engine in engines if (held := engine.ledger["tokens"].interval) is not None]
    if expected.tokens is not None and tokens and min(tokens) >= expected.tokens:
        said.append(f"the KV cache holds {min(tokens):,} tokens, {expected.tokens:,} were expected")
    reasons = {item.code: item.reason for item in report.skipped}
    found = {finding.code for finding in report.findings}
    open_ends = []
    for name, code, what in _JUDGED_BY:
        if expected.size(name) is None or code not in report.made:
            continue
        if code in reasons:
            open_ends.append(f"the {what} could not be judged: {reasons[code]}")
        elif code not in found:
            said.append(f"the {what} are as expected")
    if set(expected.stated) - {"context", "shared_card"} and not said:
        said.append("none of the checks that were made fails")
    return said + open_ends


def _ceiling(context: Context) -> ConcurrencyCeiling | None:
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.registry import Missing

    try:
        return context.get(ConcurrencyCeiling)
    except Missing:
        return None
