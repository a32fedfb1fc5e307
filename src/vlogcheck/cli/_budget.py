"""`vlogcheck budget`: the ledger before any server exists."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from vlogcheck.cli._output import put
from vlogcheck.cli._types import Count, Number, Size, Sizes, WithFlags, width

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["command"]


def _assignment(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    environment = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        environment[name] = setting
    return environment


def _device(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Refuse what can be no card: a slip must not pass for a card that is only not known."""
    from vlogcheck.budget._device import is_plausible, known_cards

    if value is not None and not is_plausible(value):
        known = ", ".join(known_cards())
        raise click.BadParameter(
            f"{value[:100]!r} is no card: known are {known} and cpu; others are given by model number"
        )
    return value


def _release(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    from packaging.version import Version

    try:
        Version((value or "0").removeprefix("v")[:100])
    except ValueError:  # InvalidVersion is one
        raise click.BadParameter(f"{(value or '')[:100]!r} is no release: give something like 0.11.0") from None
    return value


@click.command("budget", cls=WithFlags)
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG…")
@click.option(
    "--vllm", metavar="RELEASE", callback=_release,
    help="vLLM release whose rules are followed, such as 0.11.0 [default: the newest known].",
)  # fmt: skip
@click.option(
    "--available-kv-memory", type=Sizes(), multiple=True,
    help="KV cache memory per rank, such as 60.31GiB or whole bytes; several (with commas) for the stages of a pipeline.",
)  # fmt: skip
@click.option("--total-memory", type=Size(card=True), help="Device memory in total, such as 65520MiB.")
@click.option("--other-memory", type=Size(memory=True), help="Activation peak, non-torch memory and graphs per rank.")
@click.option("--concurrency", type=Number(), metavar="N", help="Requests that must run at once.")
@click.option("--context", type=Count(), metavar="TOKENS", help="Tokens per request [default: the longest context].")
@click.option(
    "--device", metavar="NAME", callback=_device,
    help="The card, such as H100, A100, B200, cpu [default: by --total-memory].",
)  # fmt: skip
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
    _refuse_misspelt(flags.unused)
    options["device"] = options["device"] or _platform(flags.unused.get("device"))
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
    put(render_json(budgets) if output == "json" else render(budgets, flags, width=width()))
    verdicts = [budget.fits for budget in budgets]
    sys.exit(1 if False in verdicts else 3 if None in verdicts else 0)


_PLATFORMS = ("auto", "cuda", "rocm", "cpu")
_OTHER_PLATFORMS = ("hpu", "neuron", "openvino", "tpu", "xpu")


def _platform(device: Any) -> str | None:
    """Return the card that vLLM's own `--device` (a platform, in releases that have it) means, or None for any."""
    if device is None or device in _PLATFORMS:
        return "cpu" if device == "cpu" else None
    if device in _OTHER_PLATFORMS:
        raise click.UsageError(
            f"--device {device}: the rules of that platform are not modelled, only CUDA, ROCm and CPU"
        )
    known = ", ".join(sorted((*_PLATFORMS, *_OTHER_PLATFORMS)))
    raise click.UsageError(f"--device {str(device)[:100]!r} of `vllm serve` is not known: known are {known}")


def _refuse_misspelt(unused: Iterable[str]) -> None:
    """Refuse a flag that looks like a known one: a typo must not pass for a flag without effect."""
    from difflib import get_close_matches

    from vlogcheck.budget._flagtypes import known_kind
    from vlogcheck.budget.flags import ServeOptions

    names = [field.name for field in fields(ServeOptions) if field.name != "unused"]
    for name in unused:
        if known_kind(name) is None and (close := get_close_matches(name, names, 1, 0.88)):
            given, meant = (f"--{each.replace('_', '-')}" for each in (name, close[0]))
            raise click.UsageError(f"{given} is no flag of `vllm serve` known here: did you mean {meant}?")


def _model_name(config: str) -> str:
    path = os.path.abspath(config)
    base = os.path.basename(path)
    if base == "config.json" or not base:
        return os.path.basename(os.path.dirname(path))
    return base.removesuffix(".json")
