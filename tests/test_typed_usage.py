from __future__ import annotations

import subprocess
import sys

from . import typed_usage
from .conftest import ROOT

LOG = ROOT / "fixtures" / "logs" / "written" / "deepseek-r1-distill-qwen-32b-bf16-tp4.log"


def test_sample_works() -> None:
    assert typed_usage.promised(LOG) == 152.41
    assert typed_usage.gate(LOG, ROOT / "fixtures" / "models" / "deepseek-r1-distill-qwen-32b") == []
    assert typed_usage.tightest_pool(LOG) is None  # this release does not print it
    assert len(typed_usage.pushed(LOG.read_bytes())) > 10


def test_sample_is_typed() -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "tests/typed_usage.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
