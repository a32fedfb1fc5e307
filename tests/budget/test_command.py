"""The budget command: what fits with what, typing errors, the table of several models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlogcheck._sizes import parse_size
from vlogcheck.budget.answer import Budget, answer
from vlogcheck.budget.flags import parse_serve_flags
from vlogcheck.budget.model import load_model_config
from vlogcheck.cli import main

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
LARGE = MODELS / "deepseek-r1-distill-qwen-32b"


def budget(memory: str, flags: str = "", **asked: float) -> Budget:
    return answer(
        load_model_config(LARGE), parse_serve_flags(flags.split()), total_memory=parse_size(memory), release="0.11.0", **asked
    )  # type: ignore[arg-type]  # fmt: skip


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["budget", *words])
    return int(stopped.value.code or 0)


def test_the_smallest_tensor_parallel_size_is_sought_below_the_given_one() -> None:
    given_more = budget("64GiB", "-tp 4 --max-model-len 4096")
    assert given_more.fits
    assert given_more.smallest_tensor_parallel == 2
    assert budget("64GiB", "-tp 2 --max-model-len 4096").fits
    assert not budget("64GiB", "-tp 1 --max-model-len 4096").fits


def test_advice_keeps_room_for_one_request_of_the_longest_context() -> None:
    asked = budget("40GiB", "-tp 2", concurrency=2, context=1024)
    assert not asked.fits  # one request of 131,072 tokens does not fit, and vLLM refuses to start
    assert asked.smallest_tensor_parallel == 4
    assert asked.smallest_utilization is None
    longest = asked.largest_context
    assert longest is not None
    fitted = budget("40GiB", f"-tp 2 --max-model-len {longest}", concurrency=2, context=longest)
    assert fitted.fits
    longer = budget("40GiB", f"-tp 2 --max-model-len {longest + 1}", concurrency=2, context=longest + 1)
    assert not longer.fits


def test_the_default_utilization_is_the_release_s() -> None:
    made = budget("64GiB", "-tp 2 --max-model-len 4096")
    assert made.ledger["utilization"].lo == pytest.approx(0.9)
    assert made.ledger["utilization"].origin == "default of 0.11.0"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "--tensor-paralel-size", "4"), "did you mean --tensor-parallel-size?"),
        (("--total-memory", "80"), "80GiB if you mean it"),
        (("--vllm", "latest"), "is no release"),
        (("-tp", "4"), "after --"),
    ],
)
def test_slips_are_refused(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(str(LARGE), *words) == 2
    assert said in capsys.readouterr().err


def test_the_table_counts_requests_of_the_asked_length(capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(LARGE), str(MODELS / "qwen3-0.6b")]
    question = ["--total-memory", "80GiB", "--concurrency", "16", "--context", "1000", "--", "--max-model-len", "4096"]
    status = call(*models, *question)
    text = capsys.readouterr().out
    assert "× 1,000" in text
    assert "taken as 0: the pool is an upper bound" in text
    call(*models, "--format", "json", *question)
    found = json.loads(capsys.readouterr().out)["budgets"]
    assert [each["context"] for each in found] == [1000, 1000]
    assert status == (0 if all(each["fits"] for each in found) else 1)


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(str(LARGE)) == 3
    assert "give --total-memory or --available-kv-memory" in capsys.readouterr().out


def test_what_other_cards_would_make_is_said_where_none_is_named() -> None:
    from vlogcheck.budget.answer import answer
    from vlogcheck.budget.flags import parse_serve_flags
    from vlogcheck.budget.model import load_model_config
    from vlogcheck.units import Interval

    config = {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 1024, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 2, "sliding_window": 1024, "intermediate_size": 1024,
        "vocab_size": 1000, "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
    }  # fmt: skip

    def said(window: int | None, device: str | None) -> list[str]:
        budget = answer(
            load_model_config({**config, "sliding_window": window}), parse_serve_flags(["--max-model-len", "32768"]),
            release="0.32.0", device=device, available=Interval.exactly(1 << 30),
        )  # fmt: skip
        return [text for text in budget.to_dict()["assumptions"] if "-class cards" in text]

    # batches of 2048, 8192 and 16384 tokens: a window holds its tokens and those in flight
    a100, b200 = said(1024, None)
    assert a100.startswith("on A100-class cards")
    assert "16,384 blocks" in a100
    assert b200.startswith("on B200-class cards")
    assert said(1024, "H100") == []
    assert said(None, None) == []  # full attention does not depend on the batch


def test_the_utilization_is_advised_on_where_a_card_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(str(LARGE), "--total-memory", "65520MiB", "--", "-tp", "4", "--gpu-memory-utilization", "0.97") == 0
    text = capsys.readouterr().out
    assert "0.97 leaves 1.92 GiB of the card, less than its reserve of 3.20 GiB: at most 0.95" in text
    assert "the tightest of the 4 cards decides" in text
    assert budget("65520MiB", "-tp 4").to_dict()["advice"][0].startswith("0.90 for the card to itself")
    assert (
        call(
            str(LARGE),
            "--available-kv-memory",
            "20GiB",
            "--format",
            "json",
            "--",
            "-tp",
            "4",
            "--max-model-len",
            "4096",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["advice"] == []
