"""VL401: the start-up promises less concurrency than expected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._growth import grow_ways
from vlogcheck.checks._kv import diagnosed
from vlogcheck.checks._load import engine_of, plan_of
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the start-up promises less concurrency than expected", Severity.ERROR)
def concurrency_below_expected(
    ceiling: ConcurrencyCeiling, expected: Expectation, context: Context
) -> Iterator[Finding]:
    """Flag a ceiling that lies wholly below `--expect-concurrency`."""
    wanted = expected.concurrency
    if wanted is None:
        raise Missing("no concurrency was expected: give --expect-concurrency")
    if ceiling.hi >= wanted:
        return
    narrow = ceiling.hi - ceiling.lo <= Fraction(1, 50)  # the rounding of one printed figure
    most = (ceiling.lo + ceiling.hi) / 2 if narrow else ceiling.hi
    basis = "max_num_seqs" if ceiling.capped else ceiling.basis
    remedies = []
    fix: dict[str, int | float | str] = {}
    if ceiling.max_num_seqs is not None and ceiling.max_num_seqs * ceiling.engines < wanted:
        needed = math.ceil(wanted / ceiling.engines)
        remedies.append(f"raise --max-num-seqs from {ceiling.max_num_seqs} to at least {needed}")
        fix["max_num_seqs"] = needed
    if ceiling.kv_hi < wanted:
        ways, more = grow_ways(context, ceiling, wanted)
        if remedies and ways:
            ways[0] = f"that alone is not enough: {ways[0]}"
        remedies += ways
        fix.update(more)
    yield Finding(
        f"only {_plain(most)} of {wanted:,g} expected requests of {ceiling.context:,} tokens fit at once",
        line=ceiling.line,
        expected=f"at least {wanted:g} requests of {ceiling.context:,} tokens at once",
        observed=f"{_plain(most)} at most: {basis}",
        remedy="; ".join(remedies) or f"promise {int(ceiling.lo)} requests of {ceiling.context:,} tokens",
        explanation=_why(context, ceiling, wanted),
        fix=fix,
    )


def _plain(requests: Fraction) -> str:
    """Return a number of requests with two decimals, without them where it is whole."""
    return f"{int(requests):,}" if requests.denominator == 1 else f"{float(requests):,.2f}"


def _why(context: Context, ceiling: ConcurrencyCeiling, wanted: float) -> str:
    said = []
    if ceiling.capped:
        said.append(f"max_num_seqs={ceiling.max_num_seqs} holds before the KV cache does")
    plan = plan_of(context, engine_of(context))
    if plan is not None and ceiling.kv_hi < wanted:
        half = Fraction(1) if wanted == int(wanted) else Fraction(1, 200)
        each = Fraction(str(wanted)) / ceiling.engines
        # A hand figure is cut to whole requests; below 50 of them many a mistake lies inside that.
        text = diagnosed(plan, (each, each + half), "concurrency", length=ceiling.context, wanted=context.expectation)
        if text and not text.startswith("unexplained"):
            said.append(f"the expected figure is {'' if each >= 50 else 'possibly '}{text}")
    return "; ".join(said)
