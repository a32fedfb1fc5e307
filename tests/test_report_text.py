"""The report for people: what its lines say, that figures agree with those for programs, and how it folds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import vlogcheck
from tests.conftest import ROOT
from vlogcheck.registry import Severity
from vlogcheck.report.text import render

if TYPE_CHECKING:
    from pathlib import Path

    from vlogcheck.api import Report

LOGS = ROOT / "fixtures" / "logs"
SMALL = LOGS / "written" / "deepseek-r1-distill-qwen-32b-bf16-tp4.log"
BANNER = (
    "INFO 03-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v{release}) with config: model='m',"
    " dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1\n"
)
CUDA = "INFO 03-01 09:59:58 [__init__.py:239] Automatically detected platform cuda.\n"


def check(log: str, release: str = "0.10.0", **expected: float) -> Report:
    text = CUDA + BANNER.format(release=release) + log
    return vlogcheck.check(text.encode(), vlogcheck.Expectation(**expected) if expected else None)


UNIFORM = (
    "INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: 4.37 GiB\n"
    "INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: 65,536 tokens\n"
    "INFO 03-01 10:00:09 [kv_cache_utils.py:719] Maximum concurrency for 8,192 tokens per request: 8.00x\n"
    "INFO:     Application startup complete.\n"
)


def last_line(report: Report) -> str:
    return next(line for line in render(report).splitlines() if line.startswith(report.verdict))


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ({"concurrency": 16}, r"^fail: VL401 .*16 expected requests of 8,192 tokens"),
        ({"concurrency": 8}, r"^pass: 8 requests of 8,192 tokens fit at once, the ceiling is 8\.00"),
        (
            {"concurrency": 32, "context": 2048},
            r"^pass: 32 requests of 2,048 tokens fit at once, the ceiling is 32\.00",
        ),
        ({"tokens": 65536}, r"^pass: the KV cache holds 65,536 tokens, 65,536 were expected"),
        ({}, r"^pass: nothing was expected, and no check fails"),
        ({"context": 2048}, r"^pass: nothing was expected, and no check fails"),
    ],
)
def test_the_verdict_names_what_decides(expected: dict[str, float], says: str) -> None:
    report = check(UNIFORM, **expected)
    assert re.search(says, last_line(report)), last_line(report)
    assert report.summary in last_line(report)
    assert report.to_dict()["summary"] == report.summary


def test_a_pass_claims_nothing_that_no_check_looked_at() -> None:
    text = CUDA + BANNER.format(release="0.10.0") + UNIFORM
    report = vlogcheck.check(text.encode(), vlogcheck.Expectation(concurrency=16), ignore=["VL4"])
    assert report.ok
    assert "fit" not in report.summary


def test_a_pass_says_what_it_could_not_judge() -> None:
    report = vlogcheck.check(str(SMALL), vlogcheck.Expectation(kv_bytes_per_token="64KiB", tokens=624_288))
    assert report.ok
    assert "the KV cache bytes per token could not be judged: the log prints no memory" in report.summary
    report = vlogcheck.check(str(SMALL), vlogcheck.Expectation(kv_bytes_per_token="64KiB"))
    assert report.verdict == "inconclusive"
    assert "the stated KV bytes per token cannot be judged" in report.summary
    report = vlogcheck.check(str(SMALL), vlogcheck.Expectation(weights="15.42GiB"))
    assert report.summary == "the weights per rank are as expected"


def test_a_server_that_is_gone_decides_before_its_capacity() -> None:
    died = "ERROR 03-01 10:05:00 [core.py:800] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    report = check(UNIFORM + died, concurrency=16)
    assert {"VL401", "VL910"} <= {finding.code for finding in report.failing}
    assert last_line(report).startswith("fail: VL910 ")
    assert "; also VL401 " in last_line(report)


def test_the_curve_is_a_table_and_says_what_is_capped() -> None:
    args = "INFO 03-01 09:59:59 [utils.py:253] non-default args: {'max_num_seqs': 100}\n"
    text = render(check(args + UNIFORM))
    rows = re.findall(r"^ +([\d,]+) +([\d,]+\.\d\d)(?: +(max_num_seqs.*))?$", text, re.MULTILINE)
    assert rows == [
        ("512", "128.00", "max_num_seqs caps at 100"), ("1,024", "64.00", ""), ("4,096", "16.00", ""),
        ("8,192", "8.00", ""),
    ]  # fmt: skip
    assert "max_num_seqs is not printed" not in text
    assert "max_num_seqs is not printed" in render(check(UNIFORM))


def test_figures_are_those_for_programs() -> None:
    report = check(UNIFORM, concurrency=4)
    data = report.to_dict()["startups"][0]
    text = render(report)
    curve = {row[0]: row[1] for row in re.findall(r"^ +([\d,]+) +([\d,]+\.\d\d)", text, re.MULTILINE)}
    for point in data["curve"]:
        assert float(curve[f"{point['context']:,}"].replace(",", "")) == pytest.approx(point["low"], abs=0.011)
    ceiling = re.search(r"ceiling +([\d.,]+) requests of ([\d,]+) tokens", text)
    assert ceiling is not None
    assert int(ceiling[2].replace(",", "")) == data["concurrency"]["context"]
    assert data["concurrency"]["low"] <= float(ceiling[1]) <= data["concurrency"]["high"] + 0.005


def test_a_log_that_ends_is_not_called_stopped_and_a_failure_is_called_one() -> None:
    cut = check(UNIFORM.partition("INFO:")[0])
    assert "the log ends while" in render(cut)
    refused = check(
        "ERROR 03-01 10:00:09 [core.py:708] ValueError: Free memory on device (44.8/63.98 GiB) on startup is less than"
        " desired GPU memory utilization (0.9, 57.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by"
        " other processes.\n"
    )
    assert re.search(r"state +failed while .* \(line 3\)", render(refused))


@pytest.mark.parametrize("log", sorted(LOGS.glob("0.32.0/*.log"))[:12] + sorted(LOGS.glob("written/*.log")))
@pytest.mark.parametrize("width", [60, 80])
def test_lines_fit_the_terminal(log: object, width: int) -> None:
    report = vlogcheck.check(str(log), vlogcheck.Expectation(concurrency=16))
    for line in render(report, width=width).splitlines():
        if len(line) > width:  # a word that cannot be cut
            assert max(map(len, line.split())) > width - 20 or "[" in line, line


def test_folded_and_whole_say_the_same() -> None:
    report = vlogcheck.check(str(SMALL), vlogcheck.Expectation(concurrency=400))
    whole, narrow = render(report), render(report, width=80)
    assert sorted(narrow.split()) == sorted(whole.split())


def test_ranks_of_one_name_are_told_apart() -> None:
    text = render(vlogcheck.check(str(LOGS / "0.32.0" / "dp2.log")))
    header = re.search(r"^ +(rank 0 .*)$", text, re.MULTILINE)
    assert header is not None
    names = re.split(r"\s{2,}", header[1].strip())
    assert len(set(names)) == len(names) == 2


@pytest.mark.parametrize("log", ["0.24.0/tp2.log", "0.32.0/opt.log", "0.24.0/fp16-util-auto.log"])
def test_the_cpu_back_ends_cache_is_in_the_ledger(log: str) -> None:
    report = vlogcheck.check(str(LOGS / log))
    assert re.search(r"^  KV cache +\d+(\.\d\d)? [GM]iB +(line \d+: )?\S", render(report), re.MULTILINE)
    engine = report.to_dict()["startups"][0]["engines"][0]
    assert engine["ranks"][0]["ledger"]["terms"]["kv_cache"]["low"] > 0


def test_how_many_findings() -> None:
    report = vlogcheck.check(b"nothing of vLLM\n")
    assert len(report.findings) == 1
    assert repr(report).endswith("inconclusive, 1 finding>") or repr(report).endswith("fail, 1 finding>")


@pytest.mark.parametrize(("release", "tokens"), [("0.10.0", 65536), ("0.22.0", 65530)])
def test_the_ceiling_is_as_sharp_as_the_tokens(release: str, tokens: int) -> None:
    log = UNIFORM.replace("65,536", f"{tokens:,}")
    report = check(log, release, concurrency=8)
    assert report.verdict == ("pass" if tokens == 65536 else "fail"), report.summary  # 8.00x is printed for both
    finding = next(f for f in check(log, release, concurrency=16).findings if f.code == "VL401")
    needed = 4.375 * 16 * 8192 / tokens  # GiB: what prints as 4.37 is 4.375 at most
    assert f"({needed:.2f} GiB in all)" in finding.remedy


def test_many_logs_name_the_finding_that_decides(tmp_path: Path) -> None:
    from vlogcheck.api import Inquiry
    from vlogcheck.many import summarise

    gone = (
        "ERROR 03-01 10:05:00 [core.py:800] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    log = tmp_path / "serve.log"
    log.write_text(CUDA + BANNER.format(release="0.10.0") + UNIFORM + gone)
    assert summarise([str(log)], Inquiry(vlogcheck.Expectation(concurrency=16))).code == "VL910"
    log.write_text(CUDA + BANNER.format(release="0.22.0") + UNIFORM)
    bounded = summarise([str(log)], Inquiry(vlogcheck.Expectation(concurrency=9, context=4096)))
    assert (bounded.verdict, bounded.code) == ("inconclusive", None)
    assert "give --model-config" in (bounded.message or "")


def test_why_what_was_given_is_not_used_comes_first(tmp_path: Path) -> None:
    smi = tmp_path / "smi.csv"
    smi.write_text("index, memory.used [MiB], memory.total [MiB]\n0, 57344 MiB, 65520 MiB\n")
    report = vlogcheck.check((CUDA + BANNER.format(release="0.10.0") + UNIFORM).encode(), smi=str(smi))
    first = render(report).partition(" skipped:\n")[2].splitlines()[0]
    assert re.match(r" +VL(51\d|115)", first), first


def test_a_pool_that_is_not_printed_is_told_by_the_configuration() -> None:
    report = vlogcheck.check(
        str(SMALL), vlogcheck.Expectation(total_memory="65520MiB"),
        model=str(ROOT / "fixtures" / "models" / "deepseek-r1-distill-qwen-32b"),
    )  # fmt: skip
    text = render(report)
    pool = 624288 * 65536 / 2**30  # tokens × KiB per token and rank
    assert re.search(rf"KV cache +{pool:.2f} GiB .*tokens × 64 KiB by configuration", text)
    rest = 65520 / 1024 * 0.9 - 15.4155 - pool
    assert re.search(rf"the rest, not printed +{rest:.2f} GiB", text)
    assert "of the request" not in text
    bare = render(vlogcheck.check(str(SMALL)))
    assert "KV cache  " not in bare.partition("block size")[0].replace("KV cache dtype", "")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"total_memory": "80"}, "80GiB"),
        ({"weights": "15"}, "15GiB"),
        ({"context": 4096.5}, "whole number"),
        ({"concurrency": -1}, "not -1"),
        ({"concurrency": "16"}, "not '16'"),
    ],
)
def test_an_expectation_that_can_only_be_a_slip(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(vlogcheck.ExpectationError, match=says):
        vlogcheck.Expectation(**wrong)  # type: ignore[arg-type]


def test_logs_that_are_none() -> None:
    with pytest.raises(ValueError, match="no log was given"):
        vlogcheck.check([])
    with SMALL.open(encoding="utf-8") as text, pytest.raises(TypeError, match="mode 'rb'"):
        vlogcheck.check(text)  # type: ignore[arg-type]


def many_ranks(pools: list[str]) -> str:
    banner = BANNER.format(release="0.10.0").replace("tensor_parallel_size=1", f"tensor_parallel_size={len(pools)}")
    lines = []
    for number, pool in enumerate(pools):
        tag = f"(Worker_TP{number} pid={500 + number})"
        lines.append(
            f"{tag} INFO 03-01 10:00:08 [gpu_model_runner.py:1] Model loading took 7.7000 GiB and 9.0 seconds\n"
        )
        lines.append(f"{tag} INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: {pool} GiB\n")
    return render(vlogcheck.check((CUDA + banner + "".join(lines) + UNIFORM.partition("\n")[2]).encode()))


@pytest.mark.parametrize(
    ("pools", "names"),
    [
        (["4.37"] * 3, ["TP0", "TP1", "TP2"]),
        (["4.37"] * 8, ["TP0–TP7"]),
        (["4.37"] * 7 + ["3.10"], ["TP0–TP6", "TP7"]),
        (["4.37"] * 3 + ["3.10"] + ["4.37"] * 4, ["TP0 and 6 more", "TP3"]),
        ([f"{number}.00" for number in range(1, 13)], [f"TP{number}" for number in range(8)]),
    ],
)
def test_of_many_ranks_those_alike_share_a_column(pools: list[str], names: list[str]) -> None:
    text = many_ranks(pools)
    bars = re.findall(r"^  (TP\d.*?) +\[", text, re.MULTILINE)
    assert bars == names
    assert ("… and 4 more ranks" in text) == (len(set(pools)) > 8)


def test_engines_alike_are_shown_once() -> None:
    banner = BANNER.format(release="0.10.0").replace("data_parallel_size=1", "data_parallel_size=4")
    lines = []
    for number in range(4):
        tag = f"(EngineCore_{number} pid={700 + number}) "
        pool = UNIFORM.partition("INFO:")[0]
        pool = (
            pool.replace("4.37", "3.10").replace("65,536", "46,080").replace("8.00x", "5.62x") if number == 3 else pool
        )
        lines += [tag + line for line in (banner + pool).splitlines(keepends=True)]
    text = render(vlogcheck.check((CUDA + "".join(lines) + "INFO:     Application startup complete.\n").encode()))
    assert "engines 0–2, each (lines of engine 0)" in text
    assert "  engine 3\n" in text
    assert text.count("maximum concurrency") == 2
    assert "requests of 8,192 tokens at once on 4 engines" in text


def test_a_report_longer_than_a_screen_has_one_line_for_each_note() -> None:
    report = vlogcheck.check(str(LOGS / "0.32.0" / "tp2-bind.log"), vlogcheck.Expectation(concurrency=10_000))
    notes = [finding for finding in report.findings if finding.severity is Severity.NOTE]
    others = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    assert notes
    assert others
    fits, long, full = render(report), render(report, width=44), render(report, width=44, verbose=True)
    assert "notes in full" not in fits + full
    assert "notes in full: --verbose" in long
    assert long.count("\n") < full.count("\n")
    for finding in report.findings:
        start = f"{finding.severity.value if finding.severity else ''} {finding.code} "
        assert start in long
        assert f"    remedy    {finding.remedy.split()[0]}" in full
    assert long.count("    remedy ") == len(others)
    assert render(vlogcheck.check(report.path, report.contexts[0].expectation, fail_on="note"), width=44).count(
        "    remedy "
    ) == len(report.findings)
