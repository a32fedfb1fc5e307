"""VL612: the utilization is ignored: the KV cache's size comes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked
from vlogcheck.records import CPUKVCache, KVCachePinned, StartupPlanApplied
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_STEPS = {"GiB": 1.0, "MiB": 1 / 1024}


def _step(size: float) -> str:
    """Return the unit to change a size by."""
    return "GiB" if size >= 1 else "MiB"


def _share_of_step(size: float) -> str:
    share = 100 * _STEPS[_step(size)] / size
    return f"{share:.0f}" if share >= 1 else f"{share:.1f}"


@check("the utilization is ignored: the KV cache's size comes from elsewhere", Severity.NOTE)
def utilization_ignored(startup: Startup) -> Iterator[Finding]:
    """Flag a KV cache of fixed size: by an option, an environment variable or a stored plan."""
    pinned, plan, cpu = startup.last(KVCachePinned), startup.last(StartupPlanApplied), startup.last(CPUKVCache)
    if pinned is not None:
        source, size, line = "--kv-cache-memory-bytes", pinned.kv_cache_gib, pinned.line
        rest = (
            f"{pinned.free_gib} GiB were free: {pinned.free_gib - pinned.kv_cache_gib:.2f} GiB remain for weights"
            " and the rest"
        )
    elif plan is not None:
        source, size, line = "a stored start-up plan", plan.kv_cache_gib, plan.line
        rest = f"made with {plan.baseline_free_gib} GiB free, now {plan.free_gib}"
    elif cpu is not None and cpu.requested_gib is None:
        by_option = any(startup.args.get(name) for name in ("kv_cache_memory_bytes", "kv_cache_memory"))
        variable = "VLLM_CPU_KVCACHE_SPACE (or its default)" if cpu.total_gib is None else "VLLM_CPU_KVCACHE_SPACE"
        source, size, line = "--kv-cache-memory-bytes" if by_option else variable, cpu.gib, cpu.line
        rest = f"of {cpu.total_gib} GiB on node {cpu.node}" if cpu.total_gib is not None else "on the host"
    else:
        return
    stated = asked(startup, "gpu_memory_utilization")
    both = isinstance(stated, float) and cpu is None
    yield Finding(
        f"the KV cache has a fixed size of {size} GiB from {source}: the utilization plays no part",
        line=line,
        expected=f"utilization {stated:g} decides" if both else "utilization × total decides",
        observed=f"{size} GiB, {rest}",
        remedy=f"change the size itself, each {_step(size)} more or less is {_share_of_step(size)} % of the"
        f" KV cache; or leave out {source} and"
        " let the utilization decide"
        if size > 0
        else f"unset {source}: the KV cache has no memory",
        severity=Severity.WARNING if both else None,
    )
