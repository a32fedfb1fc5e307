"""`parse`, `explain` and `list`: what vlogcheck reads and what it checks."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from vlogcheck.cli._output import put

__all__ = ["explain", "list_", "parse"]


@click.command("parse", short_help="Print one JSON object per record of a log.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG…")
@click.option(
    "--unrecognised",
    is_flag=True,
    help="List memory-looking and reworded lines that no template knows, instead of records.",
)
def parse(logs: tuple[str, ...], unrecognised: bool) -> None:
    """Print one JSON object per record of each LOG: a file, a directory, or `-` for standard input.

    Of several files, rotated parts are read oldest first, and each object names its file: a line cut between two parts is in
    the one it begins in. Exit status 0 also where a log holds none, which is said on standard error; 2 for a file that cannot
    be read.
    """
    from vlogcheck._reading import parse_parts
    from vlogcheck.logsets import expand_paths

    sets = expand_paths(logs)
    paths = [path for item in sets for path in item.paths]

    def show(path: str, row: dict[str, Any]) -> None:
        named = row | {"path": path} if len(paths) > 1 else row
        sys.stdout.write(json.dumps(named, ensure_ascii=False, default=str) + "\n")

    silent: list[tuple[str, int]] = []
    for item in sets:
        found, lines = [0] * len(item.paths), [0] * len(item.paths)

        def tell(part: int, line: Any, names: Any = item.paths, found: list[int] = found) -> None:
            found[part] += 1
            row = {"line": line.number, "message": line.message, "process": line.process, "nearest": line.nearest}
            show(names[part], row)

        on_unrecognised = tell if unrecognised else None
        for part, record in parse_parts(item.paths, on_unrecognised=on_unrecognised, on_end=lines.__setitem__):
            if not unrecognised:
                found[part] += 1
                show(item.paths[part], record.to_dict())
        silent += [(path, lines[part]) for part, path in enumerate(item.paths) if not found[part]]
    if silent:
        what = "memory-looking or reworded line that no template knows" if unrecognised else "vLLM message"
        if len(paths) == 1:
            ((name, count),) = silent
            where = f"{name}: " if name != "-" else ""
            put(f"vlogcheck: {where}no {what} in {count:,} line{'s' if count != 1 else ''}", err=True)
        else:
            names = ", ".join(name for name, _ in silent[:3]) + (", …" if len(silent) > 3 else "")
            put(f"vlogcheck: no {what} in {len(silent):,} of {len(paths):,} files: {names}", err=True)


@click.command("explain")
@click.argument("code")
def explain(code: str) -> None:
    """Print the page of a check, such as VL401."""
    from vlogcheck.registry import all_checks

    checks = all_checks()
    item = checks.get(code.upper()) or next((c for c in checks.values() if c.name == code), None)
    if item is None:
        raise click.UsageError(f"no check is called {code}: see `vlogcheck list checks`")
    put(item.page.rstrip())


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
        put("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
