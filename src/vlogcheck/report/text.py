"""The report for people: one screen, aligned, quiet; colour only where the caller says so."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck.registry import Finding, Missing, Severity
from vlogcheck.units import format_gib

if TYPE_CHECKING:
    from vlogcheck.api import Report
    from vlogcheck.context import Context
    from vlogcheck.ledger import Ledger, Term
    from vlogcheck.observed import EngineLedger, RankLedger

__all__ = ["render", "render_findings", "render_startup"]

_STYLES = {
    "error": "31;1",
    "warning": "33",
    "note": "36",
    "fail": "31;1",
    "pass": "32;1",
    "inconclusive": "33;1",
    "dim": "2",
    "bold": "1",
}
_BAR = 40
_MOST_RANKS = 8
_MOST_SKIPPED = 4


class _Paint:
    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def render(report: Report, *, colour: bool = False, verbose: bool = False, width: int | None = None) -> str:
    """Return the report as text, ending without a newline. Findings are folded at `width` columns where it is given."""
    paint = _Paint(colour)
    out: list[str] = []
    for context in report.contexts:
        out += [*render_startup(context, report, colour=colour), ""]
    out += render_findings(report, report.findings, colour=colour, width=width)
    out.append(_verdict(report, paint))
    out += _footer(report, paint, verbose)
    return "\n".join(out)


def render_startup(context: Context, report: Report | None = None, *, colour: bool = False) -> list[str]:
    """Return the lines that say what was served and its ledger."""
    paint = _Paint(colour)
    startup = context.startup
    where = report.path if report is not None else (context.path or "")
    found = len(report.startups) + report.facts.forgotten if report is not None else 1
    head = f"{where}: " if where else ""
    head += f"vLLM {startup.version or '(release unknown)'}"
    if found > 1:
        head += f", start-up {context.number + 1} of {found}"
    out = [paint("bold", head)]
    out += _rows(_facts(context))
    for engine in context.observation.engines:
        if len(context.observation.engines) > 1:
            out.append(f"  engine {engine.engine.index}")
        out += _memory(engine, paint)
        out += _capacity(context, engine)
    return out


def _facts(context: Context) -> list[tuple[str, str]]:
    startup = context.startup
    rows = [("model", startup.model or "unknown")]
    config = startup.config
    if config is not None:
        parts = [config.dtype or "", f"KV cache {config.kv_cache_dtype}" if config.kv_cache_dtype else ""]
        parts.append(config.quantization or "")
        for label, size in (
            ("TP", config.tensor_parallel_size), ("PP", config.pipeline_parallel_size), ("DP", config.data_parallel_size),
        ):  # fmt: skip
            if size and size > 1:
                parts.append(f"{label}={size}")
        if config.max_model_len:
            parts.append(f"up to {config.max_model_len:,} tokens")
        rows.append(("setup", ", ".join(part for part in parts if part)))
    state = "ready" if startup.usable else startup.phase if _goes_on(context) else f"stopped while {startup.phase}"
    if startup.phases and startup.phases[-1].line:
        state += f" (line {startup.phases[-1].line})"
    rows.append(("state", state))
    return rows


def _goes_on(context: Context) -> bool:
    """Whether the log is judged while the server still starts."""
    from vlogcheck.failures import failure_of

    return context.facts is not None and context.facts.growing and failure_of(context.startup) is None


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0)
    return [f"  {label:<{width}}  {value}" for label, value in rows]


_TERMS = (
    "total", "utilization", "requested", "weights", "consumed", "non_torch", "activation", "graph_estimate", "rest",
    "kv_cache", "unexplained", "graphs",
)  # fmt: skip


def _memory(engine: EngineLedger, paint: _Paint) -> list[str]:
    """One row per term, one column per rank, and a bar per rank."""
    ranks = [rank for rank in engine.ranks if any(term.known for term in rank.ledger)]
    if not ranks:
        return []
    shown = ranks[:_MOST_RANKS]
    out = [""]
    rows: list[list[str]] = []
    for key in _TERMS:
        terms = [rank.ledger[key] for rank in shown]
        if not any(term.known for term in terms):
            continue
        label = next(term.label for term in terms if term.known)
        cells = [_cell(term) for term in terms]
        lines = sorted({term.line for term in terms if term.line is not None})
        note = f"line {lines[0]}" if lines else next((t.origin or t.formula for t in terms if t.known), "")
        status = next(term.status for term in terms if term.known)
        if status in ("assumed", "derived"):
            note = f"{status}: {next((t.origin or t.formula for t in terms if t.known), '')}"
        rows.append([label, *cells, note])
    header = ["", *(rank.rank.name for rank in shown), ""]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(shown) + 2)]
    if len(shown) > 1:
        out.append("  " + _align(header, widths).rstrip())
    out += ["  " + _align(row[:-1], widths) + "   " + paint("dim", row[-1]) for row in rows]
    if len(ranks) > len(shown):
        out.append(f"  … and {len(ranks) - len(shown)} more ranks")
    bars = [bar for rank in shown if (bar := _bar(rank))]
    if bars:
        name = max(len(rank.rank.name) for rank in shown)
        out += [f"  {rank.rank.name:<{name}} {bar}" for rank, bar in zip(shown, bars, strict=False)]
        out.append(paint("dim", f"  {'':<{name}} W weights  a activation, non-torch  g graphs  K KV cache  . free"))
    return out


def _cell(term: Term) -> str:
    if term.lo is None or term.hi is None:
        return "–"
    if term.key == "unexplained" and term.lo <= 0 <= term.hi:
        return "none"  # within the rounding of the printed terms
    return term.text()


def _align(row: list[str], widths: list[int]) -> str:
    first, *cells = row
    return f"{first:<{widths[0]}}" + "".join(
        f"  {cell:>{widths[i]}}" for i, cell in enumerate(cells, 1) if i < len(row)
    )


def _bar(rank: RankLedger) -> str | None:
    ledger = rank.ledger
    parts = [
        ("W", _middle(ledger, "weights") or _middle(ledger, "consumed")),
        ("a", _middle(ledger, "activation") + _middle(ledger, "non_torch")),
        ("g", _middle(ledger, "graphs")),
        ("K", _middle(ledger, "kv_cache")),
    ]
    used = sum(size for _, size in parts)
    total = _middle(ledger, "total") or used
    if total <= 0 or not parts[3][1] or used <= 0:
        return None
    bar = "".join(mark * min(max(round(_BAR * size / total), 1 if size else 0), _BAR) for mark, size in parts)
    bar = bar[:_BAR].ljust(_BAR, ".")
    known = "total" in ledger
    return f"[{bar}]" + (f" {format_gib(total)}" if known else " of what is known")


def _middle(ledger: Ledger, key: str) -> int:
    interval = ledger[key].interval
    return max(interval.mid, 0) if interval is not None else 0


def _capacity(context: Context, engine: EngineLedger) -> list[str]:
    rows = []
    for key in ("blocks", "block_size", "tokens", "kv_bytes_per_token", "concurrency", "max_num_seqs"):
        term = engine.ledger[key]
        if not term.known:
            continue
        value = term.text()
        if key == "concurrency" and (length := engine.ledger["max_model_len"].interval):
            value += f" at {length.lo:,} tokens per request"
        if term.line is not None:
            value += f" (line {term.line})" if term.status == "printed" else f" ({term.formula})"
        elif term.status in ("assumed", "derived"):
            value += f" ({term.status}: {term.origin or term.formula})"
        elif term.origin:
            value += f" ({term.origin})"
        rows.append((term.label, value))
    if not any(engine.ledger[key].known for key in ("blocks", "tokens", "concurrency")):
        return []  # a block size alone is no capacity
    rows += _expected(context, engine)
    return ["", *_rows(rows), *_ceiling(context, engine), *_curve(context, engine)]


def _expected(context: Context, engine: EngineLedger) -> list[tuple[str, str]]:
    """Return the tokens the configuration gives, where there is one."""
    if context.model is None:
        return []
    try:
        planned = context.model.expected(context, engine).plan.tokens_interval
    except Missing as missing:
        return [("by configuration", str(missing))]
    if planned is None:
        return []
    text = f"{planned.lo:,}" if planned.exact else f"{planned.lo:,} to {planned.hi:,}"
    return [("by configuration", f"{text} tokens ({context.model.origin})")]


def _curve(context: Context, engine: EngineLedger) -> list[str]:
    """Return the row of requests by length, or why it is not known."""
    from vlogcheck.curve import capacity_curve

    if engine is not context.observation.engines[-1]:
        return []
    curve = capacity_curve(context)
    if not curve.points:
        return [f"  curve: {curve.unknown}"] if curve.unknown else []
    points = ", ".join(f"{_short(point.context)} {_held(point.low, point.high)}" for point in curve.points)
    return [f"  curve: {points} (tokens per request, requests at once)"]


def _held(low: Fraction, high: Fraction) -> str:
    """Return the certain figure; the printed one where the bounds are only its rounding."""
    return f"{float((low + high) / 2 if high - low <= Fraction(1, 50) else low):,.2f}"


def _short(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else f"{tokens:,}"


def _ceiling(context: Context, engine: EngineLedger) -> list[str]:
    from vlogcheck.context import ConcurrencyCeiling

    if engine is not context.observation.engines[-1]:
        return []
    try:
        ceiling = context.get(ConcurrencyCeiling)
    except Missing:
        return []
    text = ceiling.text
    text += f" requests of {ceiling.context:,} tokens at once"
    if ceiling.engines > 1:
        text += f" on {ceiling.engines} engines"
    if ceiling.capped:
        text += f", capped by max_num_seqs={ceiling.max_num_seqs}"
    return [f"  ceiling: {text}"]


def render_findings(
    report: Report, findings: list[Finding], *, colour: bool = False, width: int | None = None
) -> list[str]:
    """Return the findings, worst first: each with its line, what was expected and observed, and the remedy."""
    paint = _Paint(colour)
    out: list[str] = []
    for finding in findings:
        severity = (finding.severity or Severity.NOTE).value
        where = f"{finding.path or report.path}:{finding.line}" if finding.line else (finding.path or report.path)
        out.append(f"{paint(severity, severity)} {finding.code} {finding.message}")
        detail = [("at", where), ("expected", finding.expected), ("observed", finding.observed)]
        detail += [("because", finding.explanation), ("remedy", finding.remedy)]
        for label, value in detail:
            if value:
                out += _folded(f"    {label:<9} ", value, width)
    return [*out, ""] if out else out


def _folded(lead: str, text: str, width: int | None) -> list[str]:
    if width is None or len(lead) + len(text) <= width or width < 2 * len(lead):
        return [lead + text]
    import textwrap

    lines = textwrap.wrap(text, width - len(lead), break_long_words=False, break_on_hyphens=False)
    return [lead + lines[0], *(" " * len(lead) + line for line in lines[1:])]


def _verdict(report: Report, paint: _Paint) -> str:
    verdict = report.verdict
    counts = [
        f"{n} {severity.value}{'s' if n != 1 else ''}"
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        if (n := sum(f.severity is severity for f in report.findings))
    ]
    text = f"{paint(verdict, verdict)}"
    if verdict == "inconclusive" and report.inconclusive:
        text += f": {report.inconclusive}"
    if counts:
        text += f" ({', '.join(counts)})"
    return text


def _footer(report: Report, paint: _Paint, verbose: bool) -> list[str]:
    out = []
    if report.skipped:
        groups: dict[str, list[str]] = {}
        for item in report.skipped:
            groups.setdefault(item.reason, []).append(item.code)
        out.append(paint("dim", f"{len(report.skipped)} checks skipped:"))
        limit = len(groups) if verbose else _MOST_SKIPPED
        for reason, codes in list(groups.items())[:limit]:
            unique = sorted(set(codes))
            names = ", ".join(unique[:6]) + (f" and {len(unique) - 6} more" if len(unique) > 6 else "")
            out.append(paint("dim", f"    {names}: {reason}"))
        if len(groups) > limit:
            out.append(paint("dim", f"    … and {len(groups) - limit} more reasons (--verbose)"))
    if report.facts.unrecognised and not any(finding.code == "VL009" for finding in report.findings):
        count = report.facts.unrecognised
        what = "lines look like memory figures" if count != 1 else "line looks like a memory figure"
        out.append(
            paint(
                "dim",
                f"{count:,} {what} but no template knows {'them' if count != 1 else 'it'}: see `vlogcheck parse --unrecognised`",
            )
        )
    return out
