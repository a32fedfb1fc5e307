"""The planned ledger for people: its first line says what decides, and nothing is claimed that the model cannot do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DENSE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
    "vocab_size": 151936, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip
ENCODER: dict[str, Any] = {
    "architectures": ["BertModel"], "model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768,
    "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
    "torch_dtype": "float32",
}  # fmt: skip


def budget(folder: Path, config: dict[str, Any], words: str) -> tuple[int, str, str]:
    path = folder / f"{config['model_type']}.json"
    path.write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "vlogcheck", "budget", str(path), *words.split()],
        capture_output=True, cwd=ROOT, check=False, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def test_the_first_line_says_what_decides(tmp_path: Path) -> None:
    asked = "--available-kv-memory 7GiB --context 4096 --concurrency"
    status, text, _ = budget(tmp_path, DENSE, f"{asked} 16")
    assert status == 0
    assert text.startswith("qwen3: fits: the KV cache holds 16.00 requests of 4,096 tokens, 16 asked for\n")
    status, text, _ = budget(tmp_path, DENSE, f"{asked} 17")
    assert status == 1
    assert text.startswith("qwen3: does not fit: the KV cache holds 16.00 requests of 4,096 tokens, 17 asked for\n")


def test_requests_longer_than_the_model_serves_do_not_fit(tmp_path: Path) -> None:
    status, text, _ = budget(tmp_path, DENSE, "--available-kv-memory 70GiB --context 16384 --concurrency 2")
    assert status == 1
    assert "requests of 16,384 tokens are refused, max_model_len is 8,192" in text.splitlines()[0]
    assert budget(tmp_path, DENSE, "--available-kv-memory 70GiB --context 8192 --concurrency 2")[0] == 0


def test_a_model_without_kv_cache_runs_out_of_none(tmp_path: Path) -> None:
    status, text, _ = budget(tmp_path, ENCODER, "--total-memory 16GiB --concurrency 64 --context 400")
    assert status == 0, text
    assert "no KV cache" in text.splitlines()[0]


def test_what_the_scheduler_runs_is_beside_what_the_cache_holds(tmp_path: Path) -> None:
    words = "--available-kv-memory 70GiB --device A100 --context 512 --concurrency 600 --"
    _, text, _ = budget(tmp_path, DENSE, f"{words} --max-num-seqs 64")
    assert "requests the scheduler runs at once" in text
    assert "--max-num-seqs 600 lets all of them run" in text
    _, text, _ = budget(tmp_path, DENSE, f"{words} --max-num-seqs 600")
    assert "lets all of them run" not in text


def test_a_pool_without_activation_is_called_a_bound(tmp_path: Path) -> None:
    said = "nothing set aside for activation and graphs"
    assert said in budget(tmp_path, DENSE, "--total-memory 24GiB")[1].splitlines()[0]
    assert said not in budget(tmp_path, DENSE, "--total-memory 24GiB --other-memory 2GiB")[1].splitlines()[0]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--device potato", "known are auto, cpu, cuda"),
        ("--device tpu", "not modelled"),
        ("--dtype potato", "known are auto, bfloat16"),
        ("--kv-cache-dtype potato", "known are auto, bfloat16"),
    ],
)
def test_a_value_that_vllm_does_not_take_is_a_usage_error(tmp_path: Path, flags: str, says: str) -> None:
    status, _, error = budget(tmp_path, DENSE, f"--total-memory 24GiB -- {flags}")
    assert status == 2
    assert says in error


def test_lines_are_folded_at_the_terminal(tmp_path: Path) -> None:
    from vlogcheck._sizes import parse_size
    from vlogcheck.budget.answer import answer
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import load_model_config
    from vlogcheck.report.budget import render

    options = ServeOptions(max_model_len=4096)
    found = [
        answer(load_model_config(config), options, name=name, total_memory=parse_size("24GiB"), concurrency=16)
        for name, config in (("dense", DENSE), ("encoder", ENCODER))
    ]
    for budgets in (found[:1], found[1:], found):
        narrow = render(budgets, options, width=80)
        assert sorted(narrow.split()) == sorted(render(budgets, options).split())
        assert [line for line in narrow.splitlines() if len(line) > 80 and budgets is not found] == []
