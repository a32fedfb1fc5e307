"""Two start-ups term by term: which term of the ledger took the tokens, and what the release is known to have changed.

The tightest rank of each side is compared, since the scheduler uses it. Terms that only one side prints are put together with
what neither prints, so the sum always closes: available memory = requested − weights − … − the rest.
"""

from __future__ import annotations

from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Union

from vlogcheck._ceiling import is_uniform
from vlogcheck._changes import Change, changes_between
from vlogcheck._compared import OptionChange, Side, TermChange, compare_options, compare_terms
from vlogcheck._news import news
from vlogcheck._two_lengths import two_lengths
from vlogcheck.budget.releases import parse_release
from vlogcheck.context import ConcurrencyCeiling, Context, ceiling
from vlogcheck.failures import failure_of, reason
from vlogcheck.registry import Missing

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from vlogcheck.registry import Finding

__all__ = ["Diff", "Loss", "OptionChange", "Side", "TermChange", "diff"]

LogSource = Union[str, "os.PathLike[str]", bytes, IO[bytes]]


class Loss(NamedTuple):
    """How much capacity was lost, as a share: negative is a gain."""

    what: str
    """tokens, `requests of N tokens`, or available memory."""
    old: Fraction
    new: Fraction
    lo: Fraction
    hi: Fraction
    """Bounds of the loss, from the rounding of the printed figures."""
    bounds: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
    """Bounds of `old` and `new` themselves."""

    @property
    def wide(self) -> bool:
        """Whether the loss is only bounded, since a request's cost at the compared length is not known."""
        return self.hi - self.lo > Fraction(1, 50)


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
        self.ceilings = _ceiling(old, context), _ceiling(new, context)
        self.loss = _loss(old, new, context)
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
        from vlogcheck.report.difference import diff_dict

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
        from vlogcheck.api import read
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


def _ceiling(side: Side, context: int | None) -> ConcurrencyCeiling | None:
    try:
        return ceiling(side.context, context)
    except Missing:
        return None


def comparable_tokens(old: Side, new: Side) -> bool:
    """Whether the printed tokens mean the same: both counted, both computed for one length, or a uniform model."""
    computed = [parse_release(side.version).since("0.20.2") for side in (old, new)]
    lengths = [side.term("max_model_len").lo for side in (old, new)]
    if old.engine is None or new.engine is None:
        return False
    if all(computed):
        return lengths[0] == lengths[1]
    if not any(computed):  # counted tokens are a capacity only where every layer costs the same
        return all(side.term("concurrency").lo is None or _alike(side) for side in (old, new))
    counted = old if computed[1] else new
    assert counted.engine is not None
    return is_uniform(counted.context, counted.engine)


def _alike(side: Side) -> bool:
    assert side.engine is not None
    return side.version is None or is_uniform(side.context, side.engine)


def _loss(old: Side, new: Side, context: int | None) -> Loss | None:
    """Return the loss of what can be compared: tokens, else requests of one length, else memory."""
    tokens = old.term("tokens"), new.term("tokens")
    if context is None and comparable_tokens(old, new) and tokens[0].known and tokens[1].known:
        return _share("tokens", *((t.lo, t.hi) for t in tokens))
    lengths = [side.term("max_model_len").lo for side in (old, new)]
    length = context or (min(int(n) for n in lengths if n is not None) if None not in lengths else None)
    if length:
        ceilings = _ceiling(old, length), _ceiling(new, length)
        if ceilings[0] is not None and ceilings[1] is not None:
            return _share(f"requests of {length:,} tokens", *((c.kv_lo, c.kv_hi) for c in ceilings if c is not None))
    pools = old.term("kv_cache"), new.term("kv_cache")
    return _share("available memory", *((t.lo, t.hi) for t in pools)) if pools[0].known and pools[1].known else None


def _share(what: str, old: Sequence[Any], new: Sequence[Any]) -> Loss | None:
    if not old[0] or old[0] <= 0:
        return None
    low, high = 1 - Fraction(new[1]) / Fraction(old[0]), 1 - Fraction(new[0]) / Fraction(old[1])
    bounds = (Fraction(old[0]), Fraction(old[1])), (Fraction(new[0]), Fraction(new[1]))
    return Loss(what, Fraction(old[0] + old[1]) / 2, Fraction(new[0] + new[1]) / 2, low, high, bounds)
