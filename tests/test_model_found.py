"""A model path in the log that exists here is read: nobody has to name the configuration twice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from vlogcheck import check

if TYPE_CHECKING:
    from pathlib import Path

LOG = ROOT / "fixtures" / "logs" / "written" / "deepseek-r1-distill-qwen-32b-bf16-tp4.log"
CONFIG = ROOT / "fixtures" / "models" / "deepseek-r1-distill-qwen-32b" / "config.json"
NAME = "/srv/models/DeepSeek-R1-Distill-Qwen-32B"


def skipped(log: bytes, **arguments: object) -> set[str]:
    return {item.code for item in check(log, **arguments).skipped}  # type: ignore[arg-type]


def test_a_model_path_that_exists_here_is_read(tmp_path: Path) -> None:
    shutil.copyfile(CONFIG, tmp_path / "config.json")
    text = LOG.read_text("utf-8")
    here = text.replace(NAME, str(tmp_path))
    assert here != text
    without, found = skipped(text.encode()), skipped(here.encode())
    assert without > found, "with the configuration more can be checked"
    assert found == skipped(text.encode(), model=CONFIG)


def test_a_model_path_without_a_configuration_is_none(tmp_path: Path) -> None:
    text = LOG.read_text("utf-8")
    assert skipped(text.replace(NAME, str(tmp_path)).encode()) == skipped(text.encode())
