"""Options with values nobody means: a usage error that names the value and stays short, never a traceback."""

from __future__ import annotations

import json

import pytest

from vlogcheck._sizes import parse_size
from vlogcheck.budget.answer import answer
from vlogcheck.budget.flags import parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.cli import status_of
from vlogcheck.expect import Expectation, ExpectationError
from vlogcheck.report.budget import render, render_json
from vlogcheck.units import Interval

from .conftest import ROOT

MODEL = ROOT / "fixtures/models/qwen3-0.6b/config.json"
SERVED = ROOT / "fixtures/logs/0.24.0/llama-load.log"


@pytest.mark.parametrize("size", ["0", "0GiB", "0MB"])
@pytest.mark.parametrize("words", [["budget", MODEL], ["check", SERVED]], ids=["budget", "check"])
def test_a_card_has_memory(words: list[object], size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of([*map(str, words), "--total-memory", size]) == 2
    assert f"{size} is no card's memory" in capsys.readouterr().err


@pytest.mark.parametrize("total", [0, "0GiB", Interval(0, 0)])
def test_a_card_that_is_expected_has_memory(total: Interval | str | int) -> None:
    with pytest.raises(ExpectationError, match="no card's memory"):
        Expectation(total_memory=total)


@pytest.mark.parametrize("total", ["0GiB", "1KiB", "100MiB", "600MiB"])
def test_the_budget_of_a_card_smaller_than_its_reserve(total: str) -> None:
    flags = parse_serve_flags([])
    budget = answer(load_model_config(MODEL), flags, name="x", total_memory=parse_size(total))
    assert not budget.advice
    json.loads(render_json([budget]), parse_constant=pytest.fail)
    assert "GiB" in render([budget], flags)


@pytest.mark.parametrize(
    "words",
    [["check", SERVED, "--expect-concurrency"], ["check", SERVED, "--format"], ["budget", MODEL, "--env"], ["explain"]],
    ids=lambda words: str(words[-1]),
)
def test_a_value_of_thousands_of_characters_is_not_repeated(
    words: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of([*map(str, words), "9" * 20_000]) == 2
    assert 0 < len(capsys.readouterr().err) < 2_500
