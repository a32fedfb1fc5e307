"""Hold vlogcheck's templates against the source of vLLM releases.

    python scripts/drift.py unpacked/vllm-0.31.0 vllm-0.32.0.whl --download 0.33.0 --cache .drift

Every argument is a release: an unpacked folder, a wheel or sdist file, or the name of an installed package. The script
collects, by AST and without importing anything, each message the release can log, print or raise; tells for every
template which releases have it; and lists the messages about memory that no template reads.

Exit code: 0 all agree, 1 a declared range disagrees with the source or a message is uncovered, 2 usage or unreadable
input.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click
from packaging.version import InvalidVersion, Version

sys.path.insert(0, str(Path(__file__).resolve().parent))

from typing import TYPE_CHECKING

from _drift import report
from _drift.cache import Collected, Collector
from _drift.compare import Comparison
from _drift.ignore import IgnoreError, IgnoreList
from _drift.ignore import load as load_ignore
from _drift.sources import SourceError, download, fingerprint, open_release

from vlogcheck._unknown import looks_like_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vlogcheck.template import Template

IGNORE = Path(__file__).resolve().with_name("drift_ignore.toml")


def read_version(_: click.Context, __: click.Parameter, value: str) -> Version:
    try:
        return Version(value)
    except InvalidVersion:
        raise click.BadParameter(f"{value!r} is no version") from None


def read_registry(_: click.Context, __: click.Parameter, value: str) -> list[Template]:
    module, _sep, name = value.partition(":")
    try:
        return list(getattr(importlib.import_module(module), name)())
    except (ImportError, AttributeError, ValueError) as error:
        raise click.BadParameter(f"{value}: {error}") from error


def gather(
    releases: Iterable[str], downloads: Iterable[str], collector: Collector
) -> tuple[list[Collected], list[str]]:
    """Collect every release, from the cache where it is there; the second list says what could not be read."""
    found: dict[tuple[str, Version], Collected] = {}
    problems: list[str] = []
    wanted = [*((what, open_release, fingerprint(what)) for what in releases)]
    wanted += [(what, download, f"pip {what}") for what in downloads]
    for what, opener, mark in wanted:
        collected = collector.cached(mark)
        try:
            collected = collected or collector.collect(opener(what), mark)
        except SourceError as error:
            problems.append(str(error))
            continue
        found[collected.name, collected.version] = collected
        click.echo(f"read {collected.label}: {len(collected.sites)} messages", err=True)
    return list(found.values()), problems


@click.command(help=(__doc__ or "").replace("\n\n    python", "\n\n\b\n    python"))
@click.argument("releases", nargs=-1)
@click.option(
    "--download",
    "downloads",
    multiple=True,
    metavar="VERSION",
    help="Fetch this release with pip: 0.32.0, or name==version. May be repeated.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep what was collected in this folder; a release that has not changed is not read again.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=min(os.cpu_count() or 1, 8),
    show_default="the processors, at most 8",
    help="Processes that parse.",
)
@click.option(
    "--ignore",
    "ignore_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=IGNORE,
    show_default="drift_ignore.toml beside the script",
    help="Reviewed list of messages that are not about the ledger.",
)
@click.option(
    "--uncovered-from",
    "since",
    default="0.8",
    callback=read_version,
    show_default=True,
    help="Oldest release whose uncovered messages are listed and fail the run.",
)
@click.option("--uncovered/--no-uncovered", "list_uncovered", default=True, help="Look for messages no template reads.")
@click.option("--suggest", is_flag=True, help="Print the specifier every template should declare.")
@click.option(
    "--explain",
    multiple=True,
    metavar="RECORD",
    help="Print the source's messages this record's templates were found to be. May be repeated.",
)
@click.option(
    "--write-matrix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the record × release matrix here (Markdown).",
)
@click.option(
    "--registry",
    "templates",
    default="vlogcheck.template:all_templates",
    callback=read_registry,
    show_default=True,
    metavar="MODULE:FUNCTION",
    help="Where the templates come from.",
)
def main(
    releases: Sequence[str],
    downloads: Sequence[str],
    cache: Path | None,
    jobs: int,
    ignore_file: Path,
    since: Version,
    list_uncovered: bool,
    suggest: bool,
    explain: Sequence[str],
    write_matrix: Path | None,
    templates: list[Template],
) -> None:
    if not releases and not downloads:
        raise click.UsageError("name at least one release, or --download one")
    try:
        ignore = load_ignore(ignore_file) if list_uncovered else IgnoreList()
    except IgnoreError as error:
        raise click.UsageError(str(error)) from error
    collected, problems = gather(releases, downloads, Collector(cache, jobs))
    for problem in (*problems, *(f"{each.label}: skipped {file}" for each in collected for file in each.broken)):
        click.echo(problem, err=True)
    if not collected:
        sys.exit(2)
    comparison = Comparison(collected, templates, looks_like_memory, ignore)
    say(report.summary(comparison))
    say(report.disagreements(comparison.verdicts), "Declared versions that the source contradicts")
    if suggest:
        say(report.suggestions(comparison.verdicts), "Specifiers from the releases read")
    if explain:
        say(report.explanation(v for v in comparison.verdicts if v.template.record.__name__ in explain), "Matches")
    failing = 0
    if list_uncovered:
        listed = [entry for entry in comparison.uncovered if entry.package == "vllm" and max(entry.sites) >= since]
        failing = len(listed)
        say(report.uncovered(listed, comparison), "Messages about memory that no template reads")
        others = [entry for entry in comparison.uncovered if entry.package != "vllm"]
        say(report.uncovered(others, comparison), "The same of plug-ins (listed, not counted)")
        say(report.counts(comparison), "Messages about memory by release")
        say((rule.describe() for rule in ignore.idle), "Ignore entries that covered nothing")
    if write_matrix:
        write_matrix.parent.mkdir(parents=True, exist_ok=True)
        write_matrix.write_text(report.matrix(comparison), encoding="utf-8")
    disagree = sum(not verdict.agrees for verdict in comparison.verdicts)
    found = f", {failing} uncovered message(s)" if list_uncovered else ""
    click.echo(f"\n{disagree} disagreement(s){found}")
    sys.exit(2 if problems else 1 if disagree or failing else 0)


def say(lines: Iterable[str], title: str = "") -> None:
    """Print lines under a title; nothing at all when there are none."""
    for number, line in enumerate(lines):
        if title and not number:
            click.echo(f"\n{title}")
        click.echo(line)


if __name__ == "__main__":
    main()
