"""VL313: a request was refused, or the server, by needs that are not this rank's."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.records import KVCacheTooSmall
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the refusal asks for more KV cache than a rank needs", Severity.WARNING)
def refusal_counts_too_much(record: KVCacheTooSmall, context: Context) -> Iterator[Finding]:
    """Flag a refusal whose needed memory is not what the layers of one rank take."""
    if context.model is None:
        raise Missing("no model configuration: give --model-config")
    plan = _plan(context)
    pool = plan.plan.pool
    if pool is None:
        raise Missing("the plan has no layers")
    length = record.max_model_len
    stages = [stage for stage in range(len(pool.ranks)) if pool.ranks[stage]]
    true = max(pool.bytes_per_block(stage) * pool.blocks_per_request(length, stage) for stage in stages)
    needed, available = record.needed_gib.bytes, record.available_gib.bytes
    if needed.lo <= true or true > available.hi:
        return
    whole = sum(pool.bytes_per_block(stage) * pool.blocks_per_request(length, stage) for stage in stages)
    yield Finding(
        f"vLLM asks for {record.needed_gib} GiB, but a request of {length:,} tokens takes {format_gib(true)} of a rank",
        line=record.line,
        expected=f"{format_gib(true)} per rank by the configuration, of {record.available_gib} GiB available",
        observed=f"{record.needed_gib} GiB asked for",
        remedy=f"the length fits by its layers: take another release, or start with --max-model-len"
        f" {record.estimated_max_model_len or '-1'} on this one",
        explanation="the figure is that of all pipeline stages together"
        if plan.setup.options.pipeline_parallel_size > 1 and needed.lo <= whole <= needed.hi
        else "the release counts layers that hold a window or a state as if they held the whole request"
        if len(plan.plan.groups) > 1
        else "",
    )


def _plan(context: Context) -> ExpectedEngine:
    engines = context.observation.engines
    if context.model is None or not engines:
        raise Missing("the log has no engine")
    return context.model.expected(context, engines[0])
