"""VL118: a term of the ledger is negative, or weights and KV cache exceed the request."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import VLLM_BUFFER, DeviceWorkers, Worker, gib, is_unified, signed_gib, worth
from vlogcheck.registry import Finding, Missing, Severity, check


@check("memory came back while it was measured: the KV cache is larger than its budget", Severity.WARNING)
def negative_terms(workers: DeviceWorkers) -> Iterator[Finding]:
    """Flag negative non-torch memory, and weights + KV cache above the request."""
    known = [worker for worker in workers if "non_torch" in worker.ledger or _excess(worker) is not None]
    if not known and (graphs := _graphs(workers)) is not None:
        yield graphs
        return
    if not known:
        raise Missing("the log prints neither non-torch memory nor what was requested")
    worker = max(known, key=_surplus)
    surplus = _surplus(worker)
    if surplus <= VLLM_BUFFER and (graphs := _graphs(workers)) is not None:
        yield graphs
    if surplus <= VLLM_BUFFER or worker.rank.rule.pinned:
        return
    ledger = worker.ledger
    term, pool = ledger["non_torch"], ledger["kv_cache"].interval
    negative = term.hi is not None and term.hi < 0
    requested = ledger["requested"].interval
    name = is_unified(ledger)
    fix: dict[str, int | float | str] = {}
    remedy = "start again on a card where nothing else ends meanwhile"
    if pool is not None and pool.lo > surplus:
        fix["kv_cache_memory_bytes"] = pool.lo - surplus
        remedy += (
            f", or pin what the budget allows: --kv-cache-memory-bytes {pool.lo - surplus} ({gib(pool.lo - surplus)})"
        )
    yield Finding(
        f"non-torch memory is {signed_gib(_middle(worker))}: the KV cache is that much larger than the budget"
        if negative
        else f"weights and KV cache exceed the request by {signed_gib(surplus)}",
        line=term.line if negative else ledger["kv_cache"].line,
        expected=f"at most {gib(requested.mid)} in all" if requested is not None else "terms of at least 0",
        observed=f"non-torch {term.text()}, KV cache {gib(pool.mid)}"
        if pool is not None
        else f"non-torch {term.text()}",
        remedy=remedy + worth(worker, surplus),
        explanation=f"{name}: the page cache shrank meanwhile, CPU and GPU share the memory"
        if name
        else "the profile run takes what others gave back meanwhile (a process that ended, sleep mode) for its own",
        fix=fix,
    )


def _graphs(workers: DeviceWorkers) -> Finding | None:
    """Return the note on graphs that are said to have taken less than nothing."""
    for worker in workers:
        taken = worker.ledger["graphs"].interval
        if taken is None or taken.hi >= 0:
            continue
        return Finding(
            f"captured graphs are said to have taken {gib(taken.mid)}: memory came back while they were captured",
            line=worker.ledger["graphs"].line,
            expected="graphs that take memory",
            observed=f"{gib(taken.mid)} between two readings of free memory",
            remedy=f"real output, no fault of the log: {gib(-taken.mid)} and what the graphs took came back meanwhile (another"
            " process, torch's cache); count the graphs by another start on a card where nothing else ends meanwhile",
            severity=Severity.NOTE,
        )
    return None


def _middle(worker: Worker) -> int:
    interval = worker.ledger["non_torch"].interval
    return interval.mid if interval is not None else 0


def _excess(worker: Worker) -> int | None:
    """Return by how much weights and KV cache exceed the request for certain."""
    weights, pool = worker.ledger["weights"].interval, worker.ledger["kv_cache"].interval
    requested = worker.ledger["requested"]
    if weights is None or pool is None or requested.interval is None or requested.status == "assumed":
        return None
    return weights.plus(pool).lo - requested.interval.hi


def _surplus(worker: Worker) -> int:
    interval = worker.ledger["non_torch"].interval
    negative = -interval.hi if interval is not None else 0
    return max(negative, _excess(worker) or 0)
