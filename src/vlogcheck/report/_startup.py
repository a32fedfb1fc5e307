"""What was served, each rank's memory and each engine's capacity."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck.ledger import Ledger
from vlogcheck.registry import Missing
from vlogcheck.report._layout import Paint, align, fold, rows
from vlogcheck.units import GIB, format_bytes, format_gib

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.ledger import Term
    from vlogcheck.observed import EngineLedger, RankLedger

__all__ = ["startup_lines"]

_BAR = 40
_MOST_RANKS = 8


def startup_lines(context: Context, head: str, paint: Paint, width: int | None) -> list[str]:
    """Return the lines that say what was served and its ledger."""
    engines = context.observation.engines
    out = [paint("bold", head), *rows(_facts(context), width)]
    for engine in engines:
        if len(engines) > 1:
            out += ["", f"  engine {engine.engine.index}"]
        out += _memory(context, engine, paint, width)
        out += _capacity(context, engine, width)
    return out


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
    since = f" (line {line})" if line else ""
    failure = failure_of(startup)
    if failure is not None:
        when = "after it was ready" if failure.after_ready else f"while {failure.phase}"
        return f"failed {when} (line {failure.line})"
    if startup.usable:
        return f"ready{since}"
    if context.facts is not None and context.facts.growing:
        return f"{startup.phase}{since}"
    return f"the log ends while {startup.phase}{since}"


_TERMS = (
    "total", "utilization", "requested", "weights", "consumed", "non_torch", "activation", "graph_estimate", "rest",
    "kv_cache", "unexplained", "graphs",
)  # fmt: skip


def _memory(context: Context, engine: EngineLedger, paint: Paint, width: int | None) -> list[str]:
    """Return one row per term, one column per rank, and a bar per rank."""
    keys = _shown_terms(context)
    ranks = [rank._replace(ledger=_with_pool(context, engine, rank)) for rank in engine.ranks]
    ranks = [rank for rank in ranks if any(rank.ledger[key].known for key in keys)]
    if not ranks:
        return []
    shown = ranks[:_MOST_RANKS]
    names = _names(shown)
    table: list[list[str]] = []
    for key in keys:
        terms = [rank.ledger[key] for rank in shown]
        known = [term for term in terms if term.known]
        if known:
            table.append([known[0].label, *(_cell(term) for term in terms), _note(known)])
    header = ["", *names, ""]
    widths = [max(len(row[i]) for row in [header, *table]) for i in range(len(shown) + 2)]
    out = [""]
    for first, last in _blocks(widths[:-1], width):
        part = [0, *range(first, last)]
        some = [widths[i] for i in part]
        if len(shown) > 1:
            out.append("  " + align([header[i] for i in part], some).rstrip())
        for row in table:
            lead = "  " + align([row[i] for i in part], some)
            lines = fold(lead + "   ", row[-1] if last > len(shown) else "", width)
            out += [lines[0][: len(lead)] + paint("dim", lines[0][len(lead) :].rstrip())]
            out += [paint("dim", line) for line in lines[1:]]
    if len(ranks) > len(shown):
        out.append(f"  … and {len(ranks) - len(shown)} more ranks")
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


def _note(terms: list[Term]) -> str:
    """Return where a row's figures come from."""
    lines = [term.line for term in terms if term.line is not None]
    term = terms[0]
    said = term.origin or term.formula
    if term.status in ("assumed", "derived"):
        return f"{term.status}: {said}" + (f" (line {min(lines)})" if lines else "")
    if term.key == "kv_cache" and term.origin and lines:
        return f"line {min(lines)}: {term.origin}"
    return f"line {min(lines)}" if lines else said


def _cell(term: Term) -> str:
    if term.lo is None or term.hi is None:
        return "–"
    if term.key in ("unexplained", "graph_estimate") and term.status == "derived" and term.lo <= 0 <= term.hi:
        # Within the rounding of the printed terms it is nothing; an estimate that is not printed may be a little.
        return "none" if term.key == "unexplained" or term.hi == 0 else f"≤ {format_gib(int(term.hi))}"
    if term.unit == "bytes" and term.exact and 0 < term.lo < GIB:
        return format_bytes(int(term.lo))  # a size that was given: two decimals of GiB would blur it
    return term.text()


def _parts(ledger: Ledger) -> list[tuple[str, str, int]]:
    return [
        ("W", "weights", _middle(ledger, "weights") or _middle(ledger, "consumed")),
        ("a", "activation and non-torch", _middle(ledger, "activation") + _middle(ledger, "non_torch")),
        ("g", "graphs", _middle(ledger, "graphs")),
        ("K", "KV cache", _middle(ledger, "kv_cache")),
    ]


def _middle(ledger: Ledger, key: str) -> int:
    interval = ledger[key].interval
    return max(interval.mid, 0) if interval is not None else 0


