"""The device ledger: its rule by release, and terms that are printed, derived or unknown."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SHARED
from vlogcheck import check
from vlogcheck._reading import read
from vlogcheck.budget.releases import parse_release
from vlogcheck.deployment import block_size_of, platform_of
from vlogcheck.device_rule import device_rule
from vlogcheck.expect import Expectation
from vlogcheck.observed import observe
from vlogcheck.registry import Severity
from vlogcheck.units import GIB, MIB

if TYPE_CHECKING:
    from vlogcheck.ledger import Ledger

THREE = ("weights", "non_torch", "activation")


@pytest.mark.parametrize(
    ("version", "options", "subtracted", "graphs", "charged"),
    [
        ("0.2.4", {"v0": True}, ("weights", "activation"), "uncounted", False),
        ("0.2.5", {"v0": True}, THREE, "uncounted", True),
        ("0.3.0", {"v0": True}, THREE, "uncounted", True),
        ("0.3.1", {"v0": True}, THREE, "uncounted", False),
        ("0.6.4.post1", {"v0": True}, THREE, "uncounted", True),
        ("0.6.5", {"v0": True}, THREE, "uncounted", False),
        ("0.8.5", {"v0": False}, THREE, "uncounted", True),
        ("0.9.0.1", {"v0": False}, THREE, "uncounted", True),
        ("0.9.1", {"v0": False}, THREE, "uncounted", False),
        ("0.17.1", {"v0": False}, THREE, "uncounted", False),
        ("0.18.1", {"v0": False}, THREE, "uncounted", False),
        ("0.18.1", {"v0": False, "counted": True}, THREE, "inside", False),
        ("0.19.1", {"v0": False, "counted": True}, (*THREE, "graph_estimate"), "separate", False),
        ("0.20.2", {"v0": False}, (*THREE, "graph_estimate"), "separate", False),
        ("0.26.0", {"v0": False}, (*THREE, "graph_estimate"), "separate", False),
        ("0.26.0", {"v0": False, "counted": False}, THREE, "uncounted", False),
        ("0.26.0", {"v0": False, "eager": True}, THREE, "none", False),
        ("0.27.1", {"v0": False}, ("consumed", "activation"), "inside", False),
        ("0.33.0", {"v0": False}, ("consumed", "activation"), "inside", False),
    ],
)
def test_rule_by_release(
    version: str, options: dict[str, bool], subtracted: tuple[str, ...], graphs: str, charged: bool
) -> None:
    rule = device_rule(parse_release(version), **options)  # type: ignore[arg-type]
    assert (rule.subtracted, rule.graphs, rule.others_charged) == (subtracted, graphs, charged)


def rank(log: str, **stated: object) -> Ledger:
    result = check(log.encode(), Expectation(**stated) if stated else None)  # type: ignore[arg-type]
    return result.contexts[0].observation.ranks[0].ledger


BANNER = (
    "INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v{}) with config: model='m', max_seq_len=4096\n"
)
USE = (
    "INFO 03-01 10:01:21 [gpu_worker.py:700] Free memory on device (92.98/95.0 GiB) on startup. Desired GPU memory utilization"
    " is (0.9, 85.5 GiB). Actual usage is {}. Replace gpu_memory_utilization config with `--kv-cache-memory=30837070336` (28.72"
    " GiB) to fit into requested memory, or `--kv-cache-memory=38870997504` (36.2 GiB) to fully utilize gpu memory. Current kv"
    " cache memory in use is {} GiB.\n"
)
SPLIT = "54.82 GiB for weight, 1.13 GiB for peak activation, 0.63 GiB for non-torch memory, and 0.06 GiB for CUDAGraph memory"


def test_a_missing_estimate_is_derived_where_it_is_a_term() -> None:
    ledger = rank(BANNER.format("0.23.0") + USE.format(SPLIT, "28.86"))
    estimate = ledger["graph_estimate"]
    assert estimate.status == "derived"
    assert estimate.lo is not None
    assert estimate.hi is not None
    assert estimate.lo <= Fraction(6, 100) * GIB <= estimate.hi
    assert "unexplained" not in ledger


def test_terms_that_close_without_an_estimate_show_that_there_was_none() -> None:
    """The release would subtract one; it was switched off, and what the graphs took is outside the budget."""
    took = SPLIT.replace("0.06 GiB for CUDAGraph", "0.13 GiB for CUDAGraph")
    result = check((BANNER.format("0.23.0") + USE.format(took, "28.92")).encode())
    known = result.contexts[0].observation.ranks[0]
    assert (known.rule.graphs, known.rule.subtracted) == ("uncounted", THREE)
    left = known.ledger["unexplained"].interval
    assert left is not None
    assert 0 in left
    assert known.ledger["graph_estimate"].hi == 0


def test_the_estimate_follows_from_the_equivalent_utilization() -> None:
    line = (
        "INFO 03-01 10:00:50 [gpu_worker.py:400] CUDA graph memory profiling is enabled (default since v0.21.0). The current"
        " --gpu-memory-utilization=0.9000 is equivalent to --gpu-memory-utilization=0.8993 without CUDA graph memory profiling."
        " To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to 0.9007. To disable, set"
        " VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.\n"
    )
    ledger = rank(BANNER.format("0.23.0") + line + USE.format(SPLIT, "28.86"))
    estimate, left = ledger["graph_estimate"], ledger["unexplained"]
    assert estimate.formula == "(utilization − equivalent) × total"
    assert estimate.lo is not None
    assert estimate.hi is not None
    assert estimate.lo <= Fraction("0.0665") * GIB <= estimate.hi
    assert left.lo is not None
    assert left.hi is not None
    assert left.lo <= 0 <= left.hi


def test_0_6_4_prints_a_peak_that_holds_the_weights() -> None:
    ledger = rank(
        "INFO 11-18 17:10:54 llm_engine.py:249] Initializing an LLM engine (v0.6.4.post1) with config: model='m'\n"
        "INFO 11-18 17:11:00 model_runner.py:1077] Loading model weights took 7.5122 GB\n"
        "INFO 11-18 17:11:01 worker.py:232] Memory profiling results: total_gpu_memory=44.42GiB initial_memory_usage=8.19GiB"
        " peak_torch_memory=8.70GiB memory_usage_post_profile=8.26GiB non_torch_memory=0.73GiB kv_cache_size=30.55GiB"
        " gpu_memory_utilization=0.90\n"
    )
    assert ledger["activation"].status == "derived"
    assert ledger["activation"].text() == "1.19 GiB"
    left = ledger["unexplained"].interval
    assert left is not None
    assert 0 in left


def test_consumed_memory_from_0_27_1() -> None:
    terms = "55.51 GiB for consumed memory (weights + non-torch), 1.13 GiB for peak activation, and 0.06 GiB for CUDAGraph memory"
    ledger = rank(BANNER.format("0.27.1") + USE.format(terms, "28.86"))
    left = ledger["unexplained"].interval
    assert left is not None
    assert 0 in left
    assert "non_torch" not in ledger


def test_debug_lines_close_without_the_summary() -> None:
    ledger = rank(
        BANNER.format("0.11.0")
        + "DEBUG 03-01 10:00:40 [gpu_worker.py:250] Initial free memory: 78.60 GiB; Requested memory: 0.90 (util), 71.19 GiB\n"
        "INFO 03-01 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.2700 GiB and 8.3 seconds\n"
        "DEBUG 03-01 10:00:49 [gpu_worker.py:300] Memory profiling takes 4.02 seconds. Total non KV cache memory: 16.98GiB;"
        " torch peak memory increase: 1.41GiB; non-torch forward increase memory: 0.30GiB; weights memory: 15.27GiB.\n"
    )
    assert ledger["kv_cache"].status == "derived"
    assert ledger["kv_cache"].text() == "54.21 GiB"


def test_two_unprinted_terms_are_one_remainder() -> None:
    log = (
        BANNER.format("0.11.0")
        + "INFO 03-01 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.2700 GiB and 8.3 seconds\n"
        "INFO 03-01 10:00:49 [gpu_worker.py:298] Available KV cache memory: 54.21 GiB\n"
    )
    assert "rest" not in rank(log)
    ledger = rank(log, total_memory="79.10GiB", gpu_memory_utilization=0.9)
    rest = ledger["rest"]
    assert rest.origin == "non-torch memory and peak activation"
    assert rest.status == "assumed"  # the log does not print the utilization: the release's default is taken
    assert rest.text() == "1.71 GiB"


@settings(max_examples=60, deadline=None)
@given(
    total=st.integers(8 * GIB, 200 * GIB), share=st.integers(30, 98), weights=st.integers(0, 10**4),
    non_torch=st.integers(-500, 3000), activation=st.integers(0, 5000), graphs=st.integers(0, 3000), leak=st.integers(-40, 40),
)  # fmt: skip
def test_a_ledger_closes_exactly_when_nothing_leaks(
    total: int, share: int, weights: int, non_torch: int, activation: int, graphs: int, leak: int
) -> None:
    """Terms in MiB; a leak is reported exactly when it is larger than what rounding can hide."""
    requested = total * share // 100
    leaked = leak * 10 * MIB
    pool = requested - (weights + non_torch + activation + graphs) * MIB - leaked

    def gib(size: int) -> str:
        return str(round(size / GIB, 2))

    log = (
        BANNER.format("0.23.0")
        + f"INFO 03-01 10:00:30 [gpu_worker.py:390] Estimated CUDA graph memory: {gib(graphs * MIB)} GiB total\n"
        f"INFO 03-01 10:00:49 [gpu_worker.py:298] Available KV cache memory: {gib(pool)} GiB\n"
        f"INFO 03-01 10:01:21 [gpu_worker.py:700] Free memory on device ({gib(total)}/{gib(total)} GiB) on startup. Desired GPU"
        f" memory utilization is ({share / 100}, {gib(requested)} GiB). Actual usage is {gib(weights * MIB)} GiB for weight,"
        f" {gib(activation * MIB)} GiB for peak activation, {gib(non_torch * MIB)} GiB for non-torch memory, and"
        f" {gib(graphs * MIB)} GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=1` (0.0"
        f" GiB) to fit into requested memory, or `--kv-cache-memory=2` (0.0 GiB) to fully utilize gpu memory. Current kv cache"
        f" memory in use is {gib(pool)} GiB.\n"
    )
    result = check(log.encode(), select=["VL113"])
    left = result.contexts[0].observation.ranks[0].ledger["unexplained"].interval
    assert left is not None
    assert left.lo <= leaked <= left.hi
    assert left.hi - left.lo <= Fraction(6, 100) * GIB + 12
    if abs(leaked) > Fraction(6, 100) * GIB + 12:
        assert [f.code for f in result.findings] == ["VL113"]
    if not leak:
        assert not result.findings


def test_every_real_ledger_that_prints_all_terms_closes() -> None:
    """Within rounding, on every rank whose log prints the terms; none is left with more than one term unknown."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: set VLOGCHECK_SHARED to the folder that holds it")
    closed = 0
    for log in sorted((*(SHARED / "corpus").glob("*.log"), *(SHARED / "recorded").glob("*.log"))):
        if not re.search(rb"Actual usage is|peak_torch_memory=|model weights take", log.read_bytes()):
            continue
        for startup in read(log).startups:
            for known in observe(startup).ranks:
                terms = (*known.rule.subtracted, "requested", "kv_cache")
                if not {"activation", "requested", "kv_cache"} <= {key for key in terms if key in known.ledger}:
                    continue
                left = known.ledger["unexplained"].interval
                assert left is not None, (log.name, known.rank.name)
                assert 0 in left, (log.name, known.rank.name)
                closed += 1
    assert closed >= 24


