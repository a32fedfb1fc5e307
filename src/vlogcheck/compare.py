"""Two start-ups term by term: which term of the ledger took the tokens, and what the release is known to have changed.

The tightest rank of each side is compared, since the scheduler uses it. Terms that only one side prints are put together with
what neither prints, so the sum always closes: available memory = requested − weights − … − the rest.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck._changes import Change, changes_between
from vlogcheck._compared import OptionChange, Side, TermChange, compare_options, compare_terms
from vlogcheck._loss import Loss, ceiling_of, comparable_tokens, loss_of
from vlogcheck._news import news
from vlogcheck._two_lengths import two_lengths
from vlogcheck.budget.releases import parse_release
from vlogcheck.context import Context
from vlogcheck.failures import failure_of, reason

if TYPE_CHECKING:
    from vlogcheck._reading import LogSource
    from vlogcheck.registry import Finding

__all__ = ["Diff", "Loss", "OptionChange", "Side", "TermChange", "diff"]


class Diff:
    """Two start-ups compared."""

    def __init__(self, old: Side, new: Side, *, max_loss: float | None = None, context: int | None = None) -> None:
        self.old = old
        self.new = new
        self.max_loss = max_loss
        self.terms = compare_terms(old, new, comparable=comparable_tokens(old, new))
        self.options = compare_options(old, new)
        releases = parse_release(old.version), parse_release(new.version)
        self.known: list[Change] = [] if None in (old.version, new.version) else changes_between(*releases)
        self.ceilings = ceiling_of(old, context), ceiling_of(new, context)
        self.loss = loss_of(old, new, context)
        self.two_lengths = two_lengths(old, new)
        """What the two say about the cost of a request, where they are one server at two lengths."""
        self._news: list[Finding] | None = None

    @property
    def missing(self) -> str | None:
        """Why nothing can be decided: a log without a capacity, or a new start-up that failed; else None."""
        for name, side in (("old", self.old), ("new", self.new)):
            if not side.found:
                return f"the {name} log holds no vLLM start-up"
            if side.engine is None or not (side.term("tokens").known or side.term("concurrency").known):
                startup = side.context.startup
                ended = f" ({reason(startup)})" if failure_of(startup) is not None else ""
                return f"the {name} log prints no KV cache capacity{ended}"
        started = self.new.context.startup
        if not started.usable and failure_of(started) is not None:
            return f"the new start-up failed: {reason(started)}"
        return None

    @property
    def news(self) -> list[Finding]:
        """Warnings and errors of the new start-up whose checks found nothing in the old one."""
        if self._news is None:
            self._news = news(self.old.context, self.new.context)
        return self._news

    @property
    def verdict(self) -> str:
        """`inconclusive` where a log has no capacity or the bounds straddle the limit, `fail` beyond it, else `pass`."""
        if self.missing is not None or self.loss is None:
            return "inconclusive"
        if self.max_loss is None:
            return "pass"
        limit = Fraction(str(self.max_loss))
        if self.loss.lo > limit:
            return "fail"
        middle = 1 - self.loss.new / self.loss.old if self.loss.old else Fraction(0)
        return "inconclusive" if self.loss.wide and self.loss.hi > limit else ("fail" if middle > limit else "pass")

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.verdict]

    @property
    def culprit(self) -> TermChange | None:
        """The term that took the most tokens for certain, or None where nothing did."""
        takers = [t for t in self.terms if t.tokens is not None and t.tokens[1] < 0]
        return min(takers, key=lambda t: t.tokens[1] if t.tokens else 0, default=None)

    def explains(self, change: Change) -> bool:
        """Whether a known change of the release touches a term that differs here."""
        keys = {term.key for term in self.terms if term.changed}
        rest = next((term.tokens for term in self.terms if term.key == "other"), None)
        if rest is not None and not rest[0] <= 0 <= rest[1]:
            keys |= {"rest"}
        return bool(keys & set(change.terms))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        from vlogcheck.report._difference_dict import diff_dict

        return diff_dict(self)

    def __str__(self) -> str:
        from vlogcheck.report.difference import render

        return render(self)

    def __repr__(self) -> str:
        return f"<Diff {self.old.version} → {self.new.version}: {self.verdict}>"


def diff(
    old: LogSource | Context, new: LogSource | Context, *, max_loss: float | None = None, context: int | None = None
) -> Diff:
    """Compare the last start-up of two logs, term by term.

    `max_loss` is the share of the capacity that may be lost (0.05 is 5 %); `context` the tokens per request to compare the
    concurrency at (default: the length both print, else tokens). Raises `LogFileError` for a log that cannot be read and
    `ValueError` for a share outside 0 to 1.
    """
    if max_loss is not None and not 0 <= max_loss <= 1:
        raise ValueError(f"max_loss is a share between 0 and 1, not {max_loss!r}")
    if context is not None and (not isinstance(context, int) or not 0 < context < 10**15):
        raise ValueError("context is a positive number of tokens below 10**15")
    return Diff(_side(old), _side(new), max_loss=max_loss, context=context)


def _side(source: LogSource | Context) -> Side:
    if not isinstance(source, Context):
        from vlogcheck._reading import read
        from vlogcheck.startup import Startup

        facts = read(source)
        number = facts.judged[-1] if facts.judged else 0
        startup = facts.startups[number] if facts.startups else Startup(0)
        source = Context(startup, number, facts=facts)
    engines = [e for e in source.observation.engines if "tokens" in e.ledger or "concurrency" in e.ledger]
    engines = engines or list(source.observation.engines)
    engine = min(engines, key=lambda e: e.ledger["tokens"].lo or 0, default=None)
    rank = None
    if engine is not None:
        pools = [r for r in engine.ranks if "kv_cache" in r.ledger]
        rank = min(pools, key=lambda r: r.ledger["kv_cache"].lo or 0, default=None) or next(iter(engine.ranks), None)
    return Side(source, engine, rank)
