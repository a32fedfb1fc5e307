"""VL521: requests wait although fewer run than the start-up promised."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._metrics import engine_pairs
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.metrics_page import MetricsPage
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.runtime import FULL_PERCENT


@check("requests wait although fewer run than the start-up promised", Severity.WARNING)
def waiting_below_ceiling(page: MetricsPage, ceiling: ConcurrencyCeiling, context: Context) -> Iterator[Finding]:
    """Read running, waiting and KV usage of `--metrics` against the ceiling, and say which limit holds."""
    compared = False
    for engine, metrics in engine_pairs(context, page):
        running, waiting, usage = metrics.running, metrics.waiting, metrics.kv_cache_usage
        if running is None or waiting is None:
            continue
        compared = True
        promised = ceiling.lo / ceiling.engines
        if not waiting or running >= int(promised):
            continue
        if usage is not None and usage * 100 >= FULL_PERCENT and running >= int(promised * Fraction(usage)):
            continue  # as many as the used part holds: the KV cache is full, as planned
        tokens = engine.ledger["tokens"].interval
        average = int(usage * tokens.lo / running) if usage is not None and tokens is not None and running else None
        limit, remedy = _limit(running, usage, average, ceiling)
        preempted = f", {metrics.preemptions:,} preemptions so far" if metrics.preemptions else ""
        yield Finding(
            f"{running} requests run and {waiting} wait, where {float(promised):.2f} of {ceiling.context:,} tokens should fit",
            line=ceiling.line,
            expected=f"up to {float(promised):.2f} requests at once on engine {metrics.engine}",
            observed=f"{running} running, {waiting} waiting"
            + (f", {usage * 100:.1f} % of the KV cache in use" if usage is not None else "")
            + preempted,
            remedy=remedy,
            explanation=limit,
        )
        return
    if not compared:
        raise Missing("the metrics page does not count running and waiting requests")


def _limit(running: int, usage: float | None, average: int | None, ceiling: ConcurrencyCeiling) -> tuple[str, str]:
    """Return which limit holds, and what to do."""
    if usage is None or average is None:
        return (
            "",
            f"save the page again with the KV cache usage (vllm:kv_cache_usage_perc) of the {running} running requests",
        )
    room = 1 - usage
    if running and average > ceiling.context:
        return (
            f"the KV cache: running requests hold {average:,} tokens on average, more than the {ceiling.context:,} planned",
            f"plan with --context {average}: about {running / usage:.0f} such requests fit at once",
        )
    if running and usage > 0 and room * running / usage < 1:
        return (
            f"the KV cache is full: {average:,} tokens per running request and no room for one more",
            f"plan with --context {average}: {running} such requests are what fits",
        )
    return (
        f"neither the KV cache ({usage * 100:.1f} % in use) nor, as far as the log says, max_num_seqs: prefill has the turn",
        "look at --max-num-batched-tokens (long prompts are computed in turns) and at how the clients send:"
        f" {running} running requests hold {average:,} tokens each",
    )
