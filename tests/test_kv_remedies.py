"""Remedies of the KV cache and concurrency checks: what a finding's `fix` says, applied in the ledger, removes the finding.

Each page's flagged log is printed again as the server would with one option changed: the plan computes the figures.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.test_pages import Block, blocks
from vlogcheck.api import Report, check, read
from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.expected import Model, Setup
from vlogcheck.registry import Finding, all_checks
from vlogcheck.units import GIB

TOKENS = re.compile(r"KV cache size: [\d,]+ tokens")
CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: [\d.]+x")
AVAILABLE = re.compile(r"Available KV cache memory: [\d.]+ GiB")


def flagged(code: str) -> list[tuple[Block, Finding]]:
    """The findings on a check's own page, with the log they are in."""
    found = []
    for block in blocks(all_checks()[code]):
        report = check(block.log.encode(), **block.arguments)
        found += [(block, finding) for finding in report.findings if finding.code == code]
    assert found
    return found


def setup_of(block: Block) -> Setup:
    facts, model = read(block.log.encode()), Model.load(block.arguments["model"])
    context = Context(facts.startups[0], facts=facts, model=model)
    return model.expected(context, context.observation.engines[0]).setup


def again(block: Block, **changed: Any) -> Report:
    """The log as the server would print it with the options changed, checked with the same expectations."""
    log = block.log
    options = dict(changed)
    if "max_model_len" in options:
        log = re.sub(r"max_seq_len=\d+", f"max_seq_len={options['max_model_len']}", log)
    if "max_num_seqs" in options:
        log = re.sub(r"'max_num_seqs': \d+", f"'max_num_seqs': {options['max_num_seqs']}", log)
    grown = 1.0
    if "kv_cache_memory_bytes" in options:
        # Two decimals are printed: not fewer bytes than were given.
        size, before = options.pop("kv_cache_memory_bytes"), AVAILABLE.search(log)
        assert before is not None
        memory = math.ceil(size / GIB * 100) / 100 + 0.01
        grown = memory / float(before.group().split()[-2])
        log = AVAILABLE.sub(f"Available KV cache memory: {memory:.2f} GiB", log)
    if "kv_cache_dtype" in options:
        log = log.replace("max_seq_len=", f"kv_cache_dtype={options['kv_cache_dtype']}, max_seq_len=")
    if "decode_context_parallel_size" in options:
        size = options["decode_context_parallel_size"]
        log = log.replace("max_seq_len=", f"decode_context_parallel_size={size}, max_seq_len=")
    if "tensor_parallel_size" in options:
        log = re.sub(r"tensor_parallel_size=\d+", f"tensor_parallel_size={options['tensor_parallel_size']}", log)
    changed_block = block._replace(log=log)
    tokens, text, length = figures(changed_block, grown)
    log = TOKENS.sub(f"KV cache size: {tokens:,} tokens", log)
    log = CONCURRENCY.sub(f"Maximum concurrency for {length:,} tokens per request: {text}x", log)
    return check(log.encode(), **block.arguments)


def figures(block: Block, grown: float = 1.0) -> tuple[int, str, int]:
    """Tokens, concurrency and length the release prints: by the plan, or by hand where all layers are alike.

    `grown` is how many times the memory of the page there is.
    """
    facts = read(block.log.encode())
    startup = facts.startups[0]
    length = startup.config.max_model_len if startup.config is not None else None
    assert length is not None
    if block.arguments.get("model") is not None:
        log = CONCURRENCY.sub(f"Maximum concurrency for {length:,} tokens per request: 1.00x", block.log)
        plan = setup_of(block._replace(log=log)).plan()
        assert plan.kv_cache_tokens is not None
        assert plan.max_concurrency_text is not None
        return plan.kv_cache_tokens, plan.max_concurrency_text, length
    printed = Context(startup, facts=facts).observation.engines[0].ledger["tokens"].interval
    assert printed is not None
    tokens = int(printed.lo * grown) // 16 * 16
    if (startup.version or "").startswith("0.8"):
        return tokens, f"{tokens / length:.2f}", length
    return tokens, f"{tokens // 16 / -(-length // 16):.2f}", length


