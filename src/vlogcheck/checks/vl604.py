"""VL604: the KV cache's block is larger than usual or than asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, whole
from vlogcheck.records import BlockSizeSet, HybridBlockSize
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_USUAL = 16


@check("vLLM chose the KV cache's block size", Severity.NOTE)
def block_size_changed(startup: Startup) -> Iterator[Finding]:
    """Flag a block size set by a back end or by the alignment with state pages."""
    stated = whole(asked(startup, "block_size"))
    hybrid, forced = startup.last(HybridBlockSize), startup.last(BlockSizeSet)
    record = hybrid or forced
    if record is None:
        return
    size = record.block_size_tokens
    if size in (stated, _USUAL):
        return
    if hybrid is not None:
        why = "so that an attention page covers a state page"
        remedy = (
            f"plan with requests of at least {size:,} tokens: a shorter one holds a whole block of {size:,} in"
            " every group of"
            " attention layers"
        )
    else:
        backend = forced.backend if forced is not None else None
        why = f"for {backend}" if backend else "by the attention back end"
        remedy = (
            f"each request wastes up to {size - 1:,} tokens of its last block: {256 * (size - 1):,} for 256 requests"
        )
    yield Finding(
        f"the KV cache's block is {size:,} tokens, {why}",
        line=record.line,
        expected=f"{stated:,} tokens (--block-size)" if stated else f"{_USUAL} tokens, as usual",
        observed=f"{size:,} tokens",
        remedy=remedy,
        fix={"block_size": size},
        severity=Severity.WARNING if stated else None,
    )