def test_a_ledger_that_rests_on_an_assumed_utilization_accuses_nobody() -> None:
    """The log prints every term but neither the request nor the utilization: 0.95 may have been set."""
    log = (
        BANNER.format("0.11.0")
        + "INFO 03-01 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.2700 GiB and 8.3 seconds\n"
        "DEBUG 03-01 10:00:49 [gpu_worker.py:300] Memory profiling takes 4.02 seconds. Total non KV cache memory: 16.98GiB;"
        " torch peak memory increase: 1.41GiB; non-torch forward increase memory: 0.30GiB; weights memory: 15.27GiB.\n"
        "INFO 03-01 10:00:49 [gpu_worker.py:298] Available KV cache memory: 58.17 GiB\n"
    )
    result = check(log.encode(), Expectation(total_memory="79.10GiB"), select=["VL113"])
    assert result.contexts[0].observation.ranks[0].ledger["unexplained"].status == "assumed"
    assert not result.findings
    assert [skipped.code for skipped in result.skipped] == ["VL113"]


@settings(max_examples=40, deadline=None)
@given(
    total=st.integers(8 * GIB, 200 * GIB), share=st.integers(30, 98), weights=st.integers(0, 5000),
    non_torch=st.integers(-500, 3000), activation=st.integers(0, 5000), leak=st.integers(-40, 40),
    version=st.sampled_from(["0.6.5", "0.7.3", "0.8.5", "0.10.2"]),
)  # fmt: skip
def test_the_v0_engines_five_terms_close(
    total: int, share: int, weights: int, non_torch: int, activation: int, leak: int, version: str
) -> None:
    """`determine_num_available_blocks` of 0.6.5 to 0.10.2: every figure rounded by itself."""
    requested = Fraction(total * share, 100)
    leaked = leak * 10 * MIB
    pool = requested - (weights + non_torch + activation) * MIB - leaked

    def gib(size: Fraction | int) -> str:
        return f"{float(size / Fraction(GIB)):.2f}GiB"

    log = (
        f"INFO 03-01 10:00:00 [llm_engine.py:234] Initializing a V0 LLM engine (v{version}) with config: model='m'\n"
        "INFO 03-01 10:00:40 [worker.py:267] Memory profiling takes 3.21 seconds\n"
        f"INFO 03-01 10:00:40 [worker.py:267] the current vLLM instance can use total_gpu_memory ({gib(total)}) x"
        f" gpu_memory_utilization ({share / 100:.2f}) = {gib(requested)}\n"
        f"INFO 03-01 10:00:40 [worker.py:267] model weights take {gib(weights * MIB)}; non_torch_memory takes"
        f" {gib(non_torch * MIB)}; PyTorch activation peak memory takes {gib(activation * MIB)}; the rest of the memory"
        f" reserved for KV Cache is {gib(pool)}.\n"
    )
    result = check(log.encode(), select=["VL113"])
    known = result.contexts[0].observation.ranks[0]
    assert known.rule.subtracted == THREE
    left = known.ledger["unexplained"].interval
    assert left is not None
    assert left.lo <= leaked <= left.hi
    assert left.hi - left.lo <= Fraction(5, 100) * GIB + 10
    assert bool(result.findings) == (not left.lo <= 0 <= left.hi)


