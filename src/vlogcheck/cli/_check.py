"""`vlogcheck LOG…`: check logs, follow one, check many."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from vlogcheck.cli._output import put, put_bytes
from vlogcheck.cli._question import arguments_of, question
from vlogcheck.cli._types import Duration, say, use_colour, width, worst

__all__ = ["check_arguments", "command"]

_MOST_REPORTS = 8
"""Logs up to which each gets its own report."""


@click.command("check", short_help="Check LOGs; the command may be left out: vlogcheck LOG.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG…")
@question
@click.option(
    "--follow", "-f", is_flag=True, help="Watch a growing log (or `-`) and exit the moment the verdict is known."
)
@click.option(
    "--until", type=click.Choice(["decided", "ready"]), default=None,
    help="With --follow: what a pass waits for: the lines that decide it, or a server that answers  [default: decided].",
)  # fmt: skip
@click.option("--timeout", type=Duration(), help="With --follow: inconclusive after this long, such as 15m or 90s.")
@click.option(
    "--tee",
    is_flag=True,
    help="With --follow: pass the log through to standard output; the report goes to standard error.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes for many logs [default: all cores].")
def command(logs: tuple[str, ...], output: str, verbose: bool, **options: Any) -> None:
    """Check each LOG: a file (.gz, .zst, .xz and .bz2 are read as they are), a directory, or `-` for standard input.

    Rotated parts named together (serve.log serve.log.1), and all that `split` made of a log, are one log. More than eight logs
    end in a table, worst first; with `--format json` several logs are one JSON object per line.
    """
    live = {name: options.pop(name) for name in ("follow", "until", "timeout", "tee", "jobs")}
    arguments = arguments_of(options)
    if live["follow"]:
        if live["jobs"] is not None:
            raise click.UsageError("--jobs goes with many logs, --follow watches one")
        sys.exit(_follow(logs, arguments, output, verbose, live))
    _refuse_live_options(live)
    from vlogcheck.logsets import expand_paths

    sets = expand_paths(logs)
    if len(sets) > _MOST_REPORTS:
        sys.exit(_many(sets, arguments, output, live["jobs"]))
    from vlogcheck._reading import read
    from vlogcheck.api import Inquiry
    from vlogcheck.report import reporter

    render = reporter(output)
    inquiry = Inquiry(**arguments)
    codes = []
    for number, item in enumerate(sets):
        try:
            report = inquiry.report(read(item.paths if len(item.paths) > 1 else item.paths[0]))
        except OSError as error:  # the others are still checked
            put(f"vlogcheck: {error}", err=True)
            codes.append(2)
            continue
        if output == "json" and len(sets) > 1:
            import json

            put(json.dumps(report.to_dict(), ensure_ascii=False, default=str))  # one line each: JSON Lines
        else:
            put(("\n" if number else "") + render(report, colour=use_colour(), verbose=verbose, width=width()))
        codes.append(report.exit_code)
    sys.exit(worst(codes))


def _refuse_live_options(live: dict[str, Any]) -> None:
    """Refuse options that would be without effect: somebody relies on them."""
    for name in ("timeout", "tee", "until"):
        if live[name] is not None and live[name] is not False:
            raise click.UsageError(f"--{name} goes with --follow")


def _follow(logs: tuple[str, ...], arguments: dict[str, Any], output: str, verbose: bool, live: dict[str, Any]) -> int:
    """Watch one log; return the exit status."""
    from vlogcheck.files import LogFileError
    from vlogcheck.live import watch
    from vlogcheck.report import reporter

    render = reporter(output)  # loaded now: the verdict is to come at once
    if len(logs) != 1:
        raise click.UsageError("--follow watches one LOG")
    if logs[0] == "-" and sys.stdin is None:
        raise LogFileError("-: standard input is closed")
    source: Any = os.fdopen(0, "rb", buffering=0, closefd=False) if logs[0] == "-" else logs[0]
    expect, model = arguments.pop("expect"), arguments.pop("model")
    report = watch(
        source, expect, live["timeout"], model=model, until=live["until"] or "decided", on_event=say,
        on_bytes=put_bytes if live["tee"] else None, **arguments,
    )  # fmt: skip
    stream = sys.stderr if live["tee"] else sys.stdout
    put(render(report, colour=use_colour(stream), verbose=verbose, width=width(stream)), err=live["tee"])
    return report.exit_code


def _many(sets: Any, arguments: dict[str, Any], output: str, jobs: int | None) -> int:
    """Check many logs on all cores; a table for people, one JSON object per log for programs."""
    import json

    from vlogcheck.many import check_many, table

    summaries = []
    with click.progressbar(length=len(sets), label="checking", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for item in check_many((each.paths for each in sets), arguments, jobs=jobs):
            bar.update(1)
            if output == "json":
                put(json.dumps(item.to_dict(), ensure_ascii=False))
            summaries.append(item)
    if output == "text":
        put("\n".join(table(summaries)))
    return worst([item.exit_code for item in summaries])


def check_arguments(words: list[str]) -> dict[str, Any]:
    """Return the arguments of `vlogcheck.check` that the command would make of these options (without a log)."""
    options = command.make_context("vlogcheck", [*words, "-"], help_option_names=["-h", "--help"]).params
    return arguments_of(options)
