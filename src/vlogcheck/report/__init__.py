"""Reporters: one module per output format, chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.api import Report

__all__ = ["REPORTERS", "reporter"]

REPORTERS = {"text": "vlogcheck.report.text", "json": "vlogcheck.report.json"}
"""Module by format name; each has `render(report, *, colour=False, verbose=False) -> str`."""


def reporter(name: str) -> Callable[..., str]:
    """Return the function that renders a report in a format. Raises `KeyError` for an unknown one."""
    render: Callable[[Report], str] = import_module(REPORTERS[name]).render
    return render
