"""`vlogcheck budget`: the ledger before any server exists."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from vlogcheck.cli._types import Size, Sizes, WithFlags

__all__ = ["command"]


def _assignment(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    environment = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        environment[name] = setting
    return environment


@click.command("budget", cls=WithFlags)
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG…")
@click.option("--vllm", metavar="RELEASE", help="vLLM release whose rules are followed [default: the newest known].")
@click.option(
    "--available-kv-memory", type=Sizes(), multiple=True,
    help="KV cache memory per rank, such as 60.31GiB or whole bytes; several (with commas) for the stages of a pipeline.",
)  # fmt: skip
@click.option("--total-memory", type=Size(), help="Device memory in total, such as 65520MiB.")
@click.option("--other-memory", type=Size(), help="Activation peak, non-torch memory and graphs per rank.")
@click.option("--concurrency", type=click.FloatRange(0, min_open=True), help="Requests that must run at once.")
@click.option("--context", type=click.IntRange(1), help="Tokens per request [default: the longest context].")
@click.option("--device", metavar="NAME", help="The card, such as H100, A100, B200, cpu [default: an H100-class card].")
@click.option(
    "--env", multiple=True, callback=_assignment, metavar="NAME=VALUE", help="A vLLM environment variable. Repeatable."
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(ctx: click.Context, /, configs: tuple[str, ...], output: str, **options: Any) -> None:
    """Compute the ledger before any server exists.

    CONFIG is a model's config.json or a directory holding one; several give the table of what a card can serve. Everything
    after `--` is read as flags of `vllm serve`: `vlogcheck budget config.json --total-memory 80GiB -- -tp 4
    --max-model-len 32768 --kv-cache-dtype fp8`. Exit status 0 it fits, 1 it does not, 2 usage, 3 it cannot be said.
    """
    from vlogcheck.budget.answer import answer
    from vlogcheck.budget.flags import parse_serve_flags
    from vlogcheck.budget.model import load_model_config
    from vlogcheck.report.budget import render, render_json

    flags = parse_serve_flags(ctx.meta.get("vllm.flags", []))
    sizes = [size for group in options["available_kv_memory"] for size in group]
    available = sizes[0] if len(sizes) == 1 else sizes or None
    budgets = [
        answer(
            load_model_config(config), flags, name=_model_name(config), release=options["vllm"], env=options["env"],
            device=options["device"], available=available, total_memory=options["total_memory"],
            other=options["other_memory"], concurrency=options["concurrency"], context=options["context"],
        )
        for config in configs
    ]  # fmt: skip
    click.echo(render_json(budgets) if output == "json" else render(budgets, flags))
    verdicts = [budget.fits for budget in budgets]
    sys.exit(1 if False in verdicts else 3 if None in verdicts else 0)


def _model_name(config: str) -> str:
    path = os.path.abspath(config)
    base = os.path.basename(path)
    if base == "config.json" or not base:
        return os.path.basename(os.path.dirname(path))
    return base.removesuffix(".json")
