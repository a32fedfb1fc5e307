"""VL116: memory of other processes is charged to this server."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers, gib, kept
from vlogcheck.context import Context
from vlogcheck.registry import Finding, Missing, Severity, check


@check("memory of other processes is charged to this server", Severity.WARNING)
def others_charged(workers: DeviceWorkers, context: Context) -> Iterator[Finding]:
    """Flag others on the card in the releases that charge them (V1 until 0.9.0.1, 0.6.4, 0.2.7 to 0.3.0)."""
    charged = [worker for worker in workers if worker.rank.rule.others_charged]
    if not charged:
        raise Missing("this release does not charge other processes' memory")
    seen = False
    for worker in charged:
        ledger = worker.ledger
        initial, weights, margin = ledger["initial"].interval, ledger["weights"].interval, kept(ledger)
        if initial is None or weights is None or margin is None:
            continue
        seen = True
        others = initial.minus(weights)
        if others.lo <= margin:
            continue
        total, share = ledger["total"].interval, ledger["utilization"].lo
        remedy = f"free the card, or upgrade to 0.6.5: {gib(others.mid)} per rank come back to the KV cache"
        fix: dict[str, int | float | str] = {}
        if total is not None and share is not None:
            needed = float(share) + others.mid / total.mid
            if needed < 1:
                remedy += f"; on this release --gpu-memory-utilization {needed:.2f} gives the KV cache that was meant"
                fix = {"gpu_memory_utilization": round(needed, 2)}
        yield Finding(
            f"{gib(others.mid)} of other processes are subtracted from this server's KV cache"
            + workers.where(worker, lambda other: other.rank.rule.others_charged),
            line=ledger["initial"].line,
            expected=f"{weights.mid / 2**30:.2f} GiB in use after loading: the weights and a context",
            observed=f"{gib(initial.mid)} in use",
            remedy=remedy,
            fix=fix,
        )
        return
    if seen:
        return
    if not context.expectation.shared_card:
        raise Missing("the log does not print what others hold: give --shared-card where they do")
    worker = charged[0]
    line, weights = worker.ledger["kv_cache"].line or worker.ledger["weights"].line, worker.ledger["weights"].interval
    yield Finding(
        "in this release the memory of other processes on the card is subtracted from this server's KV cache",
        line=line,
        expected="a share of the card for this server alone",
        observed=f"vLLM {context.startup.version}: everything in use on the card is charged",
        remedy="--gpu-memory-utilization must be (what the others hold + what this server needs) ÷ total"
        + (f" (weights of {gib(weights.mid)} and the KV cache)" if weights is not None else "")
        + ", or upgrade to 0.9.1, which only charges what this server takes",
    )
