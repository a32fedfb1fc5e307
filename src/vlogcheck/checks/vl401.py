"""VL401: the start-up promises less concurrency than expected."""

from __future__ import annotations

import math
from collections.abc import Iterator

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
    longest = _longest(context, ceiling, wanted)
    missing = wanted - float(ceiling.hi)
    remedies = []
    fix: dict[str, int | float | str] = {}
    if ceiling.max_num_seqs is not None and ceiling.max_num_seqs * ceiling.engines < wanted:
        needed = math.ceil(wanted / ceiling.engines)
        remedies.append(f"raise --max-num-seqs from {ceiling.max_num_seqs} to at least {needed}")
        fix["max_num_seqs"] = needed
    if ceiling.kv_hi < wanted:
        if longest:
            remedies.append(f"keep requests within {longest:,} tokens (--max-model-len {longest})")
            fix["max_model_len"] = longest
        pool = _pool(context)
        if pool and ceiling.kv_hi:
            grow = float(wanted / ceiling.kv_lo) if ceiling.kv_lo else 0
            if grow:
                remedies.append(
                    f"or give each rank {pool * (grow - 1) / 2**30:.2f} GiB more for the KV cache"
                    f" ({pool * grow / 2**30:.2f} GiB in all): more cards, a smaller model or an 8-bit KV cache"
                )
    yield Finding(
        f"{missing:.2f} of {wanted:g} expected requests of {ceiling.context:,} tokens do not fit",
        line=ceiling.line,
        expected=f"at least {wanted:g} requests of {ceiling.context:,} tokens at once",
        observed=f"{float(ceiling.hi):.2f} at most ({ceiling.basis})",
        remedy="; ".join(remedies) or "give the KV cache more memory",
        explanation=f"max_num_seqs={ceiling.max_num_seqs} holds before the KV cache does" if ceiling.capped else "",
        fix=fix,
    )


def _longest(context: Context, limit: ConcurrencyCeiling, wanted: float) -> int | None:
    """Return the longest request of which `wanted` are certain to fit, by bisection over the ceiling's lower bound."""
    from vlogcheck.context import ceiling

    low, high = 0, limit.context
    while high - low > 1:
        middle = (low + high) // 2
        if ceiling(context, middle).kv_lo >= wanted:
            low = middle
        else:
            high = middle
    return low or None


def _pool(context: Context) -> int | None:
    pools = [i.lo for rank in context.observation.ranks if (i := rank.ledger["kv_cache"].interval) is not None]
    return min(pools) if pools else None
