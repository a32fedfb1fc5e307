"""VL108: the graph estimate took far more from the KV cache than the graphs needed."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import VLLM_BUFFER, DeviceWorkers, Worker, gib, worth
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the graph estimate took more from the KV cache than the graphs needed", Severity.WARNING)
def graph_estimate_too_high(workers: DeviceWorkers) -> Iterator[Finding]:
    """Flag an estimate that exceeds the captured graphs by more than vLLM's own margin of 150 MiB."""
    counted = [w for w in workers if w.rank.rule.graphs in ("separate", "inside")]
    if not counted:
        raise Missing("no graph memory is counted in the budget")
    worker = max(counted, key=_surplus)
    estimate, taken = worker.ledger["graph_estimate"].interval, worker.ledger["graphs"].interval
    if estimate is None or taken is None:
        raise Missing("the log does not print both the estimate and what the graphs took")
    if _surplus(worker) <= VLLM_BUFFER:
        return
    surplus = estimate.minus(taken)
    total, share = worker.ledger["total"].interval, worker.ledger["utilization"]
    remedy = "raise the KV cache by hand"
    fix: dict[str, int | float | str] = {}
    pool = worker.ledger["kv_cache"].interval
    if pool is not None:
        size = pool.lo + surplus.lo - VLLM_BUFFER
        remedy = f"--kv-cache-memory-bytes {size} ({format_gib(size)} instead of {gib(pool.mid)})"
        fix["kv_cache_memory_bytes"] = size
    if total is not None and share.lo is not None:
        equal = float(share.lo) + surplus.lo / total.hi
        remedy += f", or --gpu-memory-utilization {equal:.4f}, which counts what the graphs really take"
    remedy += "; or VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 with a utilization that leaves room for the graphs"
    yield Finding(
        f"the graph estimate took {gib(surplus.mid)} more from the KV cache than the graphs needed"
        + workers.where(worker, lambda other: _surplus(other) > VLLM_BUFFER),
        line=worker.ledger["graphs"].line,
        expected=f"about {gib(taken.mid)}, what the captured graphs took",
        observed=f"{gib(estimate.mid)} kept back: {gib(surplus.mid)} less KV cache per rank"
        + worth(worker, surplus.mid),
        remedy=remedy,
        explanation="the estimate charges every further graph at the price of the second though they share a pool, or"
        " holds a transient of the profile run",
        fix=fix,
    )


def _surplus(worker: Worker) -> int:
    estimate, taken = worker.ledger["graph_estimate"].interval, worker.ledger["graphs"].interval
    return -1 if estimate is None or taken is None or taken.hi < 0 else estimate.lo - taken.hi
