"""VL301: the printed blocks, block size and tokens do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._kv import Capacities, same_for_all
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.observed import EngineLedger
from vlogcheck.registry import Finding, Missing, Severity, check


@check("blocks × block size is not the printed number of tokens", Severity.WARNING)
def blocks_times_block_size(capacities: Capacities, context: Context) -> Iterator[Finding]:
    """Flag a pool whose tokens are not those of its blocks, by the rule of the release."""
    judged = False
    for engine in capacities:
        ledger = engine.ledger
        blocks, tokens, size = ledger["blocks"], ledger["tokens"], ledger["block_size"].interval
        if (
            blocks.status != "printed"
            or tokens.status != "printed"
            or blocks.interval is None
            or tokens.interval is None
        ):
            continue
        judged = True
        expected = _tokens(context, engine, blocks.interval.lo)
        if expected is None or expected == tokens.interval.lo or size is None:
            continue
        if _by_plan(context, engine):
            continue
        yield Finding(
            f"{blocks.interval.lo:,} blocks of {size.lo} tokens make {expected:,} tokens, not {tokens.interval.lo:,}",
            line=tokens.line,
            expected=f"{expected:,} tokens (line {blocks.line} prints {blocks.interval.lo:,} blocks)",
            observed=f"{tokens.interval.lo:,} tokens",
            remedy=f"plan with the smaller figure, {min(expected, tokens.interval.lo):,} tokens, until both lines come from one"
            " server: look for a second start-up in the same file",
            explanation=_why(blocks.interval.lo, tokens.interval.lo, size.lo),
        )
    if not judged:
        raise Missing("the log does not print both blocks and tokens")


def cdiv(a: int, b: int) -> int:
    """Return a ÷ b rounded up."""
    return -(-a // b)


def _tokens(context: Context, engine: EngineLedger, blocks: int) -> int | None:
    """Return the tokens the release prints for a model whose layers are alike; None where more is needed to say it."""
    ledger = engine.ledger
    size, length = ledger["block_size"].interval, ledger["max_model_len"].interval
    if size is None or not blocks:
        return None
    release = parse_release(context.startup.version)
    shards = stated(context.startup, "decode_context_parallel_size")
    shards = shards if isinstance(shards, int) and shards > 0 else 1
    if release.since("0.20.2"):
        if length is None or ledger["concurrency"].lo is None or length.lo <= 0:
            return None
        needed = cdiv(cdiv(length.lo, shards), size.lo)
        return int(blocks / needed * length.lo)
    printed = ledger["tokens"].interval
    if ledger["block_size"].status == "assumed" and printed is not None and printed.lo % (blocks * shards) == 0:
        return printed.lo  # the block size is not printed: a whole number of tokens per block is all there is to see
    return blocks * size.lo * shards


def _by_plan(context: Context, engine: EngineLedger) -> bool:
    """Whether the figures go together under the layout of the model's layers (or may, as that is not known)."""
    if context.model is None:
        # Layers of several kinds share the blocks, which makes tokens smaller by the number of groups, or larger by a window.
        return engine.ledger["block_size"].status == "assumed" or parse_release(context.startup.version).since("0.20.2")
    try:
        expected = context.model.expected(context, engine)
        # Where layers differ, tokens are no multiple of the blocks at all (from 0.20.2): VL305 holds them against the layers.
        return observed_blocks(expected) is not None or not same_for_all(expected)
    except Missing:
        return True


def _why(blocks: int, tokens: int, size: int) -> str:
    if tokens % blocks == 0 and tokens // blocks != size:
        return f"a block size of {tokens // blocks} would give it"
    if tokens and blocks * size % tokens == 0:
        return f"{blocks * size // tokens} groups of layers that share the blocks would give it"
    return ""
