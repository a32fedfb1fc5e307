"""LMCache's lines, in its own log format, between vLLM's."""

from __future__ import annotations

import pytest

from vlogcheck.records import KVTransferStep, LMCachePoolFull, LMCacheStep
from vlogcheck.scan import Parser, parse_lines

STORED = (
    "Stored 512 out of total 768 tokens. size: 0.0625 gb, cost 4.5 ms, throughput: 13.8889 GB/s; offload_time: 4.25 ms,"
    " put_time: 0.25 ms"
)


@pytest.mark.parametrize("tag", ["", "(EngineCore_DP0 pid=31) ", "(Worker_TP1 pid=77)", "vllm-1  | "])
@pytest.mark.parametrize("time", ["", "[2026-02-03 04:05:06,789] "])
@pytest.mark.parametrize("colour", ["", "\x1b[0m"])
@pytest.mark.parametrize("where", ["", " (cache_engine.py:488:lmcache.v1.cache_engine)"])
def test_format(tag: str, time: str, colour: str, where: str) -> None:
    (record,) = parse_lines([f"{tag}{time}LMCache INFO:{colour} {STORED}{where}"])
    assert isinstance(record, LMCacheStep)
    assert (record.step, record.tokens, record.total_tokens, record.size_gib, record.milliseconds) == (
        "stored", 512, 768, 0.0625, 4.5,
    )  # fmt: skip
    assert record.level == "INFO"
    assert record.source == ("cache_engine.py:488" if where else None)
    assert record.process == (tag.strip("( ").partition(" ")[0] if "pid=" in tag else None)


def test_full_pool() -> None:
    lines = [
        "[2026-02-03 04:05:06,789] LMCache WARNING: Failed to allocate memory for the KV cache.",
        "The KV cache will not be stored. (cache_engine.py:200:lmcache.v1.cache_engine)",
    ]
    assert [type(record) for record in parse_lines(lines)] == [LMCachePoolFull, LMCachePoolFull]


def test_vllms_own_connector_logs_in_this_format() -> None:
    (record,) = parse_lines(
        [
            "[2026-02-03 04:05:06,789] LMCache INFO: Storing KV cache for 512 out of 768 tokens (skip_leading_tokens=256) for"
            " request 7 (vllm_v1_adapter.py:761:lmcache.integration.vllm.vllm_v1_adapter)"
        ]
    )
    assert isinstance(record, KVTransferStep)
    assert (record.tokens, record.request) == (512, "7")


def test_what_no_template_knows_is_told_of_without_the_format() -> None:
    told: list[str] = []
    parser = Parser(on_unrecognised=lambda line: told.append(line.message))
    parser.feed(b"[2026-02-03 04:05:06,789] LMCache INFO: Kept 12 GiB of blocks (pool.py:8:lmcache.pool)\n")
    parser.close()
    assert told == ["Kept 12 GiB of blocks"]


def test_behind_a_progress_bar() -> None:
    bar = "Processed prompts:   0%|          | 0/2 [00:00<?, ?it/s, est. speed input: 0.00 toks/s]"
    (record,) = parse_lines([f"{bar}(EngineCore_DP0 pid=31) [2026-02-03 04:05:06,789] LMCache INFO: {STORED}"])
    assert isinstance(record, LMCacheStep)
    assert (record.process, record.pid) == ("EngineCore_DP0", 31)