@settings(max_examples=40, deadline=None)
@given(
    total=st.integers(8 * GIB, 200 * GIB), share=st.integers(50, 98), weights=st.integers(100, 5000),
    non_torch=st.integers(0, 3000), activation=st.integers(0, 5000), others=st.integers(0, 20_000),
)  # fmt: skip
def test_0_6_4_charges_others_and_still_closes(
    total: int, share: int, weights: int, non_torch: int, activation: int, others: int
) -> None:
    """What other processes hold is inside its non-torch memory: the terms add up, and the rule says whose they are."""
    outside = (non_torch + others) * MIB
    peak = (weights + activation) * MIB
    pool = Fraction(total * share, 100) - peak - outside
    log = (
        "INFO 11-18 17:10:54 llm_engine.py:249] Initializing an LLM engine (v0.6.4.post1) with config: model='m'\n"
        f"INFO 11-18 17:11:00 model_runner.py:1077] Loading model weights took {weights * MIB / GIB:.4f} GB\n"
        f"INFO 11-18 17:11:01 worker.py:232] Memory profiling results: total_gpu_memory={total / GIB:.2f}GiB"
        f" initial_memory_usage={(weights * MIB + outside) / GIB:.2f}GiB peak_torch_memory={peak / GIB:.2f}GiB"
        f" memory_usage_post_profile={(weights * MIB + outside) / GIB:.2f}GiB non_torch_memory={outside / GIB:.2f}GiB"
        f" kv_cache_size={float(pool / GIB):.2f}GiB gpu_memory_utilization={share / 100:.2f}\n"
    )
    known = check(log.encode()).contexts[0].observation.ranks[0]
    left = known.ledger["unexplained"].interval
    assert left is not None
    assert 0 in left
    assert known.rule.others_charged


