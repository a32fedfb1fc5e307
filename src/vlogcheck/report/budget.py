"""The planned ledger for people and programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vlogcheck.report._budget_answers import answers, requests_held
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
    found = answers(budget, flags)
    out += ["", *_align(found, width)] if found else []
    return out + _notes([budget], flags, width)


def _notes(budgets: list[Budget], flags: ServeOptions, width: int | None) -> list[str]:
    """Return the advice and what was assumed, each thing once, with the models it is about where not all share it."""
    about: dict[str, list[str]] = {}
    for budget in budgets:
        for note in dict.fromkeys([*budget.to_dict()["assumptions"], *budget.ledger.assumptions]):
            about.setdefault(note, []).append(budget.name)
    out = []
    if advice := list(dict.fromkeys(line for budget in budgets for line in budget.advice)):
        out += [
            "",
            "  advice: --gpu-memory-utilization",
            *(row for line in advice for row in fold("    ", line, width, hang=6)),
        ]
    out += ["", "  assumed"] if about else []
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
    holds = f"the KV cache holds {requests_held(budget)} requests of {budget.context:,} tokens"
    return holds if budget.concurrency is None else f"{holds}, {budget.concurrency:,g} asked for"


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
