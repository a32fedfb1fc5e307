"""VL113: the device ledger does not close."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Worker, Workers, gib, held_before, signed_gib, worth
from vlogcheck.ledger import Ledger
from vlogcheck.records import FreeMemoryGrew
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("the device ledger does not close", Severity.WARNING)
def ledger_does_not_close(workers: Workers, startup: Startup) -> Iterator[Finding]:
    """Flag printed terms that do not add up to the printed KV cache, beyond their rounding, and name the leak."""
    known = [worker for worker in workers if "unexplained" in worker.ledger]
    if not known:
        raise Missing("the release does not print all terms of its device ledger")
    known = [worker for worker in known if worker.ledger["unexplained"].status != "assumed"]
    if not known:
        raise Missing(
            "the log does not print what was requested, nor the utilization: a default may not be what was set"
        )
    worker = max(known, key=_gap)
    if _gap(worker) <= 0:
        return
    ledger = worker.ledger
    left = ledger["unexplained"].interval
    assert left is not None
    names = [ledger[key].label for key in worker.rank.rule.subtracted]
    less = left.lo > 0
    size = left.lo if less else -left.hi
    why = _leak(worker, startup)
    yield Finding(
        signed_gib(abs(left.mid))
        + (" of the request are in no term" if less else " more KV cache than the terms leave")
        + workers.where(worker, lambda other: _gap(other) > 0),
        line=ledger["kv_cache"].line,
        expected=f"{gib(ledger['kv_cache'].interval.mid + left.mid)}: requested − {' − '.join(names)}",  # type: ignore[union-attr]
        observed=f"{ledger['kv_cache'].text()} of KV cache; rounding explains all but {signed_gib(size)}",
        remedy=_remedy(why, size, worker),
        explanation=why or "unexplained",
    )


def _gap(worker: Worker) -> int:
    """Return by how much the residual misses zero."""
    left = worker.ledger["unexplained"].interval
    return 0 if left is None else max(left.lo, -left.hi, 0)


def _leak(worker: Worker, startup: Startup) -> str:
    ledger, rule = worker.ledger, worker.rank.rule
    left = ledger["unexplained"].interval
    assert left is not None
    if left.lo > 0:
        candidates = _missing(ledger, rule.subtracted)
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            return "one of: " + "; ".join(candidates)
        if rule.others_charged:
            return "memory of other processes on the card is charged to this one in this release"
        return ""
    if startup.last(FreeMemoryGrew) is not None:
        return "memory that another process gave back while this one profiled"
    if (weights := ledger["weights"].interval) is not None and weights.mid <= 0:
        return "the weights are not in the ledger: they were loaded on another device than the one that was measured"
    return ""


def _missing(ledger: Ledger, subtracted: tuple[str, ...]) -> list[str]:
    """Return the figures of the log that are outside the rule and as large as what is missing."""
    left = ledger["unexplained"].interval
    assert left is not None
    found = []
    for key, what in (
        ("graph_estimate", "the graph estimate is subtracted too"),
        ("graphs", "the captured graphs are subtracted too"),
        ("external", "weights held by another process are subtracted too"),
    ):
        term = ledger[key].interval
        if key not in subtracted and term is not None and term.lo > 0 and term.overlaps(left):
            found.append(what)
    held = held_before(ledger)
    if held is not None and held.lo > 0 and held.overlaps(left):
        found.append(f"what was in use on the card at start ({gib(held.mid)}) is charged to this server")
    return found


def _remedy(why: str, size: int, worker: Worker) -> str:
    value = worth(worker, size)
    if "in use on the card" in why or "other process" in why:
        return (
            f"free the card of other processes (nvidia-smi, rocm-smi --showpids) and start again: {gib(size)} per rank"
            f" come back{value}"
        )
    if "graph" in why:
        return f"count {gib(size)} per rank for graphs in the hand ledger{value}"
    if "device" in why:
        return f"expect out-of-memory errors: lower the KV cache by {gib(size)}, or pin the server to one device"
    return (
        f"start again on an idle card and compare: what changes is another process; {gib(size)} per rank{value}"
        " that stay the same are a term this release does not print"
    )
