"""`vlogcheck run`: start a server and keep it only if it keeps the promise."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from vlogcheck.cli._output import put, put_bytes
from vlogcheck.cli._question import arguments_of, question
from vlogcheck.cli._types import Duration, WithFlags, say, use_colour, width

__all__ = ["command"]


class _WithCommand(WithFlags):
    rest = "-- COMMAND OF THE SERVER…"


@click.command("run", cls=_WithCommand)
@question
@click.option(
    "--timeout", type=Duration(), help="Stop the server when there is no verdict after this long, such as 15m."
)
@click.option(
    "--until", type=click.Choice(["decided", "ready"]), default="decided", show_default=True,
    help="What a pass waits for: the lines that decide it, or a server that answers.",
)  # fmt: skip
@click.option("--keep", is_flag=True, help="Leave the server running in the background after a pass.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False),
    help="With --keep: the server's output goes here [default: vllm-<time>.log].",
)
@click.option(
    "--grace", type=Duration(), default="10s", show_default=True, help="Time a stopped server has before it is killed."
)
@click.pass_context
def command(ctx: click.Context, /, output: str, verbose: bool, **options: Any) -> None:
    """Start a server and keep it only if it keeps the promise.

    `vlogcheck run --expect-concurrency 16 -- vllm serve MODEL …` passes its output through, stops it (TERM, then KILL) and
    exits 1 when the promise is not met, 3 when the time is up; otherwise it stays in the foreground with signals and exit
    status passed through, or in the background with --keep.
    """
    from pathlib import Path

    from vlogcheck.api import Inquiry
    from vlogcheck.report import reporter
    from vlogcheck.run import run

    command = ctx.meta.get("vllm.flags", [])
    if not command:
        raise click.UsageError("give the server's command after --: vlogcheck run … -- vllm serve MODEL")
    if options["log"] and not options["keep"]:
        raise click.UsageError("--log goes with --keep")
    keep = Path(options["log"] or f"vllm-{time.strftime('%Y%m%d-%H%M%S')}.log") if options["keep"] else None
    render = reporter(output)
    result = run(
        command, Inquiry(**arguments_of(options)), timeout=options["timeout"], keep=keep, until=options["until"],
        grace=options["grace"], on_event=say, on_bytes=put_bytes,
        on_report=lambda report: put(
            render(report, colour=use_colour(sys.stderr), verbose=verbose, width=width(sys.stderr)), err=True
        ),
    )  # fmt: skip
    if result.kept:
        put(f"vlogcheck: the server goes on as process {result.pid}, its output in {keep}", err=True)
    sys.exit(result.exit_status)
