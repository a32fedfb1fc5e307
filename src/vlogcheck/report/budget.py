"""The planned ledger for people and programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vlogcheck.units import format_bytes, format_gib

if TYPE_CHECKING:
    from vlogcheck.budget.answer import Budget
    from vlogcheck.budget.flags import ServeOptions

__all__ = ["render", "render_json"]

_FITS = {True: "fits", False: "does not fit", None: "cannot be said"}


def render_json(budgets: list[Budget]) -> str:
    """Return one JSON object for one model, `{"budgets": […]}` for several."""
    data = [budget.to_dict() for budget in budgets]
    return json.dumps(data[0] if len(data) == 1 else {"budgets": data}, ensure_ascii=False, indent=2)


def render(budgets: list[Budget], flags: ServeOptions) -> str:
    """Return the ledger of one model, or the table of what a card can serve for several."""
    if len(budgets) == 1:
        return "\n".join(_one(budgets[0], flags))
    return "\n".join(_table(budgets))


def _one(budget: Budget, flags: ServeOptions) -> list[str]:
    made = budget.plan
    out = [f"{budget.name}: {_FITS[budget.fits]}"]
    if made.unknown is not None:
        out.append(f"  not modelled: {made.unknown.reason}")
        out += [f"  can still be checked in a log: {what}" for what in made.unknown.checkable]
        return out
    rows = [(term.label, term.text(), _note(term.formula, term.origin, term.status)) for term in budget.ledger]
    out += _align(rows)
    out += ["", "  layers"]
    out += _align(
        [
            (
                f"{item.count} × {item.spec.kind}",
                f"{format_bytes(item.spec.page_size_bytes)} a page",
                f"{item.spec.block_size:,} tokens a block"
                + (f", window {item.spec.window:,}" if item.spec.window else ""),
            )
            for item in made.specs
        ]
    )
    if len(made.groups) > 1:
        out.append(f"  {len(made.groups)} groups share the pool; one block holds a page of every layer of the largest")
    per_request = made.blocks_per_request()
    if per_request and made.max_model_len:
        out.append(f"  one request of {made.max_model_len:,} tokens takes {per_request:,} blocks")
    if made.error is not None:
        out += ["", f"  vLLM would refuse: {made.error.message}"]
    out += ["", *_answers(budget)]
    if flags.unused:
        out.append(f"  flags without effect on memory here: {', '.join(map(str, flags.unused))}")
    notes = budget.to_dict()["assumptions"] + budget.ledger.assumptions
    if notes:
        out += ["", "  assumed"]
        out += [f"    {note}" for note in dict.fromkeys(notes)]
    return out


def _answers(budget: Budget) -> list[str]:
    rows: list[tuple[str, str, str]] = []
    if budget.context and budget.concurrency_at_context is not None:
        rows.append((f"requests of {budget.context:,} tokens at once", f"{float(budget.concurrency_at_context):,.2f}", ""))
    if budget.concurrency is not None:
        largest = "none" if budget.largest_context is None else f"{budget.largest_context:,} tokens"
        rows.append((f"longest request of which {budget.concurrency:g} fit", largest, "--max-model-len"))
        if budget.needed_bytes is not None and budget.context:
            what = f"KV cache for {budget.concurrency:g} × {budget.context:,} tokens"
            rows.append((what, format_gib(budget.needed_bytes), "per rank"))
    if "total" in budget.ledger:
        least = budget.smallest_utilization
        rows.append(
            ("smallest utilization that fits", "none" if least is None else f"{float(least):.2f}", _advice(least))
        )
        degree = budget.smallest_tensor_parallel
        rows.append(("fewest ranks per layer that fit", "none up to 16" if degree is None else f"TP={degree}", ""))
    return _align(rows)


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


def _note(formula: str, origin: str, status: str) -> str:
    parts = [part for part in (formula, origin) if part]
    return f"{status}: {', '.join(parts)}" if parts else status


def _align(rows: list[tuple[str, str, str]]) -> list[str]:
    if not rows:
        return []
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    return [f"  {a:<{first}}  {b:>{second}}  {c}".rstrip() for a, b, c in rows]


def _table(budgets: list[Budget]) -> list[str]:
    header = ("model", "weights/rank", "KV cache/rank", "tokens", "concurrency", "", "verdict")
    rows = [header]
    for budget in budgets:
        weights = [w.allocated_bytes for w in budget.weights if not w.unknown]
        pool = budget.ledger["kv_cache"]
        made = budget.plan
        at = f"at {made.max_model_len:,}" if made.max_model_len else ""
        rows.append(
            (
                budget.name,
                format_gib(max(weights)) if weights else "unknown",
                pool.text(),
                f"{made.kv_cache_tokens:,}" if made.kv_cache_tokens is not None else "–",
                f"{made.max_concurrency_text}x" if made.max_concurrency_text else "–",
                at,
                _FITS[budget.fits],
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    out = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{widths[i]}}" for i, cell in enumerate(row[1:5], 1)]
        cells += [f"{row[5]:<{widths[5]}}", row[6]]
        out.append("  ".join(cells).rstrip())
    return out
