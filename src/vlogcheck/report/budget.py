"""The planned ledger for people and programs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from vlogcheck.report._layout import fold
from vlogcheck.units import format_bytes, format_gib

if TYPE_CHECKING:
    from vlogcheck.budget.answer import Budget
    from vlogcheck.budget.flags import ServeOptions

__all__ = ["render", "render_json"]

_FITS = {True: "fits", False: "does not fit", None: "cannot be said"}
_WEIGHED = ("mm_encoder_tp_mode", "language_model_only", "limit_mm_per_prompt", "eplb_config", "num_redundant_experts")
"""Flags that are no options of the KV cache and yet change the weights."""


def render_json(budgets: list[Budget]) -> str:
    """Return one JSON object for one model, `{"budgets": […]}` for several."""
    data = [budget.to_dict() for budget in budgets]
    return json.dumps(data[0] if len(data) == 1 else {"budgets": data}, ensure_ascii=False, indent=2)


def render(budgets: list[Budget], flags: ServeOptions, *, width: int | None = None) -> str:
    """Return the ledger of one model, or the table of what a card can serve for several; folded at `width` columns."""
    if len(budgets) == 1:
        return "\n".join(_one(budgets[0], flags, width))
    return "\n".join([*_table(budgets, width), *_notes(budgets, flags, width)])


def _one(budget: Budget, flags: ServeOptions, width: int | None) -> list[str]:
    made = budget.plan
    reason = _reason(budget)
    bound = budget.fits and budget.ledger["other"].status == "assumed"
    aside = " (nothing set aside for activation and graphs: give --other-memory)" if bound else ""
    out = fold("", f"{budget.name}: {_FITS[budget.fits]}" + (f": {reason}" if reason else "") + aside, width, hang=2)
    if made.unknown is not None:
        out += [f"  can still be checked in a log: {what}" for what in made.unknown.checkable]
        return out
    rows = [(term.label, term.text(), _note(term.formula, term.origin, term.status)) for term in budget.ledger]
    out += _align(rows, width)
    layers = _align(
        [
            (
                f"{item.count} × {item.spec.kind}",
                f"{format_bytes(item.spec.page_size_bytes)} a page",
                f"{item.spec.block_size:,} tokens a block"
                + (f", window {item.spec.window:,}" if item.spec.window else ""),
            )
            for item in made.specs
        ],
        width,
    )
    out += ["", "  layers", *layers] if layers else []
    if len(made.groups) > 1:
        out.append(f"  {len(made.groups)} groups share the pool; one block holds a page of every layer of the largest")
    per_request = made.blocks_per_request()
    if per_request and made.max_model_len:
        out.append(f"  one request of {made.max_model_len:,} tokens takes {per_request:,} blocks")
    if made.error is not None:
        out += ["", *fold("  ", f"vLLM would refuse: {made.error.message}", width, hang=4)]
    answers = _answers(budget, flags)
    out += ["", *_align(answers, width)] if answers else []
    return out + _notes([budget], flags, width)


def _notes(budgets: list[Budget], flags: ServeOptions, width: int | None) -> list[str]:
    """Return what was assumed, each thing once, with the models it is about where not all share it."""
    about: dict[str, list[str]] = {}
    for budget in budgets:
        for note in dict.fromkeys([*budget.to_dict()["assumptions"], *budget.ledger.assumptions]):
            about.setdefault(note, []).append(budget.name)
    out = ["", "  assumed"] if about else []
    for note, names in about.items():
        about_all = len(names) == len(budgets)
        out += fold("    ", note if about_all else f"{', '.join(names)}: {note}", width, hang=6)
    if ignored := [name for name in flags.unused if name not in _WEIGHED]:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in ignored)
        out += ["", *fold("  ", f"flags taken to be without effect on memory: {named}", width, hang=4)]
    return out


def _reason(budget: Budget) -> str:
    """Return why it does not fit or cannot be said, in a few words."""
    made = budget.plan
    if budget.fits is None:
        if made.unknown is not None:
            return f"not modelled: {made.unknown.reason}"
        if "requested" in budget.ledger and not budget.ledger["weights"].known:
            return "the weights are not known from the configuration"
        return "give --total-memory or --available-kv-memory" if made.num_blocks is None else ""
    if made.error is None:
        return _asked(budget)
    error = made.error
    if error.needed_gib is not None and error.available_gib is not None:
        return (
            f"one request of {made.max_model_len:,} tokens needs {float(error.needed_gib):.2f} GiB of KV cache,"
            f" there are {float(error.available_gib):.2f} GiB"
        )
    return "no memory is left for the KV cache" if error.kind == "no_kv_cache_memory" else ""


def _asked(budget: Budget) -> str:
    """Return how what was asked for compares with what there is room for."""
    made, held = budget.plan, budget.concurrency_at_context
    if budget.too_long:
        return f"requests of {budget.context:,} tokens are refused, max_model_len is {made.max_model_len:,}"
    if not made.specs:
        return "it has no KV cache: requests are limited by max_num_seqs and the step's tokens alone"
    if held is None:
        return ""
    holds = f"the KV cache holds {_held(budget)} requests of {budget.context:,} tokens"
    return holds if budget.concurrency is None else f"{holds}, {budget.concurrency:,g} asked for"


def _held(budget: Budget) -> str:
    held = budget.concurrency_at_context
    about = "≈ " if not budget.ledger["kv_cache"].exact else ""
    return f"{about}{float(held):,.2f}" if held is not None else "–"


def _answers(budget: Budget, flags: ServeOptions) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    if budget.too_long or not budget.plan.specs:
        return []
    if budget.context and budget.concurrency_at_context is not None:
        rows.append((f"requests of {budget.context:,} tokens at once", _held(budget), ""))
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


def _note(formula: str, origin: str, status: str) -> str:
    parts = [part for part in (formula, origin) if part]
    return f"{status}: {', '.join(parts)}" if parts else status


def _align(rows: list[tuple[str, str, str]], width: int | None) -> list[str]:
    if not rows:
        return []
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    return [line.rstrip() for a, b, c in rows for line in fold(f"  {a:<{first}}  {b:>{second}}  ", c, width)]


def _table(budgets: list[Budget], width: int | None) -> list[str]:
    """One row per model: what a rank holds, the requests that run at once, and with what it would fit."""
    header = ("model", "weights/rank", "KV cache/rank", "tokens", "requests at once", "fits with", "verdict")
    rows = [header]
    for budget in budgets:
        weights = [w.allocated_bytes for w in budget.weights if not w.unknown]
        made = budget.plan
        held = None if budget.too_long else budget.concurrency_at_context
        degree = budget.smallest_tensor_parallel
        asked = made.specs and not budget.too_long
        least = "none up to TP=16" if budget.ledger["weights"].known and asked else "–"
        reason = _reason(budget) if not budget.fits else ""
        rows.append(
            (
                budget.name,
                format_gib(max(weights)) if weights else "unknown",
                budget.ledger["kv_cache"].text(),
                f"{made.kv_cache_tokens:,}" if made.kv_cache_tokens is not None else "–",
                "–" if held is None or made.error is not None else f"{float(held):,.2f} × {budget.context:,}",
                least if degree is None or not asked else f"TP={degree}",
                _FITS[budget.fits] + (f": {reason}" if reason else ""),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    out = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}", *(f"{cell:>{widths[i]}}" for i, cell in enumerate(row[1:5], 1))]
        lead = "  ".join([*cells, f"{row[5]:<{widths[5]}}", ""])
        out += [line.rstrip() for line in fold(lead, row[6], width)]
    return out
