"""VL604: a back end chose the KV cache's block size, or the one asked for is not used."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, whole
from vlogcheck.records import BlockSizeSet, HybridBlockSize
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_USUAL = 16


@check("a back end chose the KV cache's block size, or the one asked for is not used", Severity.NOTE)
def block_size_changed(startup: Startup) -> Iterator[Finding]:
    """Flag a block size set by an attention back end, and any that replaces `--block-size`."""
    stated = whole(asked(startup, "block_size"))
    hybrid, forced = startup.last(HybridBlockSize), startup.last(BlockSizeSet)
    record = (hybrid if stated else None) or forced  # unasked, the block of a hybrid is VL309's
    if record is None or record.block_size_tokens in (stated, _USUAL):
        return
    size = record.block_size_tokens
    backend = record.backend if isinstance(record, BlockSizeSet) else None
    yield Finding(
        f"the KV cache's block is {size:,} tokens" + (f", as {backend} needs it" if backend else ""),
        line=record.line,
        expected=f"{stated:,} tokens (--block-size)" if stated else f"{_USUAL} tokens, as usual",
        observed=f"{size:,} tokens",
        remedy=f"count each request up to the next {size:,} tokens: up to {size - 1:,} of its last block are lost,"
        f" {256 * (size - 1):,} for 256 requests; --block-size {size} says that the plan does",
        fix={"block_size": size},
        severity=Severity.WARNING if stated else None,
    )
