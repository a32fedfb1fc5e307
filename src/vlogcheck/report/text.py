"""The report for people: one screen, aligned, quiet; colour only where the caller says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.registry import Finding, Severity, all_checks
from vlogcheck.report._layout import Paint, at_line, fold
from vlogcheck.report._startup import startup_lines

if TYPE_CHECKING:
    from vlogcheck.api import Report
    from vlogcheck.context import Context

__all__ = ["render", "render_findings", "render_startup"]

_MOST_SKIPPED = 4
_SCREEN = 50
"""Lines of a screen. In a report that is longer, notes have one line each: errors, warnings and the verdict stay in sight."""


def render(report: Report, *, colour: bool = False, verbose: bool = False, width: int | None = None) -> str:
    """Return the report as text, ending without a newline. Lines are folded at `width` columns where it is given."""
    paint = Paint(colour)
    startups = [
        line
        for context in report.contexts
        for line in (*render_startup(context, report, colour=colour, width=width), "")
    ]
    findings = render_findings(report, report.findings, colour=colour, width=width)
    end = [*_verdict(report, paint, width), *_footer(report, paint, verbose, width)]
    if not verbose and len(startups) + len(findings) + len(end) > _SCREEN:
        findings = _folded(report, paint, width) or findings
    return "\n".join([*startups, *findings, *end])


def _folded(report: Report, paint: Paint, width: int | None) -> list[str]:
    """Return the findings with one line for each note, or nothing where there is no note."""
    if report.fail_on is Severity.NOTE:  # each of them fails, and says so in full
        return []
    notes = [finding for finding in report.findings if finding.severity is Severity.NOTE]
    others = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    if not notes:
        return []
    out = render_findings(report, others, colour=paint.on, width=width)[:-1]
    for note in notes:
        place = f" ({at_line(note.line)})" if note.line else ""
        first, *more = fold("note ", f"{note.code} {note.message}{place}", width, hang=4)
        out += [paint("note", "note") + first[len("note") :], *more]
    return [*out, paint("dim", "    notes in full: --verbose"), ""]


def render_startup(
    context: Context, report: Report | None = None, *, colour: bool = False, width: int | None = None
) -> list[str]:
    """Return the lines that say what was served and its ledger."""
    startup = context.startup
    where = report.path if report is not None else (context.path or "")
    found = len(report.startups) + report.facts.forgotten if report is not None else 1
    head = f"{where}: " if where else ""
    head += f"vLLM {startup.version or '(release unknown)'}"
    if found > 1:
        head += f", start-up {context.number + 1} of {found}"
    return startup_lines(context, head, Paint(colour), width)


def render_findings(
    report: Report, findings: list[Finding], *, colour: bool = False, width: int | None = None
) -> list[str]:
    """Return the findings, worst first: each with its line, what was expected and observed, and the remedy."""
    paint = Paint(colour)
    out: list[str] = []
    for finding in findings:
        severity = (finding.severity or Severity.NOTE).value
        where = f"{finding.path or report.path}:{finding.line}" if finding.line else (finding.path or report.path)
        first, *more = fold(f"{severity} ", f"{finding.code} {finding.message}", width, hang=4)
        out += [paint(severity, severity) + first[len(severity) :], *more]
        detail = [("at", where), ("expected", finding.expected), ("observed", finding.observed)]
        detail += [("because", finding.explanation), ("remedy", finding.remedy)]
        for label, value in detail:
            if value:
                out += fold(f"    {label:<9} ", value, width)
    return [*out, ""] if out else out


def _verdict(report: Report, paint: Paint, width: int | None) -> list[str]:
    """Return the verdict, what decides it, and how many findings there are."""
    verdict = report.verdict
    counts = [
        f"{n} {severity.value}{'s' if n != 1 else ''}"
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        if (n := sum(f.severity is severity for f in report.findings))
    ]
    text = f"{verdict}: {report.summary}" + (f" ({', '.join(counts)})" if counts else "")
    first, *more = fold("", text, width, hang=4)
    return [paint(verdict, verdict) + first[len(verdict) :], *more]


def _footer(report: Report, paint: Paint, verbose: bool, width: int | None) -> list[str]:
    out: list[str] = []
    if report.skipped:
        groups: dict[str, list[str]] = {}
        for item in sorted(report.skipped, key=lambda item: not _is_asked(report, item.code)):
            groups.setdefault(item.reason, []).append(item.code)
        count = len(report.skipped)
        among = f" in {len(report.contexts)} start-ups" if len(report.contexts) > 1 else ""
        out.append(f"{count} check{'s' if count != 1 else ''} skipped{among}:")
        limit = len(groups) if verbose else _MOST_SKIPPED
        for reason, codes in list(groups.items())[:limit]:
            unique = sorted(set(codes))
            names = ", ".join(unique[:6]) + (f" and {len(unique) - 6} more" if len(unique) > 6 else "")
            out += fold("    ", f"{names}: {reason}", width, hang=8)
        if len(groups) > limit:
            rest = len(groups) - limit
            out.append(f"    … and {rest} more reason{'s' if rest != 1 else ''} (--verbose)")
    if report.facts.unrecognised and not any(finding.code == "VL009" for finding in report.findings):
        count = report.facts.unrecognised
        what = "lines speak of memory or nearly say" if count != 1 else "line speaks of memory or nearly says"
        text = f"{count:,} {what} what is known, and no template reads {'them' if count != 1 else 'it'}:"
        text += " see `vlogcheck parse --unrecognised`"
        out += fold("", text, width, hang=4)
    return [paint("dim", line) for line in out]


def _is_asked(report: Report, code: str) -> bool:
    """Whether a check is about what was given beside the log: that it was not made matters most."""
    given = report.contexts[0].attached if report.contexts else frozenset()
    check = all_checks()[code] if given else None
    return check is not None and any(kind in given for need in check.needs.values() for kind in need.kinds)
