"""The command: translates arguments to library calls and results to exit codes, nothing else."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from vlogcheck import __version__
from vlogcheck.cli._output import finish, prepare, put

__all__ = ["check_arguments", "main", "status_of"]

USAGE_ERROR = 2
_LONGEST_MESSAGE = 2000

_COMMANDS = {
    "check": "_check:command",
    "budget": "_budget:command",
    "diff": "_diff:command",
    "explain": "_info:explain",
    "list": "_info:list_",
    "parse": "_info:parse",
    "run": "_run:command",
}
"""Command to module and name: imported when it is used, so that none pays for another."""


class _Commands(click.Group):
    """Makes `vlogcheck LOG …` the check, so that the command most people want needs no name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _COMMANDS.get(cmd_name)
        if home is None:
            return None
        module, _, name = home.partition(":")
        command: click.Command = getattr(import_module(f"vlogcheck.cli.{module}"), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in _COMMANDS and args[0] not in ("--help", "-h", "--version"):
            self._refuse_misspelt(args[0])
            args = ["check", *args]
        return super().parse_args(ctx, args)

    @staticmethod
    def _refuse_misspelt(word: str) -> None:
        """Tell a mistyped command from a log that does not exist."""
        if word.isalpha() and not os.path.exists(word):
            from difflib import get_close_matches

            if close := get_close_matches(word, _COMMANDS, 1, 0.7):
                raise click.UsageError(
                    f"there is no command and no file {word!r}: did you mean `vlogcheck {close[0]}`?"
                )


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"vlogcheck {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def _cli() -> None:
    """Check the memory ledger a vLLM server printed while starting against the one you computed.

    `vlogcheck LOG --expect-concurrency 16` is the check: exit status 0 pass, 1 fail, 2 usage or unreadable input,
    3 inconclusive. `vlogcheck COMMAND --help` says more.
    """


def check_arguments(words: list[str]) -> dict[str, Any]:
    """Return the arguments of `vlogcheck.check` that the command would make of these options (without a log)."""
    from vlogcheck.cli import _check

    return _check.check_arguments(words)


def main(arguments: list[str] | None = None) -> None:
    """Run the command. Exits with 0 pass, 1 fail, 2 usage or unreadable input, 3 inconclusive."""
    if arguments is None:  # a script's own call: see `vlogcheck._process` for what is faster still
        import atexit
        import gc

        gc.set_threshold(50_000)
        atexit.register(gc.freeze)  # leaving, the interpreter collects twice
    sys.exit(status_of(arguments))


def status_of(arguments: list[str] | None = None) -> int:
    """Run the command, write everything out, return the exit status."""
    prepare()
    return finish(_execute(arguments))


def _told(error: OSError | ValueError) -> str:
    """Return an error's text without Python's own decoration."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
    return f"{where}: {error.strerror}" if where is not None else error.strerror


def _execute(arguments: list[str] | None) -> int:
    """Run the command; return its exit status."""
    try:
        _cli.main(args=arguments, prog_name="vlogcheck", standalone_mode=False)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0 if done.code is None else USAGE_ERROR
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        text = error.format_message()
        if len(text) > _LONGEST_MESSAGE:  # it repeats what was given
            text = f"{text[: _LONGEST_MESSAGE // 2]} … {text[-_LONGEST_MESSAGE // 2 :]}"
            error = click.UsageError(text, getattr(error, "ctx", None))
        with suppress(BrokenPipeError):
            error.show()
        return USAGE_ERROR
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:  # the reader (head, less) left, and there is no verdict to tell
        return 0
    except (OSError, ValueError) as error:
        put(f"vlogcheck: {_told(error)[:_LONGEST_MESSAGE]}", err=True)
        return USAGE_ERROR
    except MemoryError:
        put("vlogcheck: not enough memory", err=True)
        return USAGE_ERROR
    return 0
