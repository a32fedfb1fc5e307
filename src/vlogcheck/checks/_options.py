"""What the option checks share: what was asked for, and what the engine says it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlogcheck.startup import Startup

__all__ = ["asked", "asked_line", "resolved", "whole"]


def asked(startup: Startup, name: str) -> Any:
    """Return an argument the server was started with; None where it was not given or is not printed."""
    return startup.args.get(name)


def asked_line(startup: Startup) -> int | None:
    """Return the line that prints the arguments, or None."""
    from vlogcheck.records import ServerArgs

    record = startup.last(ServerArgs)
    return record.line if record is not None else None


def resolved(startup: Startup, name: str) -> Any:
    """Return a value of the engine's banner; None where it has none."""
    config = startup.config
    if config is None or not isinstance(config.config, dict):
        return None
    return config.config.get(name)


def whole(value: Any) -> int | None:
    """Return a positive whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
