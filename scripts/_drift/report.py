"""What a comparison says, for people: disagreements, uncovered messages, suggestions, the version matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _drift.collect import readable
from _drift.compare import Comparison, Uncovered, Verdict, one_line, ranges, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from packaging.version import Version


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in columns as wide as their widest cell; the last column is free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join((*cells, row[-1])).rstrip()


def short(text: str, width: int = 70) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= width else line[: width - 1] + "…"


def summary(comparison: Comparison) -> Iterator[str]:
    """Releases read, templates compared, and how many did not agree."""
    for package in dict.fromkeys(release.name for release in comparison.releases):
        versions = comparison.versions(package)
        yield f"{package}: {len(versions)} release(s) read, {versions[0]} to {versions[-1]}"
    verdicts = comparison.verdicts
    compared = [verdict for verdict in verdicts if verdict.compared]
    yield (
        f"{len(verdicts)} template(s): {len(compared)} compared, {len(verdicts) - len(compared)} from sources not read,"
        f" {sum(not verdict.agrees for verdict in compared)} disagreement(s)"
    )


def disagreements(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Return a table of the templates whose declared range is not what the source shows."""
    rows = [("record", "declared", "source says", "declared but absent", "present but undeclared", "text")]
    for verdict in verdicts:
        if verdict.agrees:
            continue
        template = verdict.template
        rows.append(
            (
                template.record.__name__,
                template.versions if verdict.declared is not None else f"{template.versions!r} is no specifier",
                verdict.suggestion or "no release read has it",
                ranges(verdict.seen, verdict.absent) or "-",
                ranges(verdict.seen, verdict.undeclared) or "-",
                short(template.text),
            )
        )
    if len(rows) > 1:
        yield from table(rows)


def suggestions(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Return the specifier each compared template should declare; `*` where it declares another."""
    rows = [("", "record", "specifier", "text")]
    for verdict in verdicts:
        if verdict.compared:
            mark = "" if verdict.agrees else "*"
            found = verdict.suggestion or "no release read has it"
            rows.append((mark, verdict.template.record.__name__, found, short(verdict.template.text)))
    yield from table(rows)


def explanation(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Return the source's messages each template was found to be."""
    for verdict in verdicts:
        yield f"{verdict.template.record.__name__}: {short(verdict.template.text, 200)}"
        yield f"  declared {verdict.template.versions or '-'}; source says {verdict.suggestion or 'nowhere'}"
        yield from (f"  = {one_line(text)}" for text in verdict.texts)


def uncovered(entries: Sequence[Uncovered], comparison: Comparison) -> Iterator[str]:
    """Messages about memory that no template reads."""
    for entry in entries:
        seen = comparison.versions(entry.package)
        yield f"{entry.package} {ranges(seen, entry.sites)}: {readable(entry.newest)}"
        yield f"    {one_line(entry.text, 400)}"


def counts(comparison: Comparison) -> Iterator[str]:
    """Per release how many messages about memory there are and how many nothing reads."""
    rows = [("release", "about memory", "read", "ignored", "uncovered")]
    for label, count in comparison.counts.items():
        figures = (str(count.messages), str(count.covered), str(count.ignored), str(count.uncovered))
        rows.append((label, *figures))
    yield from table(rows)


def matrix(comparison: Comparison) -> str:
    """docs/versions.md: which release's source has which record, and every wording's releases."""
    seen = comparison.versions("vllm")
    series = list(dict.fromkeys((version.major, version.minor) for version in seen))
    verdicts = [verdict for verdict in comparison.verdicts if verdict.template.source == "vllm"]
    records = dict.fromkeys(verdict.template.record.__name__ for verdict in verdicts)
    present = {
        name: frozenset().union(*(v.present for v in verdicts if v.template.record.__name__ == name))
        for name in records
    }
    lines = [
        "# Records and the vLLM releases whose source has them",
        "",
        f"Read from the source of {len(seen)} releases, {seen[0]} to {seen[-1]}, by `scripts/drift.py`.",
        "`●` every release read of that series, `◐` some, blank none.",
        "",
        "| record | " + " | ".join(f"{major}.{minor}" for major, minor in series) + " |",
        "|---|" + ":-:|" * len(series),
    ]
    for name in records:
        cells = [_cell([v for v in seen if (v.major, v.minor) == each], present[name]) for each in series]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    lines += ["", "## Wordings", ""]
    for name in records:
        lines += [f"### {name}", ""]
        for verdict in verdicts:
            if verdict.template.record.__name__ == name:
                lines.append(f"- {ranges(seen, verdict.present) or 'no release read'}: {_code(verdict.template.text)}")
        lines.append("")
    return "\n".join(lines)


def _cell(versions: Sequence[Version], present: frozenset[Version]) -> str:
    stretches = runs(versions, present)
    if not stretches:
        return " "
    return "●" if stretches == [(0, len(versions) - 1)] else "◐"


def _code(text: str) -> str:
    line = short(text, 300)
    fence = "``" if "`" in line else "`"
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}"
