"""What was served, and each engine's part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.report._capacity import capacity
from vlogcheck.report._layout import Paint, at_line, fold, rows
from vlogcheck.report._memory import memory

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger

__all__ = ["startup_lines"]

_MOST_SINGLE = 2
"""Engines up to which each is shown for itself; of more, those with the same figures are shown once."""


def startup_lines(context: Context, head: str, paint: Paint, width: int | None) -> list[str]:
    """Return the lines that say what was served and its ledger."""
    engines = context.observation.engines
    groups = _alike(engines)
    out = [paint("bold", head), *rows(_facts(context), width)]
    for group in groups:
        if len(engines) > 1:
            out += ["", *fold("  ", _name(context, group), width)]
        out += memory(context, group[0], paint, width)
        out += capacity(context, group[0], width, whole=group is groups[-1])
    return out


def _alike(engines: list[EngineLedger]) -> list[list[EngineLedger]]:
    if len(engines) <= _MOST_SINGLE:
        return [[engine] for engine in engines]
    groups: dict[tuple[str, ...], list[EngineLedger]] = {}
    for engine in engines:
        ledgers = [engine.ledger, *(rank.ledger for rank in engine.ranks)]
        figures = tuple(f"{term.key} {term.text()}" for ledger in ledgers for term in ledger)
        groups.setdefault(figures, []).append(engine)
    return list(groups.values())


def _name(context: Context, group: list[EngineLedger]) -> str:
    from vlogcheck.deployment import world_size

    numbers = [engine.engine.index for engine in group]
    if len(numbers) == 1:
        more = len(group[0].ranks) > world_size(group[0].engine, context.startup)
        whose = " (with ranks of the others: the log does not say whose they are)" if more else ""
        return f"engine {numbers[0]}{whose}"
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"engines {numbers[0]}–{numbers[-1]}, each (lines of engine {numbers[0]})"
    return f"engine {numbers[0]} and {len(numbers) - 1} more like it"


def _facts(context: Context) -> list[tuple[str, str]]:
    startup = context.startup
    pairs = [("model", startup.model or "unknown")]
    config = startup.config
    if config is not None:
        parts = [config.dtype or "", f"KV cache dtype {config.kv_cache_dtype}" if config.kv_cache_dtype else ""]
        parts.append(config.quantization or "")
        for label, size in (
            ("TP", config.tensor_parallel_size), ("PP", config.pipeline_parallel_size), ("DP", config.data_parallel_size),
        ):  # fmt: skip
            if size and size > 1:
                parts.append(f"{label}={size}")
        if config.max_model_len:
            parts.append(f"up to {config.max_model_len:,} tokens")
        pairs.append(("setup", ", ".join(part for part in parts if part)))
    return [*pairs, ("state", _state(context))]


def _state(context: Context) -> str:
    """Return how far it came; that the log ends says nothing of a failure, and a failure is called one."""
    from vlogcheck.failures import failure_of

    startup = context.startup
    line = startup.phases[-1].line if startup.phases else None
    since = f" ({at_line(line)})" if line else ""
    failure = failure_of(startup)
    if failure is not None:
        if failure.after_ready:
            return f"{'was ready' if startup.phases else 'served'}, and ended ({at_line(failure.line)})"
        return f"failed {failure.when} ({at_line(failure.line)})"
    if startup.usable:
        return f"ready{since}"
    if context.facts is not None and context.facts.growing:
        return f"{startup.phase}{since}"
    return f"the log ends while {startup.phase}{since}"
