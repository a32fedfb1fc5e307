"""The worked examples the tool exists for: hand computations, field readings, and the mistakes made with both."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vlogcheck import check
from vlogcheck.budget.flags import options_from_mapping
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import plan
from vlogcheck.budget.weights import estimate_weights
from vlogcheck.expect import Expectation
from vlogcheck.registry import Severity
from vlogcheck.units import GIB, MIB

if TYPE_CHECKING:
    from vlogcheck.api import Report

KIB = 1 << 10
FIXTURES = Path(__file__).parents[1] / "fixtures"
WRITTEN = FIXTURES / "logs" / "written"
MODELS = FIXTURES / "models"
BF16_32B = "deepseek-r1-distill-qwen-32b"
GPTQ_32B = "deepseek-r1-distill-qwen-32b-gptq-int4"
SMALL = "qwen3-0.6b"


def report(log: str, model: str | None = None, **options: Any) -> Report:
    expect = Expectation(**{key: options.pop(key) for key in list(options) if hasattr(Expectation, key)})
    return check(WRITTEN / f"{log}.log", expect, model=str(MODELS / model) if model else None, **options)


def found(result: Report, code: str) -> Any:
    """The only finding of a code."""
    (finding,) = [f for f in result.findings if f.code == code]
    return finding


def codes(result: Report) -> set[str]:
    return {finding.code for finding in result.findings}


def v1_log(total: str, requested: str, terms: str, kv: str, free: str | None = None, version: str = "0.11.0") -> bytes:
    """A start-up with the summary line of 0.11."""
    return (
        f"INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v{version}) with config: model='m',"
        " dtype=torch.bfloat16, max_seq_len=4096\n"
        f"INFO 03-01 10:00:09 [gpu_worker.py:600] Free memory on device ({free or total}/{total} GiB) on startup. Desired GPU"
        f" memory utilization is ({requested} GiB). Actual usage is {terms}. Replace gpu_memory_utilization config with"
        " `--kv-cache-memory=10000000000` (9.31 GiB) to fit into requested memory, or `--kv-cache-memory=20000000000` (18.63"
        f" GiB) to fully utilize gpu memory. Current kv cache memory in use is {kv} GiB.\n"
    ).encode()


# The hand computation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tp", "per_token"), [(1, 256 * KIB), (2, 128 * KIB), (4, 64 * KIB)])
def test_kv_bytes_per_token_of_64_layers_8_heads_128_bf16(tp: int, per_token: int) -> None:
    result = plan(
        load_model_config(MODELS / BF16_32B), options_from_mapping({"tensor_parallel_size": tp}), release="0.11.0"
    )
    per_block = result.bytes_per_block()
    assert per_block == per_token * result.specs[0].spec.block_size
    assert per_token * tp == 262_144


def test_a_request_of_4096_tokens_is_1_gib_and_256_mib_per_card_at_tp_4() -> None:
    model = load_model_config(MODELS / BF16_32B)
    whole, card = (
        plan(model, options_from_mapping({"tensor_parallel_size": tp, "max_model_len": 4096}), release="0.11.0")
        for tp in (1, 4)
    )
    for result, request in ((whole, GIB), (card, 256 * MIB)):
        blocks, size = result.blocks_per_request(4096), result.bytes_per_block()
        assert blocks is not None
        assert size is not None
        assert blocks * size == request
        assert 16 * blocks * size == 16 * request
    assert 16 * 256 * MIB == 4 * GIB


def test_sixteen_requests_fit_four_gib_per_card_exactly() -> None:
    model = load_model_config(MODELS / BF16_32B)
    options = options_from_mapping({"tensor_parallel_size": 4, "max_model_len": 4096})
    assert plan(model, options, release="0.11.0", available=4 * GIB).max_concurrency == 16
    assert plan(model, options, release="0.11.0", available=4 * GIB - 1).max_concurrency < 16  # type: ignore[operator]


def test_the_two_lines_are_the_ledger_of_the_32b_model_at_tp_4() -> None:
    result = report("deepseek-r1-distill-qwen-32b-bf16-tp4", BF16_32B, kv_bytes_per_token="64KiB", weights="15.4GiB")
    assert result.verdict == "pass"
    engine = result.contexts[0].observation.engines[0]
    assert engine.capacity.tokens == 624_288
    assert engine.capacity.concurrency == Fraction("152.41")
    assert round(624_288 / 4096, 2) == 152.41
    assert not {code for code in codes(result) if code.startswith(("VL2", "VL3", "VL5"))}


@pytest.mark.parametrize(
    ("total", "weights", "activation", "pool"),
    [("40.00", "20.00", "2.00", "14.00"), ("48.00", "15.00", "2.20", "26.00")],
)
def test_worked_examples_close(total: str, weights: str, activation: str, pool: str) -> None:
    requested = f"{float(total) * 0.9:.2f}"
    terms = (
        f"{weights} GiB for weight, {activation} GiB for peak activation, 0.00 GiB for non-torch memory, and 0.00 GiB for"
        " CUDAGraph memory"
    )
    result = check(v1_log(total, f"0.9, {requested}", terms, pool))
    ledger = result.contexts[0].observation.ranks[0].ledger
    left = ledger["unexplained"]
    assert left.lo is not None
    assert left.hi is not None
    assert left.lo <= 0 <= left.hi
    assert left.hi - left.lo <= 5 * GIB // 100
    assert "VL113" not in codes(result)


def test_worked_example_of_48_gb_leaves_what_the_log_does_not_print() -> None:
    log = (
        b"INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', max_seq_len=4096\n"
        b"INFO 03-01 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.0000 GiB and 8.312002 seconds\n"
        b"INFO 03-01 10:00:49 [gpu_worker.py:298] Available KV cache memory: 26.00 GiB\n"
    )
    ledger = check(log, Expectation(total_memory="48GiB")).contexts[0].observation.ranks[0].ledger
    rest = ledger["rest"].interval
    assert rest is not None
    assert int(2.2 * GIB) in rest
    assert ledger["total"].status == "given"


# The field's rows ------------------------------------------------------------------------------------------------------


def test_small_model_is_nearly_all_pool() -> None:
    result = report("qwen3-0.6b-bf16-tp1", SMALL)
    ledger = result.contexts[0].observation.ranks[0].ledger
    assert result.verdict == "pass"
    assert ledger["weights"].text() == "1.12 GiB"
    assert ledger["kv_cache"].text() == "55.86 GiB"
    assert not {code for code in codes(result) if code.startswith("VL2")}


def test_own_stack_is_no_vllm_log() -> None:
    result = report("qwen3-0.6b-float32-own-stack")
    assert result.verdict == "inconclusive"
    assert "not a vLLM log" in found(result, "VL001").message


@pytest.mark.parametrize("stated", ["4.5GiB", "4.5GB"])
def test_9_11_was_already_per_card(stated: str) -> None:
    finding = found(report("deepseek-r1-distill-qwen-32b-gptq-int4-tp2", weights=stated), "VL201")
    assert finding.severity == "error"
    assert finding.line == 15
    assert finding.explanation.startswith("the log's 9.11 GiB are already per rank")
    assert "divided by the tensor parallel size 2" in finding.explanation
    assert finding.explanation.endswith("in GiB that were called GB") is (stated == "4.5GB")
    assert "--expect-weights 9.11GiB" in finding.remedy
    assert "label GB" in finding.observed


def test_the_remedy_for_the_weights_removes_the_finding() -> None:
    assert "VL201" not in codes(report("deepseek-r1-distill-qwen-32b-gptq-int4-tp2", weights="9.11GiB"))


def test_a_total_is_recognised() -> None:
    finding = found(report("deepseek-r1-distill-qwen-32b-gptq-int4-tp2", weights="18.2GiB"), "VL201")
    assert finding.explanation == "the stated figure is the total of all ranks: tensor parallel size 2"


def test_int4_fits_and_is_to_be_verified() -> None:
    result = report("deepseek-r1-distill-qwen-32b-gptq-int4-tp2", GPTQ_32B)
    assert "9.11 GiB per rank" in found(result, "VL206").message
    assert result.verdict == "pass"


@pytest.mark.parametrize(
    ("stated", "explanation"),
    [
        ("65GB", "the checkpoint's size on disk (65.5 GB, all ranks together)"),
        ("16.3GB", "a share of the checkpoint's size (16.38 GB)"),
        ("61.66GiB", "the total of all ranks: tensor parallel size 4"),
        ("16.55GiB", "in GB (10**9 bytes), written as GiB"),
    ],
)
def test_file_sizes_gb_and_totals_of_the_32b_model(stated: str, explanation: str) -> None:
    finding = found(report("deepseek-r1-distill-qwen-32b-bf16-tp4", BF16_32B, weights=stated), "VL201")
    assert explanation in finding.explanation


def test_15_4_was_gib() -> None:
    assert "VL201" not in codes(report("deepseek-r1-distill-qwen-32b-bf16-tp4", weights="15.4GiB"))
    finding = found(report("deepseek-r1-distill-qwen-32b-bf16-tp4", weights="15.4GB"), "VL201")
    assert "GB were meant as GiB" in finding.explanation
    (stage,) = estimate_weights(
        load_model_config(MODELS / BF16_32B), options_from_mapping({"tensor_parallel_size": 4}), "0.8.5"
    )
    assert f"{stage.allocated_bytes / GIB:.2f}" == "15.42"
    assert f"{stage.param_bytes / GIB:.4f}" == "15.2578"


def test_32b_in_bf16_does_not_fit_one_64_gb_card_and_two_are_enough() -> None:
    model = load_model_config(MODELS / BF16_32B)
    requested = int(65520 * MIB * Fraction("0.9"))
    for tp, fits in ((1, False), (2, True)):
        (stage,) = estimate_weights(model, options_from_mapping({"tensor_parallel_size": tp}), "0.8.5")
        assert (stage.high_bytes < requested) is fits


# Anomalies -------------------------------------------------------------------------------------------------------------


def test_just_released_memory_is_no_leak() -> None:
    log = (
        b"INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', max_seq_len=4096\n"
        b"ERROR 03-01 10:00:09 [core.py:708] ValueError: Free memory on device (4.8/63.98 GiB) on startup is less than desired"
        b" GPU memory utilization (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other"
        b" processes.\n"
    )
    finding = found(check(log), "VL101")
    assert "no leak" in finding.remedy
    assert "60.78 GiB free" in finding.remedy
    assert (finding.severity, found(check(log), "VL901").severity) == (Severity.NOTE, Severity.ERROR)
    assert "the cause of VL901" in finding.explanation
    assert "VL102" not in codes(check(log))


def test_95_percent_is_a_warning_and_100_an_error() -> None:
    def log(share: str) -> bytes:
        return (
            f"INFO 03-01 10:00:00 [api_server.py:1800] non-default args: {{'model': 'm', 'gpu_memory_utilization': {share}}}\n"
            "INFO 03-01 10:00:09 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m',"
            " max_seq_len=4096\n"
        ).encode()

    warning = found(check(log("0.95"), Expectation(total_memory="65520MiB")), "VL103")
    assert warning.severity == "warning"
    assert warning.fix == {"gpu_memory_utilization": 0.9}
    assert found(check(log("1.0")), "VL104").severity == "error"
    assert not {"VL103", "VL104"} & codes(check(log("0.9")))


@pytest.mark.parametrize("model", [BF16_32B])
def test_three_cards_at_57_and_one_at_49(model: str) -> None:
    result = report("deepseek-r1-distill-qwen-32b-bf16-tp4", model, smi=FIXTURES / "smi" / "rocm-smi-57-57-57-49.txt")
    finding = found(result, "VL511")
    assert finding.message == "card 3 holds 8.00 GiB less than the others"
    assert "the weights are even" in finding.explanation
    assert "fuser -v /dev/kfd" in finding.remedy
    assert "VL501" not in codes(result)


def test_uneven_occupancy_needs_the_pool() -> None:
    result = report("deepseek-r1-distill-qwen-32b-bf16-tp4", smi=FIXTURES / "smi" / "rocm-smi-57-57-57-49.txt")
    (reason,) = {item.reason for item in result.skipped if item.code == "VL511"}
    assert "--model-config" in reason


def test_the_written_logs_are_marked_as_written() -> None:
    for log in WRITTEN.glob("*.log"):
        assert 'kind = "written"' in log.with_suffix(".toml").read_text("utf-8")
        assert [json.loads(line) for line in log.with_suffix(".jsonl").read_text("utf-8").splitlines()]
