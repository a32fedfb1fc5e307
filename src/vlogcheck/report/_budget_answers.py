"""What a planned ledger answers: how much fits at once, and with which utilization and parallel size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vlogcheck.units import format_gib

if TYPE_CHECKING:
    from vlogcheck.budget.answer import Budget
    from vlogcheck.budget.flags import ServeOptions

__all__ = ["answers", "requests_held"]


def requests_held(budget: Budget) -> str:
    """Return how many requests of the context fit, marked where it is not exact."""
    held = budget.concurrency_at_context
    about = "≈ " if not budget.ledger["kv_cache"].exact else ""
    return f"{about}{float(held):,.2f}" if held is not None else "–"


def answers(budget: Budget, flags: ServeOptions) -> list[tuple[str, str, str]]:
    """Return what is asked, its answer and a note, one row each."""
    rows: list[tuple[str, str, str]] = []
    if budget.too_long or not budget.plan.specs:
        return []
    if budget.context and budget.concurrency_at_context is not None:
        rows.append((f"requests of {budget.context:,} tokens at once", requests_held(budget), ""))
    if (scheduled := _scheduled(budget, flags)) is not None:
        rows.append(scheduled)
    if budget.concurrency is not None:
        largest = "none" if budget.largest_context is None else f"{budget.largest_context:,} tokens"
        rows.append((f"longest request of which {budget.concurrency:,g} fit", largest, "--max-model-len"))
        if budget.needed_bytes is not None and budget.context:
            what = f"KV cache for {budget.concurrency:,g} × {budget.context:,} tokens"
            rows.append((what, format_gib(budget.needed_bytes), "per rank"))
    if "total" in budget.ledger and budget.ledger["weights"].known:
        least = budget.smallest_utilization
        rows.append(
            ("smallest utilization that fits", "none" if least is None else f"{float(least):.2f}", _advice(least))
        )
        degree = budget.smallest_tensor_parallel
        rows.append(
            ("smallest tensor-parallel size that fits", "none up to 16" if degree is None else f"TP={degree}", "")
        )
    return rows


def _scheduled(budget: Budget, flags: ServeOptions) -> tuple[str, str, str] | None:
    """Return how many requests may run at once whatever the KV cache holds."""
    settings = budget.plan.settings
    if settings is None:
        return None
    most = settings.max_num_seqs
    note = "--max-num-seqs" if flags.max_num_seqs else "the default of --max-num-seqs for this release and card"
    if budget.concurrency is not None and flags.data_parallel_size == 1 and budget.concurrency > most:
        note = f"{note}: --max-num-seqs {math.ceil(budget.concurrency)} lets all of them run"
    return ("requests the scheduler runs at once", f"{most:,}", note)


def _advice(share: object) -> str:
    if share is None:
        return "more cards, or quantisation"
    value = float(str(float(share)))  # type: ignore[arg-type]
    if value >= 1:
        return "1.0 is never right: more cards, or quantisation"
    if value > 0.95:
        return "leaves no margin for the run-time peak: more cards, or quantisation"
    if value > 0.92:
        return "accepts that a long prompt can end the process: only for a known short load"
    return ""
