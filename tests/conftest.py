from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("VLOGCHECK_SHARED", ROOT.parent / "shared"))
"""Folder with logs and reference values that are not part of the project; tests skip without it."""


def shared(*parts: str) -> Path:
    """A path in the shared folder; skips the calling test, visibly, where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {path}: set VLOGCHECK_SHARED to the folder that holds it", allow_module_level=True)
    return path
