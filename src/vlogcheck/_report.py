"""The result of checking one log: findings, what was skipped, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vlogcheck.context import Context, LogFacts
from vlogcheck.registry import Finding, Severity, Skipped
from vlogcheck.startup import Startup

__all__ = ["Report"]


class Report:
    """The result of checking one log (or one set of rotated files)."""

    def __init__(
        self, path: str, startups: list[Startup], contexts: list[Context], findings: list[Finding],
        skipped: list[Skipped], facts: LogFacts, *, fail_on: Severity = Severity.ERROR, strict: bool = False,
        stopped: str | None = None, made: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.path = path
        self.startups = startups
        """All start-ups in the log."""
        self.contexts = contexts
        """The start-ups that were judged, with their ledgers: the last one of each server."""
        self.findings = findings
        self.skipped = skipped
        self.facts = facts
        self.fail_on = fail_on
        self.strict = strict
        self.stopped = stopped
        """Why reading ended before the log did (a time-out), or None."""
        self.made = frozenset(made)
        """Codes of the checks that were chosen (`select`, `ignore`); `skipped` says which of them could not be made."""

    @property
    def failing(self) -> list[Finding]:
        """The findings at or above the severity that fails."""
        return [f for f in self.findings if f.severity is not None and f.severity.weight >= self.fail_on.weight]

    @property
    def verdict(self) -> str:
        """`fail`, `inconclusive` (the log ends before what an expectation needs, or is no vLLM log) or `pass`."""
        if self.failing:
            return "fail"
        if self.inconclusive:
            return "inconclusive"
        return "pass"

    @property
    def inconclusive(self) -> str | None:
        """Why the log decides nothing, or None."""
        if self.stopped:
            return self.stopped
        if not self.contexts:
            return "no vLLM start-up found in the log"
        if self.facts.unjudged:
            return (
                f"the log holds {self.facts.unjudged:,} servers more than the {len(self.contexts):,} that are judged:"
                " give it in parts"
            )
        for context in self.contexts:
            if (why := _undecided(context)) is not None:
                return why
        if (why := self._nothing_judged()) is not None:
            return why
        if self.strict and self.skipped:
            return f"{len(self.skipped)} checks were skipped (--strict)"
        return None

    def _nothing_judged(self) -> str | None:
        """Why the only figure that was stated could not be judged, or None. Silence never passes."""
        expectation = self.contexts[-1].expectation
        judged = {"concurrency", "tokens", "weights"} & set(expectation.stated)
        if expectation.size("kv_bytes_per_token") is None or judged:
            return None
        reasons = [item.reason for item in self.skipped if item.code == "VL307"]
        return f"{reasons[0]}: the stated KV bytes per token cannot be judged" if reasons else None

    @property
    def summary(self) -> str:
        """What decides the verdict, in one sentence: the worst finding, why nothing is decided, or what was kept."""
        from vlogcheck.report._summary import summary

        return summary(self)

    @property
    def ok(self) -> bool:
        """Whether the verdict is `pass`."""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON: the contract of `vlogcheck LOG --format json`."""
        from vlogcheck.report.json import report_dict

        return report_dict(self)

    def __str__(self) -> str:
        from vlogcheck.report.text import render

        return render(self)

    def __repr__(self) -> str:
        count = len(self.findings)
        return f"<Report {self.path}: {self.verdict}, {count} finding{'s' if count != 1 else ''}>"


def _undecided(context: Context) -> str | None:
    """Why a start-up's log does not decide what was asked of it, or None."""
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.registry import Missing

    expectation = context.expectation
    if not context.startup.usable and context.startup.refusal is None and not expectation.stated:
        return f"the log ends while {context.startup.phase}: the start-up is not complete"
    if expectation.concurrency is not None:
        try:
            ceiling = context.get(ConcurrencyCeiling)
        except Missing as missing:
            return f"{missing}, so the expected concurrency cannot be judged"
        if ceiling.lo < expectation.concurrency <= ceiling.hi:
            return (
                f"at {ceiling.context:,} tokens the log bounds the concurrency between {float(ceiling.lo):.2f} and"
                f" {float(ceiling.hi):.2f}: give --model-config to compute it"
            )
    if expectation.tokens is not None and not any("tokens" in e.ledger for e in context.observation.engines):
        return "the log prints no KV cache size, so the expected tokens cannot be judged"
    if expectation.size("weights") is not None and not any("weights" in r.ledger for r in context.observation.ranks):
        return "the log prints no weights, so the expected weights cannot be judged"
    return None
