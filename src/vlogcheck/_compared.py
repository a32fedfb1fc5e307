"""The terms and options of two start-ups, side by side."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._compared_options import OptionChange, compare_options, option_of
from vlogcheck._tuples import NamedTuple
from vlogcheck.ledger import Ledger, Number, Term
from vlogcheck.records import KVCacheTooSmall

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger, RankLedger

__all__ = ["OptionChange", "Side", "TermChange", "compare_options", "compare_terms"]

_SIGNS = {"requested": 1, "weights": -1, "non_torch": -1, "activation": -1, "graph_estimate": -1}
"""The terms whose sum is the available memory, with their signs."""
_SHOWN = ("total", "utilization", *_SIGNS, "consumed", "kv_cache")
_ENGINE = ("kv_bytes_per_token", "block_size", "blocks", "tokens", "max_model_len", "concurrency", "max_num_seqs")


class Side(NamedTuple):
    """One of the two start-ups."""

    context: Context
    engine: EngineLedger | None
    """The engine with the least capacity; None where the log has no engine."""
    rank: RankLedger | None
    """Its tightest rank."""

    @property
    def version(self) -> str | None:
        """The release."""
        return self.context.startup.version

    @property
    def found(self) -> bool:
        """Whether the log holds a start-up of vLLM at all."""
        startup = self.context.startup
        return startup.identified or startup.has_ledger

    def term(self, key: str) -> Term:
        """Return a term of the rank or the engine."""
        empty = Ledger("nothing")
        if key in _ENGINE:
            return (self.engine.ledger if self.engine is not None else empty)[key]
        term = (self.rank.ledger if self.rank is not None else empty)[key]
        if (
            key == "graph_estimate"
            and not term.known
            and self.rank is not None
            and self.rank.rule.graphs == "uncounted"
        ):
            return Term(key, "graph estimate", "bytes", 0, 0, "derived", formula="graphs are not counted in the budget")
        available = self.engine.available if self.engine is not None else None
        if key == "kv_cache" and not term.known and available is not None:
            pool = available.tightest
            return Term(key, "KV cache", "bytes", pool.lo, pool.hi, "printed", line=available.line)
        return term


class TermChange(NamedTuple):
    """How one term differs."""

    key: str
    label: str
    old: Term
    new: Term
    tokens: tuple[Fraction, Fraction] | None
    """Bounds of the tokens this change gives (negative: takes), at the old bytes per token."""

    @property
    def changed(self) -> bool:
        """Whether the two cannot be the same value."""
        return self.old.known and self.new.known and not self.old.agrees(self.new)


def compare_terms(old: Side, new: Side, *, comparable: bool = True) -> list[TermChange]:
    """Return every term that one of the two knows; `comparable` says whether their printed tokens mean the same."""
    per_token = old.term("kv_bytes_per_token")
    if not per_token.known and _same_layout(old, new):
        per_token = new.term("kv_bytes_per_token")
    pools = _pools(old, new)
    pool = _change(*pools)
    known: list[tuple[Number, Number]] = []
    found: list[TermChange] = []
    for key in _SHOWN:
        before, after = pools if key == "kv_cache" else (old.term(key), new.term(key))
        if not (before.known or after.known) or (key == "graph_estimate" and before.hi == after.hi == 0):
            continue
        sign, change = _SIGNS.get(key), _change(before, after)
        effect = None
        if sign is not None and change is not None:
            change = change if sign > 0 else (-change[1], -change[0])
            known.append(change)
            effect = _tokens(change, per_token)
        found.append(TermChange(key, (before if before.known else after).label, before, after, effect))
    if pool is not None and known:
        rest = (pool[0] - sum(high for _, high in known), pool[1] - sum(low for low, _ in known))
        at = next(i for i, term in enumerate(found) if term.key == "kv_cache")
        nothing = Term("other", "all else (not printed by both)", "bytes", None, None, "unknown")
        gone = nothing._replace(lo=-rest[1], hi=-rest[0], status="derived", formula="change of the rest")
        found.insert(at, TermChange("other", nothing.label, nothing, gone, _tokens(rest, per_token)))
    for key in _ENGINE:
        before, after = old.term(key), new.term(key)
        if before.known or after.known:
            effect = _rate_effect(old, new) if key == "kv_bytes_per_token" and comparable else None
            found.append(TermChange(key, (before if before.known else after).label, before, after, effect))
    found += _one_request(old, new)
    return found


def _same_layout(old: Side, new: Side) -> bool:
    """Whether a token costs the same on both sides as far as the options tell."""
    names = ("model", "dtype", "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size")
    return all(option_of(old, name) == option_of(new, name) for name in names)


def _pools(old: Side, new: Side) -> tuple[Term, Term]:
    """Return both KV caches; one that is not printed follows from its tokens where a token costs the same on both sides."""
    found = [old.term("kv_cache"), new.term("kv_cache")]
    for at, (side, other) in enumerate(((old, new), (new, old))):
        tokens, rate = side.term("tokens"), other.term("kv_bytes_per_token")
        if (
            found[at].known
            or not tokens.lo
            or not tokens.hi
            or not rate.lo
            or not rate.hi
            or not _same_layout(old, new)
        ):
            continue
        found[at] = Term(
            "kv_cache", "KV cache", "bytes", tokens.lo * rate.lo, tokens.hi * rate.hi, "derived",
            formula="tokens × the bytes per token of the other log",
        )  # fmt: skip
    return found[0], found[1]


def _one_request(old: Side, new: Side) -> list[TermChange]:
    """Return what one request of the longest length takes, where a refusal prints it on one side."""
    sides = [_request(side) for side in (old, new)]
    if not any(refused for refused, _ in sides) or old.term("max_model_len").lo != new.term("max_model_len").lo:
        return []
    before, after = sides[0][1], sides[1][1]
    return [TermChange("request", "KV cache for one such request", before, after, None)] if before.known else []


def _request(side: Side) -> tuple[bool, Term]:
    empty = Term("request", "KV cache for one such request", "bytes", None, None, "unknown")
    refusal = side.context.startup.last(KVCacheTooSmall)
    if refusal is not None:
        size = refusal.needed_gib.bytes
        return True, empty._replace(lo=size.lo, hi=size.hi, status="printed", line=refusal.line)
    pool, fit = side.term("kv_cache"), side.term("concurrency")
    if not pool.lo or not pool.hi or not fit.lo or not fit.hi:
        return False, empty
    low, high = Fraction(pool.lo) / Fraction(fit.hi), Fraction(pool.hi) / Fraction(fit.lo)
    return False, empty._replace(lo=low, hi=high, status="derived", formula="KV cache ÷ concurrency")


def _change(old: Term, new: Term) -> tuple[Number, Number] | None:
    if old.lo is None or old.hi is None or new.lo is None or new.hi is None:
        return None
    return new.lo - old.hi, new.hi - old.lo


def _tokens(change: tuple[Number, Number], per_token: Term) -> tuple[Fraction, Fraction] | None:
    """Return the tokens a change of bytes stands for."""
    if per_token.lo is None or per_token.hi is None or per_token.lo <= 0:
        return None
    values = [Fraction(c) / Fraction(p) for c in change for p in (per_token.lo, per_token.hi)]
    return min(values), max(values)


def _rate_effect(old: Side, new: Side) -> tuple[Fraction, Fraction] | None:
    """Return the tokens that another cost per token gives or takes, in the new pool."""
    before, after, pool = old.term("kv_bytes_per_token"), new.term("kv_bytes_per_token"), new.term("kv_cache")
    if before.agrees(after):
        return None
    if not (before.lo and before.hi and after.lo and after.hi) or pool.lo is None or pool.hi is None:
        return None
    values = [Fraction(p) / Fraction(a) - Fraction(p) / Fraction(b)
              for p in (pool.lo, pool.hi) for a in (after.lo, after.hi) for b in (before.lo, before.hi)]  # fmt: skip
    return min(values), max(values)
