"""The comparison of two start-ups for people."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck.units import format_bytes

if TYPE_CHECKING:
    from vlogcheck._compared import Side, TermChange
    from vlogcheck.compare import Diff
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.ledger import Term

__all__ = ["decides", "render"]


def render(diff: Diff, *, colour: bool = False, width: int | None = None) -> str:
    """Return the comparison as text, ending without a newline. Text is folded at `width` columns where it is given."""
    from vlogcheck.report._layout import Paint, fold

    paint = Paint(colour)
    out = [paint("bold", line) for line in fold("", f"{_name(diff.old)} → {_name(diff.new)}", width, hang=2)]
    if diff.old.found and diff.new.found:
        out += ["", *_table(diff)]
        if diff.options:
            out += ["", "options that differ"]
            for o in diff.options:
                out += fold("  ", f"{o.name}: {_short(o.old)} → {_short(o.new)} ({o.why})", width, hang=6)
    if diff.known:
        out += ["", "known changes between the two releases (* touches a term that differs here)"]
        for c in diff.known:
            out += fold(f"  {'*' if diff.explains(c) else ' '} ", f"{c.since}: {c.text} [{c.source}]", width, hang=6)
    if diff.news:
        out += ["", "what the checks say of the new log and not of the old"]
        for finding in diff.news:
            severity = finding.severity.value if finding.severity else "note"
            out += fold("  ", f"{severity} {finding.code} {finding.message}", width, hang=6)
            out += fold("    remedy  ", finding.remedy, width)
    if diff.two_lengths is not None:
        out += ["", *(piece for line in diff.two_lengths.lines() for piece in fold("", line, width, hang=2))]
    summary = [piece for line in _summary(diff) for piece in fold("", line, width, hang=2)]
    out += ["", *summary] if summary else [""]
    verdict = diff.verdict
    first, *more = fold("", f"{verdict}: {decides(diff)}", width, hang=4)
    return "\n".join([*out, paint(verdict, verdict) + first[len(verdict) :], *more])


def decides(diff: Diff) -> str:
    """Return what the verdict rests on."""
    loss = diff.loss
    if diff.missing is not None:
        return diff.missing
    if loss is None:
        return "nothing the two logs print can be compared"
    low, high = 100 * float(loss.lo), 100 * float(loss.hi)
    middle = 100 * float(1 - loss.new / loss.old) if loss.old else 0.0
    if loss.wide:
        change = f"the change lies between {_percent(-high)} and {_percent(-low)} (compare at a length the logs print)"
    else:
        change = f"{loss.what} {_percent(-middle)}" if abs(middle) >= 0.05 else f"{loss.what} unchanged"
    limit = (
        "no limit was stated (--max-loss)"
        if diff.max_loss is None
        else f"at most {100 * diff.max_loss:g} % may be lost"
    )
    return f"{change}, {limit}"


def _percent(change: float) -> str:
    return f"{'−' if change < 0 else '+'}{abs(change):.1f} %"


def _name(side: Side) -> str:
    startup = side.context.startup
    return f"{side.context.path or 'log'} (vLLM {side.version or 'unknown'}, {startup.model or 'model unknown'})"


def _table(diff: Diff) -> list[str]:
    rows = [["term", "old", "new", "change", "tokens"]]
    for term in diff.terms:
        rows.append(
            [term.label, *(t.text() if t.known else "–" for t in (term.old, term.new)), _change(term), _effect(term)]
        )
        if term.key == "other":
            rows[-1][2] = "–"
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            .rstrip() for row in rows]  # fmt: skip


def _middle(term: Term) -> Fraction | None:
    return None if term.lo is None or term.hi is None else Fraction(term.lo + term.hi) / 2


def _change(term: TermChange) -> str:
    if term.key == "other":
        value = _middle(term.new)
        return _bytes(value) if value is not None else ""
    before, after = _middle(term.old), _middle(term.new)
    if before is None or after is None or not term.changed:
        return "" if before is None or after is None else "="
    change = after - before
    if term.old.unit == "bytes":
        return _bytes(change)
    if term.old.unit in ("bytes per token", "bytes per block"):
        return f"{'+' if change > 0 else '−'}{format_bytes(abs(round(change)))}"
    return (
        f"{float(change):+,.4g}".replace("-", "−") if change.denominator != 1 else f"{int(change):+,}".replace("-", "−")
    )


def _bytes(change: Fraction) -> str:
    return f"{'+' if change >= 0 else '−'}{abs(float(change)) / 2**30:.2f} GiB"


def _effect(term: TermChange) -> str:
    if term.tokens is None or term.tokens[0] <= 0 <= term.tokens[1]:
        return ""
    return f"{round((term.tokens[0] + term.tokens[1]) / 2):+,}".replace("-", "−")


def _short(value: Any) -> str:
    text = "not stated" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _summary(diff: Diff) -> list[str]:
    out = []
    culprit = diff.culprit
    if culprit is not None and culprit.tokens is not None:
        lost = -round((culprit.tokens[0] + culprit.tokens[1]) / 2)
        out.append(f"most was taken by: {culprit.label}, about {lost:,} tokens")
    if diff.loss is not None:
        loss = diff.loss
        if loss.wide:
            figures = " → ".join(_between(loss.what, bounds) for bounds in loss.bounds)
            share_text = "the layers may differ: bounds, not figures"
        else:
            figures = f"{_figure(loss.what, loss.old)} → {_figure(loss.what, loss.new)}"
            share = 100 * float(1 - loss.new / loss.old)
            share_text = _percent(-share) if abs(share) >= 0.05 else "unchanged"
        out.append(f"{loss.what}: {figures} ({share_text})")
    capped = any(ceiling is not None and ceiling.capped for ceiling in diff.ceilings)
    for label, ceiling in zip(("old", "new"), diff.ceilings, strict=True):
        if ceiling is not None and (capped or diff.loss is None or not diff.loss.what.startswith("requests")):
            out.append(f"{label} ceiling: {_ceiling(ceiling)}")
    return out


def _figure(what: str, value: Fraction) -> str:
    if what == "available memory":
        return f"{float(value) / 2**30:.2f} GiB"
    return f"{int(value):,}" if what == "tokens" else f"{float(value):,.2f}"


def _between(what: str, bounds: tuple[Fraction, Fraction]) -> str:
    low, high = (_figure(what, value) for value in bounds)
    close = bounds[1] - bounds[0] <= max(Fraction(1, 50), bounds[1] / 100)
    return _figure(what, (bounds[0] + bounds[1]) / 2) if close else f"between {low} and {high}"


def _ceiling(ceiling: ConcurrencyCeiling) -> str:
    text = f"{ceiling.text} requests of {ceiling.context:,} tokens"
    return text + (f", capped by max_num_seqs={ceiling.max_num_seqs}" if ceiling.capped else "")
