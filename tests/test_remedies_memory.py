"""Doing what a finding says removes it: the figures of its `fix`, put into the log or the question of its page."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from tests.test_pages import Block, blocks, run
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, all_checks

_SUMMARY = re.compile(r"/([\d.]+) GiB\) on startup\. Desired GPU memory utilization is \(([\d.]+), ([\d.]+) GiB\)")


def with_utilization(log: str, share: float) -> str:
    """The log of the same server with another utilization; the pool takes what changes."""
    log = re.sub(r"('gpu_memory_utilization': )[\d.]+", rf"\g<1>{share}", log)

    def summary(match: re.Match[str]) -> str:
        requested = f"{float(match[1]) * share:.2f}"
        return f"/{match[1]} GiB) on startup. Desired GPU memory utilization is ({share}, {requested} GiB)"

    return _SUMMARY.sub(summary, log)


def applied(block: Block, finding: Finding) -> Block:
    log, arguments = block.log, dict(block.arguments)
    fix = finding.fix
    expect = arguments.get("expect") or Expectation()
    stated: dict[str, Any] = {name: getattr(expect, name) for name in expect.stated}
    if "gpu_memory_utilization" in fix:
        log = with_utilization(log, float(fix["gpu_memory_utilization"]))
    if "total_memory_bytes" in fix:
        stated["total_memory"] = int(fix["total_memory_bytes"])
    if "expect_weights_bytes" in fix:
        stated["weights"] = int(fix["expect_weights_bytes"])
    if "dtype" in fix:
        log = log.replace("torch.float32", f"torch.{fix['dtype']}")
    for name in ("tensor_parallel_size", "data_parallel_size"):
        if name in fix and name in log:
            log = re.sub(rf"{name}=\d+", f"{name}={fix[name]}", log)
    return Block(log, {**arguments, "expect": Expectation(**stated)}, {})


@pytest.mark.parametrize("code", ["VL103", "VL104", "VL105", "VL106", "VL111", "VL112", "VL201", "VL205", "VL504"])
def test_doing_what_it_says_removes_it(code: str) -> None:
    tried = 0
    for block in blocks(all_checks()[code]):
        for finding in [f for f in run(block).findings if f.code == code]:
            assert finding.fix, finding.message
            after = run(applied(block, finding))
            same = [f for f in after.findings if f.code == code and f.message == finding.message]
            assert not same, f"\n{finding}\n{after}"
            tried += 1
    assert tried


def test_every_figure_of_a_fix_is_in_its_remedy() -> None:
    """A program and a person are told the same."""
    told = 0
    for item in all_checks().values():
        if item.code[:3] not in ("VL1", "VL2", "VL5"):
            continue
        for block in blocks(item):
            for finding in [f for f in run(block).findings if f.code == item.code]:
                for name, value in finding.fix.items():
                    if name.endswith("_bytes") and name != "kv_cache_memory_bytes":
                        continue  # told in a unit for people
                    figure = f"{value:g}" if isinstance(value, float) else str(value)
                    assert figure in finding.remedy, (item.code, name)
                    told += 1
    assert told > 10


def test_the_estimate_that_was_too_low_fits_with_the_named_utilization() -> None:
    """The page's server with the utilization of the remedy holds everything within total × 0.85."""
    (block,) = [b for b in blocks(all_checks()["VL109"]) if b.marks]
    log = block.log.splitlines(keepends=True)
    log.insert(
        1,
        "INFO 03-01 10:00:41 [gpu_worker.py:600] Free memory on device (92.5/95.0 GiB) on startup. Desired GPU memory"
        " utilization is (0.85, 80.75 GiB). Actual usage is 63.99 GiB for weight, 1.23 GiB for peak activation, 0.16 GiB for"
        " non-torch memory, and 1.62 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with"
        " `--kv-cache-memory=14607200256` (13.6 GiB) to fit into requested memory, or `--kv-cache-memory=27227467776` (25.36"
        " GiB) to fully utilize gpu memory. Current kv cache memory in use is 15.12 GiB.\n",
    )
    (finding,) = [f for f in run(Block("".join(log), block.arguments, {})).findings if f.code == "VL109"]
    share = Fraction(str(finding.fix["gpu_memory_utilization"]))
    excess = Fraction("1.62") - Fraction("0.25")
    assert share * 95 + excess <= Fraction("0.85") * 95
    assert (share + Fraction(1, 100)) * 95 + excess > Fraction("0.85") * 95