def _bars(ranks: list[RankLedger], names: list[str], paint: Paint, width: int | None) -> list[str]:
    """Return a bar for each rank of which more than one term is known."""
    widest = max(map(len, names))
    length = _BAR if width is None else max(min(_BAR, width - widest - 22), 10)
    marks: dict[str, str] = {}
    out = []
    for rank, name in zip(ranks, names, strict=True):
        parts = [part for part in _parts(rank.ledger) if part[2]]
        used = sum(size for _, _, size in parts)
        total = _middle(rank.ledger, "total")
        if not _middle(rank.ledger, "kv_cache") or (len(parts) < 2 and not total):
            continue
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


def _capacity(context: Context, engine: EngineLedger, width: int | None) -> list[str]:
    ledger = engine.ledger
    if not any(ledger[key].known for key in ("blocks", "tokens", "concurrency")):
        return []  # a block size alone is no capacity
    pairs = _pool_memory(context, engine)
    for key in ("blocks", "block_size", "tokens", "kv_bytes_per_token", "concurrency", "max_num_seqs"):
        term = ledger[key]
        if not term.known:
            continue
        value = term.text()
        if key == "concurrency" and (length := ledger["max_model_len"].interval):
            value += f" at {length.lo:,} tokens per request"
        if term.line is not None and term.status == "printed":
            value += f" (line {term.line})"
        elif term.status in ("assumed", "derived"):
            value += f" ({term.status}: {term.origin or term.formula})"
        elif term.origin:
            value += f" ({term.origin})"
        pairs.append((term.label, value))
    pairs += _expected(context, engine)
    curve: list[str] = []
    if engine is context.observation.engines[-1]:
        pairs += _ceiling(context)
        points, unknown = _curve(context)
        pairs += [("at other lengths", unknown)] if unknown else []
        curve = points
    return ["", *rows(pairs, width), *curve]


def _pool_memory(context: Context, engine: EngineLedger) -> list[tuple[str, str]]:
    """Return the memory of the KV cache where no rank's ledger shows it."""
    from vlogcheck.deployment import platform_of

    if any("kv_cache" in rank.ledger for rank in engine.ranks):
        return []
    available = engine.available
    if available is not None:
        where = f"line {available.line}: " if available.line is not None else ""
        pool = available.tightest
        size = format_bytes(pool.lo) if pool.lo == pool.hi and 0 < pool.lo < GIB else format_gib(pool.mid)
        return [("KV cache memory per rank", f"{size} ({where}{available.origin})")]
    if platform_of(context.startup) == "cpu":
        return [("KV cache memory", "not printed: VLLM_CPU_KVCACHE_SPACE decides it")]
    return []


def _expected(context: Context, engine: EngineLedger) -> list[tuple[str, str]]:
    """Return the tokens the configuration gives, where there is one."""
    if context.model is None:
        return []
    try:
        expected = context.model.expected(context, engine)
    except Missing as missing:
        return [("by configuration", str(missing))]
    planned = expected.plan.tokens_interval
    if planned is None:
        each = expected.ledger["kv_bytes_per_token"]
        if not each.known:
            return []
        return [("by configuration", f"{each.text()} and rank ({context.model.origin})")]
    text = f"{planned.lo:,}" if planned.exact else f"{planned.lo:,} to {planned.hi:,}"
    return [("by configuration", f"{text} tokens ({context.model.origin})")]


def _ceiling(context: Context) -> list[tuple[str, str]]:
    from vlogcheck.context import ConcurrencyCeiling

    try:
        ceiling = context.get(ConcurrencyCeiling)
    except Missing:
        return []
    text = f"{ceiling.text} requests of {ceiling.context:,} tokens at once"
    if ceiling.engines > 1:
        text += f" on {ceiling.engines} engines"
    if ceiling.capped:
        text += f", capped by max_num_seqs={ceiling.max_num_seqs}"
    elif ceiling.max_num_seqs is None:
        text += " (max_num_seqs is not printed and may cap it)"
    return [("ceiling", text)]


def _curve(context: Context) -> tuple[list[str], str]:
    """Return the table of requests by length, or why it is not known."""
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.curve import capacity_curve

    curve = capacity_curve(context)
    if not curve.points:
        return [], curve.unknown
    if len(curve.points) == 1:
        return [], ""  # the printed length alone: said above
    try:
        ceiling = context.get(ConcurrencyCeiling)
        cap = ceiling.max_num_seqs * ceiling.engines if ceiling.max_num_seqs is not None else None
    except Missing:
        cap = None
    table = [["tokens per request", "requests", ""]]
    for point in curve.points:
        capped = cap is not None and point.low > cap
        note = f"   max_num_seqs caps at {cap:,}" if capped else ""
        table.append([f"{point.context:,}", _held(point.low, point.high), note])
    widths = [max(len(row[i]) for row in table) for i in range(2)]
    return ["", *(f"  {a:>{widths[0]}}  {b:>{widths[1]}}{note}" for a, b, note in table)], ""


def _held(low: Fraction, high: Fraction) -> str:
    """Return the certain figure; the printed one where the bounds are only its rounding."""
    return f"{float((low + high) / 2 if high - low <= Fraction(1, 50) else low):,.2f}"
