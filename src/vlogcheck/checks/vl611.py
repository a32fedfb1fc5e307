"""VL611: limits of the batch that nobody set."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, asked_line, whole
from vlogcheck.context import Context
from vlogcheck.records import BatchedTokensMismatch, BudgetDefault
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_SMALLEST_DEFAULT = 256
"""`--max-num-seqs` on cards below 70 GiB, and in every release until 0.8.2; 1024 on larger ones (engine/arg_utils.py)."""


@check("a limit of the batch that nobody set may hold before the KV cache does", Severity.NOTE)
def batch_limits_defaulted(startup: Startup, context: Context) -> Iterator[Finding]:
    """Flag a default of `max_num_seqs` below the printed concurrency, and batch limits that do not fit each other."""
    mismatch = next((r for r in startup.all(BatchedTokensMismatch) if r.level == "WARNING"), None)
    if mismatch is not None:
        tokens = mismatch.max_num_batched_tokens
        other = mismatch.reachable_tokens or mismatch.max_model_len or mismatch.max_num_seqs or tokens
        yield Finding(
            f"max_num_batched_tokens is {tokens:,}, the other limits reach {other:,}",
            line=mismatch.line,
            expected=f"{other:,} tokens",
            observed=f"{tokens:,} tokens",
            remedy=f"--max-num-batched-tokens {other}: the activations of a batch that cannot come are kept free"
            " for nothing"
            if tokens > other
            else f"requests are limited to {tokens:,} tokens: --max-num-batched-tokens {other} lifts that",
            fix={"max_num_batched_tokens": other},
            severity=Severity.WARNING if tokens < other else None,
        )
    if not startup.args or whole(asked(startup, "max_num_seqs")) is not None:
        return
    printed = max((e.capacity.concurrency or 0 for e in context.observation.engines), default=0)
    if printed <= _SMALLEST_DEFAULT or any(r.max_num_seqs for r in startup.all(BudgetDefault)):
        return  # a default that is printed is as good as stated: VL402
    yield Finding(
        f"the KV cache holds {float(printed):,.2f} requests, and nobody set how many may run",
        line=asked_line(startup),
        expected="--max-num-seqs stated",
        observed="the default: 256, or 1,024 on cards of 70 GiB and more",
        remedy=f"--max-num-seqs {int(printed)} uses the whole KV cache with requests of the longest length",
        fix={"max_num_seqs": int(printed)},
    )
