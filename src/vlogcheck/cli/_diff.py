"""`vlogcheck diff`: two start-ups term by term."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from vlogcheck.cli._output import put
from vlogcheck.cli._types import Count, _ParamType, use_colour, width

__all__ = ["command"]


class _Share(_ParamType):
    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        try:
            share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is no share: give 5% or 0.05", param, ctx)
        return share


@click.command("diff", short_help="Compare two logs: which term took the tokens.")
@click.argument("old", metavar="OLD.LOG")
@click.argument("new", metavar="NEW.LOG")
@click.option("--max-loss", type=_Share(), help="Share of the capacity that may be lost, such as 5%.")
@click.option(
    "--context", type=Count(), metavar="TOKENS", help="Compare the concurrency at so many tokens per request."
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(old: str, new: str, max_loss: float | None, context: int | None, output: str) -> None:
    """Compare the last start-ups of two logs term by term: which term took the tokens.

    Exit status 1 beyond --max-loss, 3 where one of the logs has no KV cache capacity.
    """
    from vlogcheck.compare import diff
    from vlogcheck.report.difference import render

    result = diff(old, new, max_loss=max_loss, context=context)
    if output == "json":
        put(json.dumps(result.to_dict(), ensure_ascii=False, default=str, indent=2))
    else:
        put(render(result, colour=use_colour(), width=width()))
    sys.exit(result.exit_code)
