"""Parameter types and what the commands share."""

from __future__ import annotations

import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # generic from click 8.2 on only


class Size(_ParamType):
    name = "size"
    signed = False

    def __init__(self, *, memory: bool = False, card: bool = False) -> None:
        self.memory = memory or card
        """Whether it is memory of a card, so that `80` can only be a forgotten unit."""
        self.card = card
        """Whether it is all memory of a card, so that there is some."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from vlogcheck._sizes import parse_size
        from vlogcheck.units import Interval, SizeError

        if isinstance(value, Interval):
            return value
        try:
            size = parse_size(value, signed=self.signed)
        except SizeError as error:
            self.fail(str(error), param, ctx)
        if self.memory and isinstance(value, str) and value.strip().isdigit() and 0 < size.hi < 1 << 20:
            self.fail(f"{value} is that many bytes: say {value}GiB if you mean it", param, ctx)
        if self.card and size.hi <= 0:
            self.fail(f"{value} is no card's memory", param, ctx)
        return size


class Sizes(Size):
    """Several sizes with commas between them. A thousands comma (`1,024`) is no separator: sizes here are plain."""

    name = "size[,size…]"
    signed = True  # vLLM itself prints negative KV cache memory when the weights alone exceed the budget

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        convert = super().convert
        return [convert(part, param, ctx) for part in value.strip("[]").split(",")]


class Duration(_ParamType):
    """A time such as 90, 90s, 15m or 1h30m, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", value.strip())
        if not match or not value.strip():
            self.fail(f"{value!r} is not a time: give seconds or something like 90s, 15m, 1h30m", param, ctx)
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds


class Number(click.FloatRange):
    """A number, with a message that says what one looks like."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(0, most, min_open=True)
        self.example = "16" if most is None else "0.9"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number <= (self.max or 1e15):
            bounds = f"above 0 and at most {self.max:g}" if self.max else "above 0 and below 1e15"
            self.fail(f"{value!r} is no number {bounds}: give something like {self.example}", param, ctx)
        return number


class Count(click.IntRange):
    """A whole number of tokens. `4k` is refused: it may be 4,000 or 4,096, and the ledger is exact."""

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        plain = text.replace(",", "").replace("_", "") if re.fullmatch(r"\d{1,3}([,_]\d{3})+", text) else text
        if short := re.fullmatch(r"(\d{1,9})\s*([km])", text, re.IGNORECASE):
            power = 1 if short[2] in "kK" else 2
            either = f"{int(short[1]) * 1000**power} or {int(short[1]) * 1024**power}"
            self.fail(f"{text!r} can be {either}: write the number", param, ctx)
        if not re.fullmatch(r"\d{1,15}", plain) or not int(plain):
            self.fail(f"{text[:60]!r} is no whole number above 0: give something like 4096", param, ctx)
        return int(plain)


class WithFlags(click.Command):
    """Keeps what stands after `--` apart: the flags of `vllm serve`, or the server's command, as given."""

    rest = "[-- FLAGS OF VLLM SERVE…]"
    """What goes after `--`, for the usage line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta["vllm.flags"] = args[:at], args[at + 1 :]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.possibilities and "vllm.flags" not in ctx.meta:
                text = f"{error.format_message()} Options of `vllm serve` go after --."
                raise click.UsageError(text, ctx) from None
            raise

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), self.rest]


def worst(codes: list[int]) -> int:
    """Fail beats inconclusive beats pass."""
    return 1 if 1 in codes else max(codes, default=0)


def use_colour(stream: Any = None) -> bool:
    """Whether what goes to a stream (default: standard output) may be coloured."""
    return (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(stream: Any = None) -> int | None:
    """Return the columns to fold at: those of the terminal, None where the output goes elsewhere."""
    if not (stream or sys.stdout).isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def say(event: Any) -> None:
    """Tell a waiting person what goes on, on standard error."""
    if event.kind == "phase" or sys.stderr.isatty():
        from vlogcheck.cli._output import put

        put(f"{event.seconds:7.1f} s  {event.text}", err=True)
