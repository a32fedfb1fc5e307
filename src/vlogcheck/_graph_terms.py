"""The terms of captured graphs: what they were estimated to take, and what they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._rank_lines import RankLines, printed_range
from vlogcheck.records import GraphCapture, GraphEstimate, GraphPool, GraphUtilization

if TYPE_CHECKING:
    from fractions import Fraction

    from vlogcheck.device_rule import DeviceRule
    from vlogcheck.ledger import Ledger, Number
    from vlogcheck.records import MemoryUse

__all__ = ["add_graphs"]


def add_graphs(ledger: Ledger, lines: RankLines, use: MemoryUse | None, rule: DeviceRule) -> None:
    """Add what the graphs were estimated to take, and what they took."""
    pool, capture = lines.last(GraphPool), lines.last(GraphCapture)
    if pool is not None:
        ledger.printed("graphs", "captured graphs", pool.actual_gib, pool.line)
    elif use is not None:
        ledger.printed("graphs", "captured graphs", use.graphs_gib, use.line)
    elif capture is not None:
        ledger.printed("graphs", "captured graphs", capture.gib, capture.line)
    if rule.graphs == "none":
        ledger.exact("graph_estimate", "graph estimate", "bytes", 0, "derived", formula="no graphs are captured")
        return
    bounds: list[tuple[Number, Number, int | None, str]] = []
    if (estimate := lines.last(GraphEstimate)) is not None:
        bounds.append((*estimate.gib.bytes, estimate.line, ""))
    if pool is not None:
        bounds.append((*pool.estimated_gib.bytes, pool.line, ""))
    said, total = lines.last(GraphUtilization), ledger["total"]
    if said is not None and total.lo is not None and total.hi is not None:
        if said.equivalent is not None:
            low, high = _difference(said.current, said.equivalent)
        else:
            low, high = _difference(said.suggested, said.current)
        bounds.append(
            (min(low * total.lo, low * total.hi), high * total.hi, said.line, "(utilization − equivalent) × total")
        )
    if not bounds:
        return
    lo, hi = max(b[0] for b in bounds), min(b[1] for b in bounds)
    best = min(bounds, key=lambda b: b[1] - b[0])
    if lo > hi:  # lines of two profile runs: the sharpest one counts
        lo, hi = best[0], best[1]
    ledger.between(
        "graph_estimate", "graph estimate", "bytes", (lo, hi), "derived" if best[3] else "printed", formula=best[3],
        line=best[2],
    )  # fmt: skip


def _difference(high: float, low: float) -> tuple[Fraction, Fraction]:
    """Return the bounds of the difference of two utilizations printed with four decimals."""
    above, below = printed_range(high, 4), printed_range(low, 4)
    return above[0] - below[1], above[1] - below[0]