def test_intel_gpus_print_the_card_before_the_profile_run_and_its_peak_after_it() -> None:
    text = (
        "(EngineCore_0 pid=7) INFO 03-01 10:00:00 [core.py:74] Initializing a V1 LLM engine (v0.10.1) with config: model='m',"
        " max_seq_len=4096, device_config=xpu\n"
        "(EngineCore_0 pid=7) INFO 03-01 10:00:05 [gpu_model_runner.py:2018] Model loading took 12.5000 GiB and 5.05 seconds\n"
        "(EngineCore_0 pid=7) INFO 03-01 10:00:06 [xpu_worker.py:104] Before memory profiling run, total GPU memory: 65520.00"
        " MB, model load takes 12800.00 MB, free gpu memory is 52435.00 MB.\n"
        "(EngineCore_0 pid=7) INFO 03-01 10:00:07 [xpu_worker.py:139] After memory profiling run, peak memory usage is 13500.00"
        " MB,torch mem is 12800.00 MB, non-torch mem is 400.00 MB, free gpu memory is 51896.00 MB.\n"
    )
    ledger = rank(text)
    for key, mib in (("total", 65520), ("non_torch", 400), ("activation", 300), ("kv_cache", 0.9 * 65520 - 13500)):
        size = ledger[key].interval
        assert size is not None, key
        assert abs(size.mid - mib * MIB) < MIB, key


