"""The command as a process of its own: what the installed script and `python -m vlogcheck` run."""

from __future__ import annotations

import gc
import os

__all__ = ["process"]


def process() -> None:
    """Run the command and end the process."""
    # Walking what lives as long as the process, imports to begin with, was a tenth of the run of a small log.
    gc.set_threshold(200_000)
    from vlogcheck.cli import status_of

    status = status_of()
    # Everything is written, and taking the interpreter apart would hold up who waits for the verdict.
    os._exit(status)
