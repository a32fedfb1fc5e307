"""VL901: vLLM refused to start because too little memory was free."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._failing import exact, floor_share, ranks_text
from vlogcheck.context import Context
from vlogcheck.failures import Failure, Outcome
from vlogcheck.records import ExternalWeightsTooLarge, FreeMemoryTooLow, KVCacheRequestTooLarge
from vlogcheck.registry import Finding, Severity, check

_UNIFIED = ((119.0, 122.5), (142.0, 143.0))
"""GiB that GB10 and GH200 report: memory shared with the host, whose page cache counts as used."""


@check("refused to start: less memory is free than asked for", Severity.ERROR)
def free_memory_too_low(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag the refusal, with the largest utilization that would have started."""
    failure = outcome.failure
    if failure is None:
        return
    if isinstance(failure.record, FreeMemoryTooLow):
        yield _free(failure, context)
    elif isinstance(failure.record, ExternalWeightsTooLarge):
        record = failure.record
        least = floor_share(exact(record.external_gib), exact(record.total_gib)) + 0.01
        yield Finding(
            f"weights held by another process exceed the memory asked for{ranks_text(failure)}",
            line=record.line,
            expected=f"at least {record.external_gib} GiB asked for: what the other process holds",
            observed=f"{record.requested_gib} GiB ({record.gpu_memory_utilization} of {record.total_gib} GiB)",
            remedy=f"raise --gpu-memory-utilization above {least:.2f}: the KV cache comes on top of the weights",
        )
    elif isinstance(failure.record, KVCacheRequestTooLarge):
        kv = failure.record
        yield Finding(
            f"the KV cache asks for more memory than node {kv.device} has free{ranks_text(failure)}",
            line=kv.line,
            expected=f"{kv.kv_cache_gib} GiB free for the KV cache",
            observed=f"{kv.free_gib} of {kv.total_gib} GiB free",
            remedy=f"give the KV cache at most {kv.free_gib} GiB (VLLM_CPU_KVCACHE_SPACE or"
            " --kv-cache-memory-bytes), or"
            f" free {exact(kv.kv_cache_gib) - exact(kv.free_gib):.2f} GiB of host memory",
            fix={"kv_cache_memory_bytes": kv.free_gib.bytes.lo},
        )


def _free(failure: Failure, context: Context) -> Finding:
    """Quote the rank with the least free memory: every rank has to start."""
    records = [r for r in context.startup.all(FreeMemoryTooLow) if r.line >= failure.line]
    record = min(records, key=lambda r: exact(r.free_gib) / exact(r.total_gib) if r.total_gib else 0)
    free, total = exact(record.free_gib), exact(record.total_gib)
    share = floor_share(free, total)
    missing = exact(record.requested_gib) - free
    used = total - free
    unified = any(low <= total <= high for low, high in _UNIFIED)
    return Finding(
        f"refused to start: {record.free_gib} of {record.total_gib} GiB are free"
        f"{ranks_text(failure)}, {missing:.2f} GiB less than asked for",
        line=failure.line,
        expected=f"{record.requested_gib} GiB free (utilization {record.gpu_memory_utilization:g} of"
        f" {record.total_gib} GiB)",
        observed=f"{record.free_gib} GiB free",
        remedy=f"find who holds {used:.2f} GiB (nvidia-smi, rocm-smi, npu-smi; top on CPUs) or wait until the driver"
        " has given"
        f" it back, then start again; as it is, --gpu-memory-utilization {share:.2f} is the largest that starts",
        explanation="memory shared with the host: its page cache counts as used, so this need not be another process"
        if unified
        else "",
        fix={"gpu_memory_utilization": share},
    )
