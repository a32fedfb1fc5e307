"""Each rank's memory: one row per term, one column per rank, a bar per rank."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vlogcheck.ledger import Ledger
from vlogcheck.registry import Missing
from vlogcheck.report._cells import cell, middle, note
from vlogcheck.report._layout import Paint, align, fold
from vlogcheck.units import format_gib

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger, RankLedger

__all__ = ["memory"]

_BAR = 40
_MOST_SINGLE = 4
"""Ranks up to which each has a column of its own; of more, those with the same figures share one."""
_MOST_RANKS = 8

_TERMS = (
    "total", "utilization", "requested", "weights", "consumed", "non_torch", "activation", "graph_estimate", "rest",
    "kv_cache", "unexplained", "graphs",
)  # fmt: skip


def memory(context: Context, engine: EngineLedger, paint: Paint, width: int | None) -> list[str]:
    """Return one row per term, one column per rank, and a bar per rank."""
    keys = _shown_terms(context)
    ranks = [rank._replace(ledger=_with_pool(context, engine, rank)) for rank in engine.ranks]
    ranks = [rank for rank in ranks if any(rank.ledger[key].known for key in keys)]
    if not ranks:
        return []
    groups = _alike(ranks, keys)
    names = _group_names(groups, ranks)[:_MOST_RANKS]
    shown = [group[0] for group in groups[:_MOST_RANKS]]
    table: list[list[str]] = []
    for key in keys:
        terms = [rank.ledger[key] for rank in shown]
        known = [term for term in terms if term.known]
        if known:
            table.append([known[0].label, *(cell(term) for term in terms), note(known)])
    header = ["", *names, ""]
    widths = [max(len(row[i]) for row in [header, *table]) for i in range(len(shown) + 2)]
    out = [""]
    for first, last in _blocks(widths[:-1], width):
        part = [0, *range(first, last)]
        some = [widths[i] for i in part]
        if len(ranks) > 1:
            out.append("  " + align([header[i] for i in part], some).rstrip())
        for row in table:
            lead = "  " + align([row[i] for i in part], some)
            lines = fold(lead + "   ", row[-1] if last > len(shown) else "", width)
            out += [lines[0][: len(lead)] + paint("dim", lines[0][len(lead) :].rstrip())]
            out += [paint("dim", line) for line in lines[1:]]
    if len(groups) > len(shown):
        out.append(f"  … and {sum(map(len, groups[len(shown) :]))} more ranks")
    return out + _bars(shown, names, paint, width)


def _with_pool(context: Context, engine: EngineLedger, rank: RankLedger) -> Ledger:
    """Return a rank's ledger, with the KV cache by tokens × the configuration's bytes where the log prints none.

    Where all layers are alike, the ranks hold the same and the log gives the tokens; what is left of the request is the rest.
    """
    ledger, tokens, size = rank.ledger, engine.ledger["tokens"], engine.ledger["block_size"].interval
    if "kv_cache" in ledger or context.model is None or not tokens.exact or size is None or tokens.lo is None:
        return ledger
    try:
        expected = context.model.expected(context, engine)
    except Missing:
        return ledger
    each = expected.ledger["kv_bytes_per_token"]
    if not each.exact or each.lo is None or expected.setup.options.pipeline_parallel_size > 1:
        return ledger
    pool = (tokens.lo * each.lo, (tokens.lo + size.hi) * each.lo - 1)  # up to a block of the memory is left over
    filled = Ledger(ledger.name)
    for term in ledger:
        filled.add(term)
    formula = f"tokens × {each.text().removesuffix(' per token')} by configuration"
    filled.between("kv_cache", "KV cache", "bytes", pool, "derived", formula=formula)
    requested, weights = ledger["requested"].interval, ledger["weights"].interval
    if requested is not None and weights is not None and not rank.rule.pinned and "rest" not in ledger:
        bounds = (requested.lo - weights.hi - pool[1], requested.hi - weights.lo - pool[0])
        formula = "requested − weights − KV cache"
        filled.between("rest", "the rest, not printed", "bytes", bounds, "derived", formula=formula)
    return filled


def _shown_terms(context: Context) -> tuple[str, ...]:
    from vlogcheck.deployment import platform_of

    if platform_of(context.startup) != "cpu":
        return _TERMS
    # Nothing is captured on CPUs, and a share that nobody stated decides nothing where the size is fixed in bytes.
    stated = any(rank.ledger["utilization"].status == "printed" for rank in context.observation.ranks)
    return tuple(k for k in _TERMS if k != "graph_estimate" and (stated or k != "utilization"))


def _blocks(widths: list[int], width: int | None) -> list[tuple[int, int]]:
    """Return which columns stand side by side: all of them, or as many as the terminal holds."""
    count = len(widths)
    if width is None or sum(widths) + 2 * count <= width:
        return [(1, count)]
    room = max((width - 2 - widths[0]) // (2 + max(widths[1:])), 1)
    return [(first, min(first + room, count)) for first in range(1, count, room)]


def _alike(ranks: list[RankLedger], keys: tuple[str, ...]) -> list[list[RankLedger]]:
    """Return the ranks as they are shown: each for itself, or those of equal figures together where there are many."""
    if len(ranks) <= _MOST_SINGLE:
        return [[rank] for rank in ranks]
    groups: dict[tuple[str, ...], list[RankLedger]] = {}
    for rank in ranks:
        groups.setdefault(tuple(cell(rank.ledger[key]) for key in keys), []).append(rank)
    return list(groups.values())


def _group_names(groups: list[list[RankLedger]], ranks: list[RankLedger]) -> list[str]:
    """Return a name for each group: `TP0–TP7` where its ranks follow one another, else its first and how many more."""
    named = dict(zip(map(id, ranks), _names(ranks), strict=True))
    position = {id(rank): at for at, rank in enumerate(ranks)}
    out = []
    for group in groups:
        first, last = group[0], group[-1]
        name = named[id(first)]
        if len(group) > 1:
            together = position[id(last)] - position[id(first)] == len(group) - 1
            until = named[id(last)].removeprefix("rank ")
            name = f"{_plural(name)}–{until}" if together else f"{name} and {len(group) - 1} more"
        out.append(name)
    return out


def _plural(name: str) -> str:
    return f"ranks {name.removeprefix('rank ')}" if name.startswith("rank ") else name


def _names(ranks: list[RankLedger]) -> list[str]:
    """Return what to call the ranks: short, and no two alike."""
    names = []
    for rank in ranks:
        name, pid = rank.rank.name, rank.rank.pid
        names.append(f"pid {pid}" if pid is not None and name == f"{rank.rank.process} {pid}" else name)
    often = Counter(names)
    return [
        f"{name} (pid {rank.rank.pid})" if often[name] > 1 and rank.rank.pid is not None else name
        for name, rank in zip(names, ranks, strict=True)
    ]


def _parts(ledger: Ledger) -> list[tuple[str, str, int]]:
    return [
        ("W", "weights", middle(ledger, "weights") or middle(ledger, "consumed")),
        ("a", "activation and non-torch", middle(ledger, "activation") + middle(ledger, "non_torch")),
        ("g", "graphs", middle(ledger, "graphs")),
        ("K", "KV cache", middle(ledger, "kv_cache")),
    ]


def _bars(ranks: list[RankLedger], names: list[str], paint: Paint, width: int | None) -> list[str]:
    """Return a bar for each rank of which more than one term is known."""
    widest = max(map(len, names))
    length = _BAR if width is None else max(min(_BAR, width - widest - 22), 10)
    marks: dict[str, str] = {}
    out = []
    for rank, name in zip(ranks, names, strict=True):
        parts = [part for part in _parts(rank.ledger) if part[2]]
        used = sum(size for _, _, size in parts)
        total = middle(rank.ledger, "total")
        if not middle(rank.ledger, "kv_cache") or (parts[0][0] != "W" and not total):
            continue  # without the weights it would be a bar of the pool alone
        scale = max(total, used)
        bar = "".join(mark * max(round(length * size / scale), 1) for mark, _, size in parts)
        out.append(
            f"  {name:<{widest}} [{bar[:length].ljust(length, '.')}] {format_gib(total or used)}{'' if total else ' known'}"
        )
        marks |= {mark: label for mark, label, _ in parts} | ({".": "the rest"} if total else {})
    if out:
        legend = "  ".join(f"{mark} {marks[mark]}" for mark in "WagK." if mark in marks)
        out += [paint("dim", line) for line in fold(f"  {'':<{widest}} ", legend, width)]
    return out
