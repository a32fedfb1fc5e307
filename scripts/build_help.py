"""Write docs/commands.md: what `--help` says of every command. Run it after an option was added or reworded.

The file is kept so that it can be read without installing anything; a test compares it with the commands.
"""

from __future__ import annotations

from pathlib import Path

import click

from vlogcheck import cli

TARGET = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = "# Commands\n\nWhat `--help` says. `vlogcheck LOG…` without a command is `vlogcheck check LOG…`.\n"


def text() -> str:
    """Return the page."""
    parts = [HEAD]
    group = cli._cli
    outer = click.Context(group)
    for name in group.list_commands(outer):
        command = group.get_command(outer, name)
        assert command is not None
        context = click.Context(
            command, info_name=f"vlogcheck {name}", terminal_width=100, help_option_names=["-h", "--help"]
        )
        parts.append(f"\n## vlogcheck {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
