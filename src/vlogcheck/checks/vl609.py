"""VL609: the number of blocks was set by hand."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._options import asked, whole
from vlogcheck.context import Context
from vlogcheck.records import BlocksOverride
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_PROFILING_BLOCKS = 512


def is_own(startup: Startup, record: BlocksOverride) -> bool:
    """Whether vLLM made the override itself: 512 blocks instead of 0 while it profiles graphs (from 0.20)."""
    recent = startup.version is None or parse_release(startup.version).since("0.20.0")
    return recent and record.profiled_blocks == 0 and record.blocks == _PROFILING_BLOCKS


@check("the number of KV cache blocks was set by hand", Severity.WARNING)
def blocks_overridden(startup: Startup, context: Context) -> Iterator[Finding]:
    """Flag `--num-gpu-blocks-override`, with the tokens it gives up or takes beyond what was profiled."""
    stated = whole(asked(startup, "num_gpu_blocks_override"))
    found = [r for r in startup.all(BlocksOverride) if not is_own(startup, r) or r.blocks == stated]
    if not found:
        return
    record = found[-1]
    engine = context.observation.engines[0] if context.observation.engines else None
    size = engine.ledger["block_size"].interval if engine is not None else None
    tokens = f" ({record.blocks * size.lo:,} tokens)" if size is not None else ""
    change = record.blocks - record.profiled_blocks
    if not record.profiled_blocks:
        effect = "leave the override out and the profile decides"
    elif change < 0:
        share = 100 * -change / record.profiled_blocks
        effect = f"leave it out: {-change:,} blocks ({share:.0f} % of the profiled memory) are given up"
    else:
        effect = f"leave it out: {change:,} blocks more than fit were asked for, which ends in an out-of-memory error"
    yield Finding(
        f"the KV cache was set to {record.blocks:,} blocks by hand",
        line=record.line,
        expected=f"{record.profiled_blocks:,} blocks as profiled" if record.profiled_blocks else "blocks as profiled",
        observed=f"{record.blocks:,} blocks{tokens}",
        remedy=effect,
        explanation="available KV cache memory and utilization say nothing of this pool",
        severity=Severity.WARNING if change else Severity.NOTE,
    )
