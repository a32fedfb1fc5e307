"""The log of a page printed again as the server would with an option changed: the plan computes the figures."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from vlogcheck._reading import read
from vlogcheck.context import Context
from vlogcheck.expected import Model, Setup
from vlogcheck.units import GIB

if TYPE_CHECKING:
    from tests.test_pages import Block

TOKENS = re.compile(r"KV cache size: [\d,]+ tokens")
CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: [\d.]+x")
AVAILABLE = re.compile(r"Available KV cache memory: [\d.]+ GiB")
BANNER_OPTIONS = ("kv_cache_dtype", "decode_context_parallel_size", "data_parallel_size", "tensor_parallel_size")


def setup_of(block: Block) -> Setup:
    """Return the plan's setup for a block with a configuration."""
    facts, model = read(block.log.encode()), Model.load(block.arguments["model"])
    context = Context(facts.startups[0], facts=facts, model=model)
    return model.expected(context, context.observation.engines[0]).setup


def printed_again(block: Block, **changed: Any) -> Block:
    """Return the block as the server would print it with the options changed."""
    log, options = block.log, dict(changed)
    if "max_model_len" in options:
        log = re.sub(r"max_seq_len=\d+", f"max_seq_len={options['max_model_len']}", log)
    if "max_num_seqs" in options:
        log = re.sub(r"'max_num_seqs': \d+", f"'max_num_seqs': {options['max_num_seqs']}", log)
    grown = 1.0
    if "kv_cache_memory_bytes" in options:
        # Two decimals are printed: not fewer bytes than were given.
        before = AVAILABLE.search(log)
        assert before is not None
        memory = math.ceil(options["kv_cache_memory_bytes"] / GIB * 100) / 100 + 0.01
        grown = memory / float(before.group().split()[-2])
        log = AVAILABLE.sub(f"Available KV cache memory: {memory:.2f} GiB", log)
    for name in BANNER_OPTIONS:
        if name in options:
            log = re.sub(rf"{name}=\w+, ", "", log).replace("max_seq_len=", f"{name}={options[name]}, max_seq_len=")
    changed_block = block._replace(log=log)
    tokens, text, length = figures(changed_block, grown)
    log = TOKENS.sub(f"KV cache size: {tokens:,} tokens", log)
    return block._replace(log=CONCURRENCY.sub(f"Maximum concurrency for {length:,} tokens per request: {text}x", log))


def figures(block: Block, grown: float = 1.0) -> tuple[int, str, int]:
    """Return tokens, concurrency and length the release prints: by the plan, or by hand where all layers are alike.

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
