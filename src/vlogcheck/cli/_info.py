"""`parse`, `explain` and `list`: what vlogcheck reads and what it checks."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

__all__ = ["explain", "list_", "parse"]


@click.command("parse", short_help="Print one JSON object per record of a log.")
@click.argument("log")
@click.option(
    "--unrecognised", is_flag=True, help="List memory-looking lines that no template knows, instead of records."
)
def parse(log: str, unrecognised: bool) -> None:
    """Print one JSON object per record of LOG (`-` is standard input)."""
    from vlogcheck.api import parse as read

    write = sys.stdout.write

    def show(line: Any) -> None:
        if unrecognised:
            write(
                json.dumps({"line": line.number, "message": line.message, "process": line.process}, ensure_ascii=False)
                + "\n"
            )

    for record in read(log, on_unrecognised=show):
        if not unrecognised:
            write(json.dumps(record.to_dict(), ensure_ascii=False, default=str) + "\n")


@click.command("explain")
@click.argument("code")
def explain(code: str) -> None:
    """Print the page of a check, such as VL401."""
    from vlogcheck.registry import all_checks

    checks = all_checks()
    item = checks.get(code.upper()) or next((c for c in checks.values() if c.name == code), None)
    if item is None:
        raise click.UsageError(f"no check is called {code}: see `vlogcheck list checks`")
    click.echo(item.page.rstrip())


@click.command("list")
@click.argument("what", type=click.Choice(["checks", "records"]))
def list_(what: str) -> None:
    """List the checks or the records."""
    if what == "checks":
        from vlogcheck.registry import all_checks

        rows = [(c.code, c.severity.value, c.since, c.name, c.summary) for c in all_checks().values()]
        header = ("code", "severity", "since", "name", "flags")
    else:
        from vlogcheck.template import all_records

        rows = []
        for name, record in sorted(all_records().items()):
            doc = (record.__doc__ or "").strip().splitlines()[0]
            rows.append((name, str(len(record.templates)), doc, ", ".join(record.field_names()) or "–"))  # type: ignore[arg-type]
        header = ("record", "wordings", "meaning", "fields")  # type: ignore[assignment]
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
