"""VL109: the graphs took more than was kept back for them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import VLLM_BUFFER, DeviceWorkers, Worker, floor_hundredths, gib, kept
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the graphs took more than was kept back for them", Severity.WARNING)
def graph_estimate_too_low(workers: DeviceWorkers) -> Iterator[Finding]:
    """Flag captured graphs that exceed the estimate by more than vLLM's own margin of 150 MiB."""
    counted = [w for w in workers if w.rank.rule.graphs in ("separate", "inside")]
    if not counted:
        raise Missing("no graph memory is counted in the budget")
    worker = max(counted, key=_excess)
    estimate, taken = worker.ledger["graph_estimate"].interval, worker.ledger["graphs"].interval
    if estimate is None or taken is None:
        raise Missing("the log does not print both the estimate and what the graphs took")
    if _excess(worker) <= VLLM_BUFFER:
        return
    excess = taken.minus(estimate)
    total, requested = worker.ledger["total"].interval, worker.ledger["requested"].interval
    free = worker.ledger["free"].interval
    left, margin = "", kept(worker.ledger)
    remedy = (
        f"leave {gib(excess.hi)} more of the card free than its reserve (--total-memory says whether it is), or capture fewer"
        " sizes (--max-cudagraph-capture-size)"
    )
    fix: dict[str, int | float | str] = {}
    if total is not None and requested is not None:
        outside = (free or total).minus(requested)
        if margin is not None and outside.lo >= excess.hi + margin:
            return  # there is room for the excess, and the reserve besides
        left = f"; {gib(outside.mid - excess.mid)} of the card are left for run-time peaks"
        fits = floor_hundredths(
            min(
                Fraction(requested.lo - excess.hi, total.hi),
                Fraction((free or total).lo - excess.hi - (margin or 0), total.hi),
            )
        )
        remedy = (
            f"--gpu-memory-utilization {fits:g} keeps the whole within the request and the reserve; or capture fewer sizes"
            " (--max-cudagraph-capture-size)"
        )
        fix["gpu_memory_utilization"] = fits
    yield Finding(
        f"the captured graphs took {gib(excess.mid)} more than the estimate in the budget"
        + workers.where(worker, lambda other: _excess(other) > VLLM_BUFFER),
        line=worker.ledger["graphs"].line,
        expected=f"{gib(estimate.mid)}, the estimate",
        observed=f"{gib(taken.mid)} taken{left}",
        remedy=remedy,
        explanation="the server holds more than total × utilization: the excess is missing for run-time peaks",
        fix=fix,
    )


def _excess(worker: Worker) -> int:
    estimate, taken = worker.ledger["graph_estimate"].interval, worker.ledger["graphs"].interval
    return -1 if estimate is None or taken is None else taken.lo - estimate.hi