def remove(code: str, *keys: str, least: int = 1) -> None:
    """Every named fix on the page removes the finding by itself."""
    applied = 0
    for block, finding in flagged(code):
        for key in keys:
            if key in finding.fix:
                report = again(block, **{key: finding.fix[key]})
                assert code not in [f.code for f in report.findings], f"{key}: {finding.fix[key]}\n{report}"
                applied += 1
    assert applied >= least


def test_fewer_requests_than_expected() -> None:
    remove("VL401", "kv_cache_memory_bytes", "kv_cache_dtype", "tensor_parallel_size", least=4)


def test_the_longest_context_is_the_longest() -> None:
    for block, finding in flagged("VL401"):
        longest = int(finding.fix["max_model_len"])
        expect = block.arguments["expect"]
        for length, enough in ((longest, True), (longest + 16, False)):
            tokens, text, _ = figures(
                block._replace(log=re.sub(r"max_seq_len=\d+", f"max_seq_len={length}", block.log))
            )
            assert tokens
            assert (float(text) >= expect.concurrency) is enough, length


def test_the_memory_is_what_the_requests_take() -> None:
    for block, finding in flagged("VL401"):
        if "model" not in block.arguments or block.arguments["model"] is None:
            continue
        setup, expect = setup_of(block), block.arguments["expect"]
        needed = int(finding.fix["kv_cache_memory_bytes"])
        enough, less = setup.plan(available=needed), setup.plan(available=needed - 1)
        assert enough.max_concurrency is not None
        assert less.max_concurrency is not None
        assert enough.max_concurrency >= expect.concurrency > less.max_concurrency


@pytest.mark.parametrize("code", ["VL402", "VL403"])
def test_max_num_seqs(code: str) -> None:
    remove(code, "max_num_seqs")


def test_a_request_that_cannot_finish() -> None:
    remove("VL404", "max_model_len")
    lengths = [
        (finding.fix["max_model_len"], re.search(r"KV cache size: ([\d,]+)|GPU blocks: (\d+)", block.log))
        for block, finding in flagged("VL404")
        if "max_model_len" in finding.fix
    ]
    assert len(lengths) > 1
    for length, size in lengths:
        assert size is not None
        assert length == (int(size[1].replace(",", "")) if size[1] else int(size[2]) * 16), "all that the pool holds"


def test_fewer_tokens_than_expected() -> None:
    remove("VL306", "kv_cache_memory_bytes")


def test_copies_of_kv_heads() -> None:
    remove("VL315", "decode_context_parallel_size")


def test_a_longer_context() -> None:
    remove("VL412", "max_model_len")


def test_blocks_set_by_hand() -> None:
    for block, finding in flagged("VL314"):
        assert finding.fix == {"num_gpu_blocks_override": "none"}
        without = "\n".join(line for line in block.log.splitlines() if "num_gpu_blocks_override" not in line) + "\n"
        assert "VL314" not in [f.code for f in check(without.encode()).findings]


def test_the_cache_type_that_is_used() -> None:
    for block, finding in flagged("VL308"):
        used = block.log.replace("'kv_cache_dtype': 'fp8'", f"'kv_cache_dtype': '{finding.fix['kv_cache_dtype']}'")
        assert "VL308" not in [f.code for f in check(used.encode()).findings]


def test_the_stated_bytes_per_token() -> None:
    for block, finding in flagged("VL307"):
        told = check(
            block.log.encode(), model=block.arguments["model"],
            expect=Expectation(kv_bytes_per_token=int(finding.fix["kv_bytes_per_token"])),
        )  # fmt: skip
        assert "VL307" not in [f.code for f in told.findings]
