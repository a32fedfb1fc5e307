"""VL317: V0 divides the blocks among pipeline stages, so a request may use only a part of what is printed."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import Capacities
from vlogcheck.checks._memory import release_of
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.deployment import stated
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("V0 divides the blocks among the pipeline stages", Severity.NOTE)
def blocks_divided_by_stages(capacities: Capacities, startup: Startup) -> Iterator[Finding]:
    """Say what one virtual engine of V0 holds where several pipeline stages run (core/scheduler.py, 0.5.1 to 0.10)."""
    config = startup.config
    stages = config.pipeline_parallel_size if config is not None else None
    stages = stages or stated(startup, "pipeline_parallel_size")
    if not isinstance(stages, int) or isinstance(stages, bool) or stages < 2:
        raise Missing("no pipeline stages")
    release = release_of(startup)
    v1 = config is not None and config.engine_generation == "V1"
    engine = capacities[0]
    blocks, size = engine.ledger["blocks"].interval, engine.ledger["block_size"].interval
    if v1 or startup.version is None or release.before("0.5.1") or release.since("0.11.0"):
        raise Missing("only V0 from 0.5.1 on divides the blocks")
    if blocks is None or engine.ledger["blocks"].status != "printed" or size is None:
        raise Missing("the log prints no blocks")
    each = blocks.lo // stages
    ranks = stages * parallel_sizes(startup)[0]
    tokens, length = each * size.lo, engine.ledger["max_model_len"].interval
    short = length is not None and tokens < length.lo
    yield Finding(
        f"each of {stages} pipeline stages schedules {each:,} of the {blocks.lo:,} blocks: {tokens:,} tokens, not"
        f" {blocks.lo * size.lo:,}, for the requests it has",
        line=engine.ledger["blocks"].line,
        expected=f"{blocks.lo * size.lo:,} tokens for any request",
        observed=f"{each:,} blocks ({tokens:,} tokens) for each virtual engine",
        remedy=f"--max-model-len {tokens} is the longest that fits"
        if short
        else f"count on {stages} queues of {tokens:,} tokens each: a request waits for its own queue though the other has room;"
        f" --tensor-parallel-size {ranks} without stages has one queue",
        explanation="V0 runs one scheduler for each stage and gives each its share of the blocks",
        fix={"max_model_len": tokens} if short else {"tensor_parallel_size": ranks, "pipeline_parallel_size": 1},
        severity=Severity.WARNING if short else None,
    )
