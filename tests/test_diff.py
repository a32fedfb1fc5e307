"""Two start-ups compared: the term that was changed is the one that is named, and the sum closes."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vlogcheck
from tests.conftest import shared
from vlogcheck._changes import CHANGES, changes_between
from vlogcheck.budget.releases import parse_release
from vlogcheck.cli import main
from vlogcheck.compare import Diff, diff

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
PER_TOKEN = 64 << 10
BLOCK = 16


def v0(
    weights: int, non_torch: int, activation: int, *, share: str = "0.90", total: int = 8000, per_token: int = PER_TOKEN
) -> bytes:
    """A start-up of 0.8.5 (V0) whose terms are given in hundredths of GiB."""
    requested = Fraction(total, 100) * Fraction(share)
    pool = requested - Fraction(weights + non_torch + activation, 100)
    blocks = int(pool * GIB // (per_token * BLOCK))
    lines = [
        "INFO 03-01 10:00:00 [llm_engine.py:240] Initializing a V0 LLM engine (v0.8.5) with config: model='m',"
        " dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1",
        f"INFO 03-01 10:00:05 [model_runner.py:1146] Model loading took {weights / 100:.4f} GiB and 4.1 seconds",
        "INFO 03-01 10:00:09 [worker.py:267] Memory profiling takes 3.21 seconds",
        "INFO 03-01 10:00:09 [worker.py:267] the current vLLM instance can use total_gpu_memory"
        f" ({total / 100:.2f}GiB) x gpu_memory_utilization ({share}) = {float(requested):.2f}GiB",
        f"INFO 03-01 10:00:09 [worker.py:267] model weights take {weights / 100:.2f}GiB; non_torch_memory takes"
        f" {non_torch / 100:.2f}GiB; PyTorch activation peak memory takes {activation / 100:.2f}GiB; the rest of the memory"
        f" reserved for KV Cache is {float(pool):.2f}GiB.",
        f"INFO 03-01 10:00:09 [executor_base.py:112] # cuda blocks: {blocks}, # CPU blocks: 0",
        "INFO 03-01 10:00:09 [executor_base.py:117] Maximum concurrency for 4096 tokens per request:"
        f" {blocks * BLOCK / 4096:.2f}x",
        "INFO:     Application startup complete.",
    ]
    return ("\n".join(lines) + "\n").encode()


def v1(version: str, available: str, tokens: int, *, graphs: str | None = None, length: int = 4096) -> bytes:
    lines = [
        f"INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v{version}) with config: model='m',"
        f" dtype=torch.bfloat16, max_seq_len={length}, enforce_eager={graphs is None}",
        "INFO 03-01 10:00:05 [gpu_model_runner.py:2392] Model loading took 15.27 GiB and 4.1 seconds",
        *(
            [f"INFO 03-01 10:00:08 [gpu_model_runner.py:1] Estimated CUDA graph memory: {graphs} GiB total"]
            if graphs
            else []
        ),
        f"INFO 03-01 10:00:09 [gpu_worker.py:298] Available KV cache memory: {available} GiB",
        f"INFO 03-01 10:00:09 [kv_cache_utils.py:1087] GPU KV cache size: {tokens:,} tokens",
        f"INFO 03-01 10:00:09 [kv_cache_utils.py:1091] Maximum concurrency for {length:,} tokens per request:"
        f" {tokens / length:.2f}x",
        "INFO:     Application startup complete.",
    ]
    return ("\n".join(lines) + "\n").encode()


def tokens_of(result: Diff) -> int:
    old, new = result.old.term("tokens").lo, result.new.term("tokens").lo
    assert old is not None
    assert new is not None
    return int(new - old)


@pytest.mark.parametrize(
    ("key", "change"), [("weights", (1700, 9, 126)), ("non_torch", (1499, 309, 126)), ("activation", (1499, 9, 526))]
)
def test_the_term_that_grew_is_named(key: str, change: tuple[int, int, int]) -> None:
    result = diff(v0(1499, 9, 126), v0(*change))
    assert result.culprit is not None
    assert result.culprit.key == key
    assert result.culprit.tokens is not None
    low, high = result.culprit.tokens
    assert low <= tokens_of(result) + BLOCK
    assert tokens_of(result) - BLOCK <= high


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 1500), min_size=6, max_size=6), st.sampled_from(["0.85", "0.90", "0.95"]))
def test_the_terms_add_up_to_the_tokens(parts: list[int], share: str) -> None:
    result = diff(v0(*parts[:3]), v0(*parts[3:], share=share))
    effects = [term.tokens for term in result.terms if term.tokens is not None]
    assert (
        sum(low for low, _ in effects) - 2 * BLOCK <= tokens_of(result) <= sum(high for _, high in effects) + 2 * BLOCK
    )


def test_another_cost_per_token_is_named() -> None:
    result = diff(v0(1499, 9, 126), v0(1499, 9, 126, per_token=2 * PER_TOKEN))
    assert result.culprit is not None
    assert result.culprit.key == "kv_bytes_per_token"
    assert result.loss is not None
    assert result.loss.what == "tokens"
    assert float(result.loss.lo) == pytest.approx(0.5, abs=0.001)


def test_graph_memory_of_an_upgrade() -> None:
    old, new = v1("0.19.1", "54.2", 394_688), v1("0.20.2", "50.0", 364_103, graphs="4.2")
    result = diff(old, new, max_loss=0.05)
    assert result.culprit is not None
    assert result.culprit.key == "graph_estimate"
    assert result.verdict == "fail"
    assert result.exit_code == 1
    assert [c.since for c in result.known] == ["0.20.2"] * 3
    touched = [c for c in result.known if result.explains(c)]
    assert any("graphs" in c.text for c in touched)
    assert ("gpu_memory_utilization", 0.9, 0.92) in [(o.name, o.old, o.new) for o in result.options]
    assert diff(old, new, max_loss=0.1).verdict == "pass"


def test_tokens_of_a_hybrid_model_are_not_compared_across_0_20_2() -> None:
    old = v1("0.19.1", "13.9", 290_864, length=32_768).replace(b"8.88x", b"33.04x")
    new = v1("0.20.2", "13.9", 1_082_654, length=32_768)
    result = diff(old, new, max_loss=0.01)
    assert result.loss is not None
    assert result.loss.what == "requests of 32,768 tokens"
    assert result.verdict == "pass"
    uniform = diff(v1("0.19.1", "13.9", 290_816), v1("0.20.2", "13.9", 290_816))
    assert uniform.loss is not None
    assert uniform.loss.what == "tokens"


def test_without_capacity_it_is_inconclusive() -> None:
    broken = b"INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.19.1) with config: model='m'\n"
    for pair in ((broken, v0(1499, 9, 126)), (v0(1499, 9, 126), broken), (b"", b"")):
        result = diff(*pair, max_loss=0.05)
        assert result.exit_code == 3
        assert result.missing is not None
        assert result.missing in str(result)
        assert result.to_dict()["reason"] == result.missing


@pytest.mark.parametrize(("limit", "verdict"), [(0.05, "fail"), (0.1, "inconclusive"), (0.6, "pass")])
def test_bounds_on_both_sides_of_the_limit_decide_nothing(limit: float, verdict: str) -> None:
    """Layers may differ, so that what fits at another length is known within bounds only."""
    line = (
        "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.22.1) with config: model='m', max_seq_len={0}\n"
        "INFO 03-01 10:00:09 [kv_cache_utils.py:1] GPU KV cache size: {1} tokens, Maximum concurrency for {0} tokens per"
        " request: {2}x\n"
    )
    result = diff(line.format(4096, 61424, 15.0).encode(), line.format(8192, 57120, 6.97).encode(), max_loss=limit)
    assert result.verdict == verdict
    reason = result.to_dict()["reason"]
    assert (reason is not None) == (verdict == "inconclusive")
    assert reason is None or (reason.startswith("the change lies between") and reason in str(result))


def test_a_share_has_to_be_one() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        diff(b"", b"", max_loss=5)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), capsys.readouterr().out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_bytes(v0(1499, 9, 126))
    new.write_bytes(v0(1499, 9, 1126))
    assert run(capsys, "diff", str(old), str(new))[0] == 0
    code, text = run(capsys, "diff", str(old), str(new), "--max-loss", "5%")
    assert code == 1
    assert "peak activation" in text
    assert "−10.00 GiB" not in text.splitlines()[0]
    code, text = run(capsys, "diff", str(old), str(new), "--max-loss", "0.5", "--format", "json")
    assert code == 0
    document = json.loads(text)
    assert document["culprit"] == "activation"
    assert document["loss"]["what"] == "tokens"
    assert run(capsys, "diff", str(old), str(new), "--max-loss", "5")[0] == 2
    assert run(capsys, "diff", str(old), str(tmp_path / "none.log"))[0] == 2


def test_changes_are_in_order_and_found() -> None:
    releases = [parse_release(change.since) for change in CHANGES]
    assert all(not earlier.since(later.text) or earlier.text == later.text for earlier, later in pairwise(releases))
    assert changes_between(parse_release("0.20.2"), parse_release("0.20.2")) == []
    assert {c.since for c in changes_between(parse_release("0.26.0"), parse_release("0.28.0"))} == {"0.27.1", "0.28.0"}
    for change in CHANGES:
        assert change.terms
        assert change.text
        assert change.source


def test_recorded_logs_compare_with_themselves() -> None:
    folder = shared("recorded")
    for name in ("v0112_gemma3_hybrid", "v0202_gemma3_hybrid", "v0240_tp2", "v0320_dp2", "v0320_deepseek_mla"):
        result = vlogcheck.diff(folder / f"{name}.log", folder / f"{name}.log", max_loss=0.0)
        assert result.verdict == "pass", name
        assert result.culprit is None, name
        assert not result.options, name


def test_the_verdict_says_what_it_rests_on(tmp_path: Path) -> None:
    import subprocess
    import sys

    from tests.conftest import ROOT

    log = ROOT / "fixtures" / "logs" / "0.32.0" / "opt.log"
    fewer = tmp_path / "fewer.log"
    text = log.read_text("utf-8").replace("51,200 tokens", "46,080 tokens")
    fewer.write_text(text.replace("25.00x", "22.50x"), "utf-8")
    foreign = tmp_path / "access.log"
    foreign.write_text("GET / 200\n")

    def verdict(*words: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "vlogcheck", "diff", *map(str, words)], capture_output=True, check=False, text=True
        )
        return done.returncode, done.stdout.splitlines()[-1]

    assert verdict(log, log) == (0, "pass: tokens unchanged, no limit was stated (--max-loss)")
    assert verdict(log, fewer, "--max-loss", "5%") == (1, "fail: tokens −10.0 %, at most 5 % may be lost")
    assert verdict(log, fewer, "--max-loss", "10%") == (0, "pass: tokens −10.0 %, at most 10 % may be lost")
    assert verdict(log, foreign) == (3, "inconclusive: the new log holds no vLLM start-up")
