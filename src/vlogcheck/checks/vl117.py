"""VL117: more memory goes to what the log does not name than to the KV cache."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Worker, Workers, gib, worth
from vlogcheck.context import Context
from vlogcheck.registry import Finding, Missing, Severity, check


@check("more memory goes to terms the log does not print than to the KV cache", Severity.NOTE)
def rest_exceeds_pool(workers: Workers, context: Context) -> Iterator[Finding]:
    """Flag a remainder (requested − weights − KV cache) that is larger than the KV cache."""
    known = [worker for worker in workers if "rest" in worker.ledger]
    if not known:
        raise Missing("the remainder is not known: it needs the card's memory (--total-memory) and unprinted terms")
    worker = max(known, key=_excess)
    rest, pool = worker.ledger["rest"], worker.ledger["kv_cache"].interval
    bounds = rest.interval
    if bounds is None or pool is None or bounds.lo <= pool.hi:
        return
    batched = context.startup.args.get("max_num_batched_tokens")
    budget = f" (now {batched:,})" if isinstance(batched, int) and not isinstance(batched, bool) else ""
    fix: dict[str, int | float | str] = {}
    advice = f"half of --max-num-batched-tokens gives up to {gib(bounds.mid // 2)} of it to the KV cache"
    if isinstance(batched, int) and not isinstance(batched, bool) and batched > 1:
        fix = {"max_num_batched_tokens": batched // 2}
        advice = (
            f"--max-num-batched-tokens {batched // 2} gives up to {gib(bounds.mid // 2)} of it to the KV cache{budget}"
        )
    charged = worker.rank.rule.others_charged
    yield Finding(
        f"{gib(bounds.mid)} go to {rest.origin}, more than to the KV cache"
        + workers.where(worker, lambda other: _excess(other) > 0),
        line=worker.ledger["kv_cache"].line,
        expected=f"less than the KV cache's {gib(pool.mid)} beside the weights",
        observed=f"{gib(bounds.mid)} = {rest.formula}",
        remedy=f"{advice}; for a multimodal model lower --limit-mm-per-prompt: the profile run uses both at their largest."
        f" Each GiB less is a GiB of KV cache{worth(worker, 2**30)}; VLLM_LOGGING_LEVEL=DEBUG prints the terms apart",
        fix=fix,
        explanation="this release also charges what other processes hold on the card"
        if charged
        else "memory that another process took on the card meanwhile is in it too: start servers on one card one after the"
        " other",
    )


def _excess(worker: Worker) -> int:
    rest, pool = worker.ledger["rest"].interval, worker.ledger["kv_cache"].interval
    return 0 if rest is None or pool is None else rest.lo - pool.hi
