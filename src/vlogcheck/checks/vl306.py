"""VL306: the KV cache holds fewer tokens than expected."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._kv import Capacities, capacity_line, diagnosed, missing_memory, utilization_for
from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.observed import EngineLedger
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the KV cache holds fewer tokens than expected", Severity.ERROR)
def tokens_below_expected(capacities: Capacities, expected: Expectation, context: Context) -> Iterator[Finding]:
    """Flag an engine that holds fewer tokens than `--expect-tokens`."""
    if expected.tokens is None:
        raise Missing("no tokens were expected: give --expect-tokens")
    for engine in capacities:
        tokens = engine.ledger["tokens"]
        if tokens.interval is None or tokens.interval.hi >= expected.tokens:
            continue
        yield _finding(context, engine, tokens.interval.hi, expected.tokens, len(capacities))


def _finding(context: Context, engine: EngineLedger, held: int, wanted: int, engines: int) -> Finding:
    line = capacity_line(engine)
    remedies = [f"plan with {held:,} tokens"]
    fix: dict[str, int | float | str] = {}
    factor = Fraction(wanted, max(held, 1))
    if more := missing_memory(None, engine, factor):
        remedies.append(f"or give it {more}")
        memory = engine.available.tightest if engine.available is not None else None
        if memory is not None:
            fix["kv_cache_memory_bytes"] = int(memory.hi * factor) + 1
            share = utilization_for(engine, memory.hi * (factor - 1))
            if share is not None and share <= 0.95:
                remedies.append(f"--gpu-memory-utilization {share:.2f} would do")
                fix["gpu_memory_utilization"] = share
            elif share is not None:
                remedies.append(
                    "no utilization up to 0.95 gives that"
                    + (f" ({share:.2f} would be needed)" if share <= 1 else "")
                    + ": more cards or fp8 KV cache"
                )
    return Finding(
        f"the KV cache holds {held:,} tokens, {wanted - held:,} fewer than expected",
        line=line,
        expected=f"at least {wanted:,} tokens per engine",
        observed=f"{held:,} tokens",
        remedy="; ".join(remedies),
        explanation=_why(context, engine, held, wanted, engines),
        fix=fix,
    )


def _why(context: Context, engine: EngineLedger, held: int, wanted: int, engines: int) -> str:
    said = []
    if engines > 1 and held * engines >= wanted:
        said.append(f"the {engines} engines hold {held * engines:,} tokens together, but each request has one engine's")
    if context.model is not None:
        try:
            plan = context.model.expected(context, engine)
            length = plan.plan.max_model_len
            text = diagnosed(plan, (wanted, wanted), "tokens", length=length, wanted=context.expectation)
            if text and not text.startswith("unexplained"):
                said.append(f"the expected figure is {text}")
        except Missing:
            pass
    if context.startup.version is not None and parse_release(context.startup.version).since("0.20.2"):
        printed = engine.ledger["max_model_len"].interval
        at = f" of {printed.lo:,}" if printed else ""
        said.append(
            f"this release prints concurrency × max_model_len{at}, which is a capacity only where all layers are alike"
        )
    return "; ".join(said)
