"""VL413: at run time every request took so much of the KV cache that max_num_seqs of them cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._load import engine_of, plan_of
from vlogcheck.context import Context
from vlogcheck.records import HybridBlockSize
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.runtime import RunTime
from vlogcheck.units import Interval


@check("every request seen took too much of the KV cache for max_num_seqs of them", Severity.WARNING)
def max_num_seqs_never_seen(runtime: RunTime, block: HybridBlockSize, context: Context) -> Iterator[Finding]:
    """Flag `max_num_seqs` above what the lightest load seen leaves room for, in models whose requests hold a fixed part.

    The lines print usage rounded to a tenth of a percent. Where the model's layers can be planned VL403 computes the same.
    """
    engine, sample = engine_of(context), runtime.lightest
    cap = engine.ledger["max_num_seqs"].interval if engine is not None else None
    if sample is None or cap is None:
        raise Missing("the log shows no request running, or does not state max_num_seqs")
    if plan_of(context, engine) is not None:
        return
    least = (Fraction(str(sample.usage)) - Fraction(1, 20)) / sample.running
    most = int(100 / least)
    if most >= cap.lo:
        return
    share = f"{sample.usage / sample.running:.1f} %"
    tokens = engine.ledger["tokens"].interval if engine is not None else None
    yield Finding(
        f"max_num_seqs={cap.lo} was never in reach: the lightest requests seen take {share} of the KV cache each, so"
        f" {most} run at once",
        line=sample.line,
        expected=f"max_num_seqs={cap.lo} requests at once",
        observed=f"{sample.running} running, {sample.usage:g} % of the KV cache used"
        + _fixed(tokens, sample.usage, sample.running),
        remedy=f"--max-num-seqs {most}: one more than fit makes running requests lose their KV cache and start over",
        explanation=f"a request holds whole blocks of {block.block_size_tokens:,} tokens in each group of layers and its states,"
        " however short it is",
        fix={"max_num_seqs": most},
    )


def _fixed(tokens: Interval | None, usage: float, running: int) -> str:
    if tokens is None:
        return ""
    each = int(tokens.lo * Fraction(str(usage)) / 100 / running)
    return f": as much as {each:,} of the printed {tokens.lo:,} tokens each"
