"""How a rank's terms close: the one that is missing is derived, several are one remainder, none leaves what is unexplained."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vlogcheck.device_rule import DeviceRule
    from vlogcheck.ledger import Ledger

__all__ = ["close"]

_REMAINDER = "what the other terms leave"

_LABELS = {
    "weights": "weights",
    "consumed": "weights and non-torch",
    "non_torch": "non-torch memory",
    "activation": "peak activation",
    "graph_estimate": "graph estimate",
}


def close(ledger: Ledger, rule: DeviceRule) -> DeviceRule:
    """Add the term that follows from the others, and return the rule that they show themselves to follow.

    The one term that is missing is derived; several missing ones are summed up; of none the unexplained rest is said.
    """
    _remain(ledger, rule)
    return _without_estimate(ledger, rule)


def _remain(ledger: Ledger, rule: DeviceRule) -> None:
    requested, pool = ledger["requested"], ledger["kv_cache"]
    if rule.pinned or requested.lo is None or requested.hi is None:
        return
    known = [ledger[key] for key in rule.subtracted if key in ledger]
    missing = [key for key in rule.subtracted if key not in ledger]
    low = requested.lo - sum((t.hi for t in known if t.hi is not None), Fraction(0))
    high = requested.hi - sum((t.lo for t in known if t.lo is not None), Fraction(0))
    said = " − ".join(["requested", *(_LABELS[key] for key in rule.subtracted if key in ledger)])
    if pool.lo is None or pool.hi is None:
        if not missing:
            ledger.between("kv_cache", "KV cache", "bytes", (low, high), "derived", formula=said)
        return
    bounds = (low - pool.hi, high - pool.lo)
    formula = f"{said} − KV cache"
    assumed = "assumed" in (requested.status, pool.status)
    status: Literal["derived", "assumed"] = "assumed" if assumed else "derived"
    if not missing:
        ledger.between("unexplained", "unexplained", "bytes", bounds, status, formula=formula)
    elif len(missing) == 1:
        ledger.between(missing[0], _LABELS[missing[0]], "bytes", bounds, status, formula=formula, origin=_REMAINDER)
    else:
        names = " and ".join(_LABELS[key] for key in missing)
        if missing == ["non_torch", "activation"] and rule.graphs == "inside":
            names = "non-torch memory, activation and graph estimate"
        elif "graph_estimate" in missing:
            names = names.replace(" and ", ", ", len(missing) - 2)
        ledger.between("rest", "the rest, not printed", "bytes", bounds, status, formula=formula, origin=names)


def _without_estimate(ledger: Ledger, rule: DeviceRule) -> DeviceRule:
    """Return the rule the terms themselves show: they add up without the estimate that the release would have subtracted.

    A derived estimate of nothing beside graphs that took something means that estimating was switched off
    (`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0`): the graphs are outside the budget.
    """
    estimate, graphs = ledger["graph_estimate"], ledger["graphs"]
    if rule.graphs != "separate" or estimate.origin != _REMAINDER or estimate.lo is None or estimate.hi is None:
        return rule
    if not estimate.lo <= 0 <= estimate.hi or graphs.lo is None or graphs.lo <= estimate.hi:
        return rule
    if estimate.status == "assumed":
        return rule
    ledger.exact("graph_estimate", "graph estimate", "bytes", 0, "derived", formula="the terms add up without one")
    left = (estimate.lo, estimate.hi)
    ledger.between("unexplained", "unexplained", "bytes", left, "derived", formula=estimate.formula)
    kept = tuple(key for key in rule.subtracted if key != "graph_estimate")
    return rule._replace(subtracted=kept, graphs="uncounted")