@pytest.mark.parametrize(
    ("reserve", "kept", "available"), [("", 0, "12.63"), (" kv_connector_hbm_reserve_gb=2.00GiB |", 2, "10.63")]
)
def test_tpus_print_all_their_terms_in_one_line(reserve: str, kept: int, available: str) -> None:
    text = (
        "INFO 08-16 20:23:52 [tpu_worker.py:557] Memory statistics | total_hbm_limit_gb=15.75GiB |"
        f" total_hbm_limit_cap_gb=14.49GiB | total_hbm_used_gb=1.86GiB |{reserve} total_hbm_avail_gb={available}GiB\n"
        "INFO 08-16 20:23:52 [kv_cache_utils.py:2214] GPU KV cache size: 509,184 tokens\n"
    )
    ledger = rank(text)
    for key, gib in (
        ("total", "15.75"),
        ("requested", "14.49"),
        ("consumed", str(1.86 + kept)),
        ("kv_cache", available),
    ):
        size = ledger[key].interval
        assert size is not None, key
        assert abs(size.mid / GIB - Fraction(gib)) < Fraction(1, 100), key
    left = ledger["unexplained"].interval
    assert left is not None
    assert 0 in left
    assert not [f for f in check(text.encode()).findings if f.code.startswith("VL1")]


def test_the_cpu_s_refusal_is_about_no_card() -> None:
    text = (
        "ValueError: Available memory on node 0 (1.8/3.0 GiB) on startup is less than desired CPU memory utilization (0.92,"
        " 2.76 GiB). Decrease --gpu-memory-utilization or reduce CPU memory used by other processes.\n"
    )
    (startup,) = read(text.encode()).startups
    assert platform_of(startup) == "cpu"
    assert [f.code for f in check(text.encode()).findings if f.severity != Severity.NOTE] == ["VL901"]


def test_terms_that_are_printed_apart_are_no_sum_whatever_the_release() -> None:
    ledger = rank(
        "INFO 10-23 15:14:30 [gpu_worker.py:298] Available KV cache memory: 44.59 GiB\n"
        "INFO 10-23 15:14:56 [gpu_worker.py:391] Free memory on device (139.21/139.81 GiB) on startup. Desired GPU memory"
        " utilization is (0.9, 125.83 GiB). Actual usage is 74.28 GiB for weight, 5.58 GiB for peak activation, 1.38 GiB for"
        " non-torch memory, and 2.37 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with"
        " `--kv-cache-memory=45175492096` to fit into requested memory, or `--kv-cache-memory=59540753920` to fully utilize"
        " gpu memory. Current kv cache memory in use is 47878721024 bytes.\n"
    )
    assert "consumed" not in ledger
    left = ledger["unexplained"].interval
    assert left is not None
    assert 0 in left


def test_gaudi_prints_its_kv_cache_in_its_own_words() -> None:
    text = (
        "INFO 05-01 10:00:00 [hpu_worker.py:520] Free device memory: 79.16 GiB, 71.24 GiB usable"
        " (gpu_memory_utilization=0.9), 7.124 GiB reserved for HPUGraphs (VLLM_GRAPH_RESERVED_MEM=0.1), 16.25 MiB reserved"
        " for KV cache dummy block 64.1 GiB reserved for usable KV cache\n"
    )
    size = rank(text)["kv_cache"].interval
    assert size is not None
    assert abs(size.mid / GIB - Fraction("64.1")) < 1


@pytest.mark.parametrize(
    ("file", "platform", "block"),
    [
        ("cpu_model_runner.py:104", "cpu", 128),
        ("tpu_runner.py:88", "tpu", None),
        ("hpu_worker.py:12", "hpu", None),
        ("xpu_worker.py:12", "xpu", None),
        ("worker_v1.py:234", "npu", 128),
        ("model_runner_v1.py:2661", "npu", 128),
        ("v1/worker/cpu_model_runner.py:104", "cpu", 128),
        ("gpu_model_runner.py:104", None, 16),
        ("cpu_npu.py:277", "npu", 128),
    ],
)
def test_a_source_file_of_one_platform_alone_tells_the_platform(
    file: str, platform: str | None, block: int | None
) -> None:
    """Releases before 0.30 print "GPU KV cache size" everywhere, and a piece of a log has no line of the platform."""
    text = (
        f"INFO 03-01 10:00:00 [{file}] Starting to load model org/m...\n"
        "INFO 03-01 10:00:05 [kv_cache_utils.py:1291] GPU KV cache size: 34,048 tokens\n"
    )
    (startup,) = read(text.encode()).startups
    assert platform_of(startup) == platform
    size = block_size_of(startup)
    assert (size.tokens if size is not None else None) == block
    assert startup.model == "org/m"
