"""VL110: the suggested `--kv-cache-memory` counts graph memory twice."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers, gib, signed_gib, worth
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the suggested --kv-cache-memory counts graph memory twice", Severity.NOTE)
def suggestion_counts_graphs_twice(workers: DeviceWorkers) -> Iterator[Finding]:
    """Correct the suggestion of releases whose activation term holds the graph estimate (0.18.1; from 0.27.1)."""
    said = [worker for worker in workers if "suggested" in worker.ledger]
    if not said:
        raise Missing("the log suggests no --kv-cache-memory")
    worker = min(said, key=lambda w: w.ledger["suggested"].lo or 0)
    estimate, suggested = worker.ledger["graph_estimate"].interval, worker.ledger["suggested"].interval
    if worker.rank.rule.graphs != "inside" or estimate is None or suggested is None or estimate.lo <= 0:
        return
    right = suggested.lo + estimate.lo
    yield Finding(
        f"the suggested --kv-cache-memory is {signed_gib(estimate.mid)} too small: graph memory is in it twice",
        line=worker.ledger["suggested"].line,
        expected=f"{right} ({gib(right)}): requested − consumed − activation − captured graphs − 150 MiB, graphs once",
        observed=f"{suggested.lo} ({gib(suggested.lo)}): the estimate is part of the activation, and what they took is"
        " subtracted again",
        remedy=f"--kv-cache-memory-bytes {right} is what fits the request; it gives"
        f" {signed_gib(estimate.lo)} more per rank than the suggestion{worth(worker, estimate.lo)}",
        fix={"kv_cache_memory_bytes": right},
    )
