"""The command: translates arguments to library calls and results to exit codes, nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

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


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # generic from click 8.2 on only


class _Size(_ParamType):
    name = "size"
    signed = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from vlogcheck.units import Interval, SizeError, parse_size

        if isinstance(value, Interval):
            return value
        try:
            return parse_size(value, signed=self.signed)
        except SizeError as error:
            self.fail(str(error), param, ctx)


class _Sizes(_Size):
    """Several sizes with commas between them. A thousands comma (`1,024`) is no separator: sizes here are plain."""

    name = "size[,size…]"
    signed = True  # vLLM itself prints negative KV cache memory when the weights alone exceed the budget

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        convert = super().convert
        return [convert(part, param, ctx) for part in value.strip("[]").split(",")]


class _Duration(_ParamType):
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


_MOST_REPORTS = 8
"""Logs up to which each gets its own report."""


_QUESTION = (
    click.option(
        "--expect-concurrency", type=click.FloatRange(0, min_open=True), help="Requests that must run at once."
    ),
    click.option("--context", type=click.IntRange(1), help="Tokens per request [default: the log's own length]."),
    click.option("--expect-tokens", type=click.IntRange(1), help="Tokens the KV cache of one engine must hold."),
    click.option("--expect-weights", "--weights", type=_Size(), help="Weights per rank, such as 15.4GiB."),
    click.option(
        "--expect-kv-bytes-per-token",
        "--kv-bytes-per-token",
        type=_Size(),
        help="KV cache bytes per token, such as 64KiB.",
    ),
    click.option("--total-memory", type=_Size(), help="Device memory in total, such as 65520MiB."),
    click.option(
        "--gpu-memory-utilization", type=click.FloatRange(0, 1, min_open=True), help="Share vLLM was to take."
    ),
    click.option("--shared-card", is_flag=True, help="Other programs use the card too."),
    click.option("--model-config", type=click.Path(), help="The model's config.json or a directory holding one."),
    click.option(
        "--smi",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Saved output of nvidia-smi, rocm-smi --showmeminfo vram or npu-smi info, taken while it serves.",
    ),
    click.option(
        "--metrics",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Saved /metrics page of the server.",
    ),
    click.option(
        "--select", multiple=True, metavar="CODE", help="Only these checks (VL4 means all VL4xx). Repeatable."
    ),
    click.option("--ignore", multiple=True, metavar="CODE", help="Not these checks. Repeatable."),
    click.option(
        "--fail-on",
        type=click.Choice(["note", "warning", "error"]),
        default="error",
        show_default=True,
        help="Lowest severity that fails.",
    ),
    click.option("--strict", is_flag=True, help="Inconclusive when any check was skipped."),
    click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option("--verbose", "-v", is_flag=True, help="Show all reasons for skipped checks."),
)


def _question(command: Any) -> Any:
    """Add the options that say what is asked of a log: shared by the commands that judge one."""
    for option in reversed(_QUESTION):
        command = option(command)
    return command


@_cli.command("check")
@click.argument("logs", nargs=-1, required=True, metavar="LOG…")
@_question
@click.option(
    "--follow", "-f", is_flag=True, help="Watch a growing log (or `-`) and exit the moment the verdict is known."
)
@click.option(
    "--until", type=click.Choice(["decided", "ready"]), default="decided", help="With --follow: what a pass waits for."
)
@click.option("--timeout", type=_Duration(), help="With --follow: inconclusive after this long, such as 15m or 90s.")
@click.option(
    "--tee",
    is_flag=True,
    help="With --follow: pass the log through to standard output; the report goes to standard error.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes for many logs [default: all cores].")
def _check(logs: tuple[str, ...], output: str, verbose: bool, **options: Any) -> None:
    """Check each LOG: a file (.gz, .zst, .xz and .bz2 are read as they are), a directory, or `-` for standard input.

    Rotated parts named together (serve.log serve.log.1) are one log. More than eight logs end in a table, worst first.
    """
    live = {name: options.pop(name) for name in ("follow", "until", "timeout", "tee", "jobs")}
    arguments = _arguments(options)
    if live["follow"]:
        sys.exit(_follow(logs, arguments, output, verbose, live))
    for name in ("timeout", "tee"):
        if live[name]:
            raise click.UsageError(f"--{name} goes with --follow")
    from vlogcheck.files import expand_paths

    sets = expand_paths(logs)
    if len(sets) > _MOST_REPORTS:
        sys.exit(_many(sets, arguments, output, live["jobs"]))
    from vlogcheck.api import Inquiry, read
    from vlogcheck.report import reporter

    render = reporter(output)
    inquiry = Inquiry(**arguments)
    codes = []
    for number, item in enumerate(sets):
        report = inquiry.report(read(item.paths if len(item.paths) > 1 else item.paths[0]))
        if number and output == "text":
            click.echo()
        click.echo(render(report, colour=_colour(), verbose=verbose))
        codes.append(report.exit_code)
    sys.exit(_worst(codes))


def _follow(logs: tuple[str, ...], arguments: dict[str, Any], output: str, verbose: bool, live: dict[str, Any]) -> int:
    """Watch one log; return the exit status."""
    from vlogcheck.live import watch
    from vlogcheck.report import reporter

    if len(logs) != 1:
        raise click.UsageError("--follow watches one LOG")
    source: Any = os.fdopen(0, "rb", buffering=0, closefd=False) if logs[0] == "-" else logs[0]
    expect, model = arguments.pop("expect"), arguments.pop("model")
    report = watch(
        source, expect, live["timeout"], model=model, until=live["until"], on_event=_say,
        on_bytes=_pass_through if live["tee"] else None, **arguments,
    )  # fmt: skip
    click.echo(reporter(output)(report, colour=_colour(), verbose=verbose), err=live["tee"])
    return report.exit_code


def _say(event: Any) -> None:
    """Tell a waiting person what goes on, on standard error."""
    if event.kind == "phase" or sys.stderr.isatty():
        click.echo(f"{event.seconds:7.1f} s  {event.text}", err=True)


def _pass_through(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _many(sets: Any, arguments: dict[str, Any], output: str, jobs: int | None) -> int:
    """Check many logs on all cores; a table for people, one JSON object per log for programs."""
    from vlogcheck.many import check_many, table

    summaries = []
    with click.progressbar(length=len(sets), label="checking", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for item in check_many((each.paths for each in sets), arguments, jobs=jobs):
            bar.update(1)
            if output == "json":
                click.echo(json.dumps(item.to_dict(), ensure_ascii=False))
            summaries.append(item)
    if output == "text":
        click.echo("\n".join(table(summaries)))
    return _worst([item.exit_code for item in summaries])


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
@click.option(
    "--env", multiple=True, callback=_assignment, metavar="NAME=VALUE", help="A vLLM environment variable. Repeatable."
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def _budget(ctx: click.Context, /, configs: tuple[str, ...], output: str, **options: Any) -> None:
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


@_cli.command("run", cls=_WithFlags)
@_question
@click.option(
    "--timeout", type=_Duration(), help="Stop the server when there is no verdict after this long, such as 15m."
)
@click.option("--until", type=click.Choice(["decided", "ready"]), default="decided", help="What a pass waits for.")
@click.option("--keep", is_flag=True, help="Leave the server running in the background after a pass.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False),
    help="With --keep: the server's output goes here [default: vllm-<time>.log].",
)
@click.option(
    "--grace", type=_Duration(), default="10s", show_default=True, help="Time a stopped server has before it is killed."
)
@click.pass_context
def _run(ctx: click.Context, /, output: str, verbose: bool, **options: Any) -> None:
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
        command, Inquiry(**_arguments(options)), timeout=options["timeout"], keep=keep, until=options["until"],
        grace=options["grace"], on_event=_say, on_bytes=_pass_through,
        on_report=lambda report: click.echo(render(report, colour=False, verbose=verbose), err=True),
    )  # fmt: skip
    if result.kept:
        click.echo(f"vlogcheck: the server goes on as process {result.pid}, its output in {keep}", err=True)
    sys.exit(result.exit_status)


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
