"""VL503: the pool is sized by the tightest card, and others cannot use what they have."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import VLLM_BUFFER, DeviceWorkers, request_bytes, worth
from vlogcheck.checks._ranks import engines, even, pipelined
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("the tightest card sizes the KV cache, and memory of the others lies idle", Severity.NOTE)
def sized_by_tightest(workers: DeviceWorkers, startup: Startup) -> Iterator[Finding]:
    """Say what the other ranks lose where stages or weights are uneven."""
    groups = engines(workers, "kv_cache")
    if not groups:
        raise Missing("no two ranks print their KV cache memory")
    for ranks in groups:
        tightest, least = min(ranks, key=lambda pair: pair[1].mid)
        _, most = max(ranks, key=lambda pair: pair[1].mid)
        one = request_bytes(tightest)
        if most.lo - least.hi < max(one[0] if one is not None else 0, VLLM_BUFFER):
            continue
        if not pipelined(startup) and even(ranks, "weights"):
            continue  # VL502 names the card
        idle = [(worker, seen.mid - least.mid) for worker, seen in ranks if seen.lo > least.hi]
        total = sum(size for _, size in idle)
        names = ", ".join(f"{worker.name} {format_gib(size)}" for worker, size in idle)
        remedy = (
            "give the fullest stage fewer layers (VLLM_PP_LAYER_PARTITION, such as one less on the last stage, which holds"
            " the output head too)"
            if pipelined(startup)
            else "make the ranks' weights even"
        )
        yield Finding(
            f"{tightest.name} sizes the KV cache: {format_gib(total)} lie idle on the others",
            line=tightest.ledger["kv_cache"].line,
            expected="about the same on every rank",
            observed=f"{format_gib(least.mid)} on {tightest.name}; idle: {names}",
            remedy=f"{remedy}: up to {format_gib(total // len(ranks))} more per rank{worth(tightest, total // len(ranks))}",
            explanation="the scheduler uses the number of blocks of the rank that has least",
        )
        return
