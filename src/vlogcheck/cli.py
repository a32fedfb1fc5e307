"""The command: translates arguments to library calls and results to exit codes, nothing else."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

__all__ = ["check_arguments", "main"]

USAGE_ERROR = 2


class _Commands(click.Group):
    """Makes `vlogcheck LOG …` the check, so that the command most people want needs no name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["check", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h", "--version"):
            args = ["check", *args]
        return super().parse_args(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"vlogcheck {version('vlogcheck')}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def _cli() -> None:
    """Check the memory ledger a vLLM server printed while starting against the one you computed.

    `vlogcheck LOG --expect-concurrency 16` is the check; exit status 0 pass, 1 fail, 2 usage or unreadable input,
    3 inconclusive.
    """


class _Size(click.ParamType):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from vlogcheck.units import Interval, SizeError, parse_size

        if isinstance(value, Interval):
            return value
        try:
            return parse_size(value)
        except SizeError as error:
            self.fail(str(error), param, ctx)


class _Sizes(_Size):
    """Several sizes with commas between them. A thousands comma (`1,024`) is no separator: sizes here are plain."""

    name = "size[,size…]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        convert = super().convert
        return [convert(part, param, ctx) for part in value.strip("[]").split(",")]


@_cli.command("check")
@click.argument("logs", nargs=-1, required=True, metavar="LOG…")
@click.option("--expect-concurrency", type=click.FloatRange(0, min_open=True), help="Requests that must run at once.")
@click.option("--context", type=click.IntRange(1), help="Tokens per request [default: the log's own length].")
@click.option("--expect-tokens", type=click.IntRange(1), help="Tokens the KV cache of one engine must hold.")
@click.option("--expect-weights", "--weights", type=_Size(), help="Weights per rank, such as 15.4GiB.")
@click.option(
    "--expect-kv-bytes-per-token", "--kv-bytes-per-token", type=_Size(), help="KV cache bytes per token, such as 64KiB."
)
@click.option("--total-memory", type=_Size(), help="Device memory in total, such as 65520MiB.")
@click.option("--gpu-memory-utilization", type=click.FloatRange(0, 1, min_open=True), help="Share vLLM was to take.")
@click.option("--shared-card", is_flag=True, help="Other programs use the card too.")
@click.option("--model-config", type=click.Path(), help="The model's config.json or a directory holding one.")
@click.option(
    "--smi", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="Saved output of nvidia-smi, rocm-smi --showmeminfo vram or npu-smi info, taken while it serves.",
)  # fmt: skip
@click.option(
    "--metrics", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Saved /metrics page of the server."
)
@click.option("--select", multiple=True, metavar="CODE", help="Only these checks (VL4 means all VL4xx). Repeatable.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Not these checks. Repeatable.")
@click.option(
    "--fail-on", type=click.Choice(["note", "warning", "error"]), default="error", show_default=True,
    help="Lowest severity that fails.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Inconclusive when any check was skipped.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Show all reasons for skipped checks.")
def _check(logs: tuple[str, ...], output: str, verbose: bool, **options: Any) -> None:
    """Check each LOG (`-` is standard input; .gz, .zst, .xz and .bz2 are read as they are)."""
    from vlogcheck.api import check
    from vlogcheck.report import reporter

    arguments = _arguments(options)
    render = reporter(output)
    codes = []
    for number, log in enumerate(logs):
        report = check(log, **arguments)
        if number and output == "text":
            click.echo()
        click.echo(render(report, colour=_colour(), verbose=verbose))
        codes.append(report.exit_code)
    sys.exit(_worst(codes))


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as arguments of `vlogcheck.check`."""
    from vlogcheck.expect import Expectation

    expectation = Expectation(
        concurrency=options["expect_concurrency"], context=options["context"], tokens=options["expect_tokens"],
        weights=options["expect_weights"], kv_bytes_per_token=options["expect_kv_bytes_per_token"],
        total_memory=options["total_memory"], gpu_memory_utilization=options["gpu_memory_utilization"],
        shared_card=options["shared_card"],
    )  # fmt: skip
    return {
        "expect": expectation,
        "model": options["model_config"],
        "select": _split(options["select"]),
        "ignore": _split(options["ignore"]),
        "fail_on": options["fail_on"],
        "strict": options["strict"],
        "smi": options["smi"],
        "metrics": options["metrics"],
    }


def check_arguments(words: list[str]) -> dict[str, Any]:
    """Return the arguments of `vlogcheck.check` that the command would make of these options (without a log)."""
    options = _check.make_context("vlogcheck", [*words, "-"]).params
    return _arguments(options)


def _worst(codes: list[int]) -> int:
    """Fail beats inconclusive beats pass."""
    return 1 if 1 in codes else max(codes, default=0)


def _split(values: tuple[str, ...]) -> list[str]:
    return [code for value in values for code in value.split(",")]


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class _WithFlags(click.Command):
    """Keeps what stands after `--` apart: the flags of `vllm serve`, as given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta["vllm.flags"] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)


def _assignment(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    environment = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        environment[name] = setting
    return environment


@_cli.command("budget", cls=_WithFlags)
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG…")
@click.option("--vllm", metavar="RELEASE", help="vLLM release whose rules are followed [default: the newest known].")
@click.option(
    "--available-kv-memory", type=_Sizes(), multiple=True,
    help="KV cache memory per rank, such as 60.31GiB or whole bytes; several (repeated or with commas) for the stages of a pipeline.",
)  # fmt: skip
@click.option("--total-memory", type=_Size(), help="Device memory in total, such as 65520MiB.")
@click.option("--other-memory", type=_Size(), help="Activation peak, non-torch memory and graphs per rank.")
@click.option("--concurrency", type=click.FloatRange(0, min_open=True), help="Requests that must run at once.")
@click.option("--context", type=click.IntRange(1), help="Tokens per request [default: the longest context].")
@click.option("--device", metavar="NAME", help="The card, such as H100, A100, B200, cpu [default: an H100-class card].")
@click.option("--env", multiple=True, callback=_assignment, metavar="NAME=VALUE", help="A vLLM environment variable. Repeatable.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def _budget(ctx: click.Context, configs: tuple[str, ...], output: str, **options: Any) -> None:
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


@_cli.command("parse")
@click.argument("log")
@click.option(
    "--unrecognised", is_flag=True, help="List memory-looking lines that no template knows, instead of records."
)
def _parse(log: str, unrecognised: bool) -> None:
    """Print one JSON object per record of LOG (`-` is standard input)."""
    from vlogcheck.api import parse

    write = sys.stdout.write

    def show(line: Any) -> None:
        if unrecognised:
            write(
                json.dumps({"line": line.number, "message": line.message, "process": line.process}, ensure_ascii=False)
                + "\n"
            )

    for record in parse(log, on_unrecognised=show):
        if not unrecognised:
            write(json.dumps(record.to_dict(), ensure_ascii=False, default=str) + "\n")


@_cli.command("explain")
@click.argument("code")
def _explain(code: str) -> None:
    """Print the page of a check, such as VL401."""
    from vlogcheck.registry import all_checks

    checks = all_checks()
    item = checks.get(code.upper()) or next((c for c in checks.values() if c.name == code), None)
    if item is None:
        raise click.UsageError(f"no check is called {code}: see `vlogcheck list checks`")
    click.echo(item.page.rstrip())


@_cli.command("list")
@click.argument("what", type=click.Choice(["checks", "records"]))
def _list(what: str) -> None:
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
            rows.append((name, str(len(record.templates)), ", ".join(record.field_names()) or "–", doc))  # type: ignore[arg-type]
        header = ("record", "wordings", "fields", "meaning")  # type: ignore[assignment]
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def main(arguments: list[str] | None = None) -> None:
    """Run the command. Exits with 0 pass, 1 fail, 2 usage or unreadable input, 3 inconclusive."""
    try:
        _cli.main(args=arguments, prog_name="vlogcheck", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE_ERROR)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except BrokenPipeError:
        # The reader (head, less) left: say nothing, and keep the interpreter from failing on its own flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (OSError, ValueError) as error:
        click.echo(f"vlogcheck: {error}", err=True)
        sys.exit(USAGE_ERROR)


if __name__ == "__main__":
    main()
