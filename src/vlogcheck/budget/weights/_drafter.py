"""Parameters a drafter adds to the last pipeline stage."""

from __future__ import annotations

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder

__all__ = ["build_drafter"]


def build_drafter(build: Builder, model: ModelConfig, options: ServeOptions) -> int:
    """Add the drafter's tensors; returns the bytes of its parameters (0 without one)."""
    return 0
