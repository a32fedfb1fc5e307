"""VL311: vLLM serves a shorter context than it was asked for or than the model has."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import utilization_for
from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.records import AutoFit, DraftLengthClamp
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the context was reduced to fit the KV cache", Severity.WARNING)
def context_reduced(fitted: AutoFit | None, clamped: DraftLengthClamp | None, context: Context) -> Iterator[Finding]:
    """Flag a context that vLLM reduced, with the memory the original one takes."""
    if fitted is None and clamped is None:
        raise Missing("no line says that the context was fitted")
    if fitted is not None and fitted.max_model_len is not None and fitted.max_model_len < fitted.original_max_model_len:
        yield _fitted(fitted, context)
    if clamped is not None:
        yield Finding(
            f"the drafter limits requests to {clamped.draft_max_model_len:,} tokens",
            line=clamped.line,
            expected=f"{clamped.target_max_model_len:,} tokens, as the served model allows",
            observed=f"{clamped.draft_max_model_len:,} tokens",
            remedy=f"plan with {clamped.draft_max_model_len:,} tokens per request, or serve without --speculative-config to get"
            f" {clamped.target_max_model_len:,}",
            fix={"max_model_len": clamped.draft_max_model_len},
        )


def _fitted(fitted: AutoFit, context: Context) -> Finding:
    assert fitted.max_model_len is not None
    remedy = f"plan with {fitted.max_model_len:,} tokens per request"
    needed = _needed(context, fitted)
    engine = context.observation.engines[0] if context.observation.engines else None
    if needed is not None:
        more = needed[1] - needed[0]
        remedy += f"; {fitted.original_max_model_len:,} tokens take {format_gib(more)} more KV cache memory per rank"
        remedy += f" ({format_gib(needed[1])} in all)"
        share = utilization_for(engine, more) if engine is not None else None
        if share is not None:
            remedy += f": --gpu-memory-utilization {share:.2f}" if share <= 0.95 else ", more than this card can give"
    else:
        remedy += f"; what {fitted.original_max_model_len:,} tokens would take needs --model-config"
    return Finding(
        f"the context was reduced from {fitted.original_max_model_len:,} to {fitted.max_model_len:,} tokens",
        line=fitted.line,
        expected=f"{fitted.original_max_model_len:,} tokens per request, the model's own length",
        observed=f"{fitted.max_model_len:,} tokens, the most that one request finds room for",
        remedy=remedy,
        explanation="--max-model-len auto (-1) takes what fits one request, so about one such request runs at a time",
        fix={"max_model_len": fitted.max_model_len},
        severity=Severity.ERROR if _too_short(context.expectation, fitted.max_model_len) else None,
    )


def _too_short(expected: Expectation, length: int) -> bool:
    return expected.context is not None and expected.context > length


def _needed(context: Context, fitted: AutoFit) -> tuple[int, int] | None:
    """Return the memory there is and the memory the original length takes, in bytes per rank."""
    for engine in context.observation.engines:
        if engine.available is None:
            continue
        memory = engine.available.tightest
        if context.model is not None:
            try:
                plan = context.model.expected(context, engine)
            except Missing:
                return None
            pool = plan.plan.pool
            if pool is None:
                return None
            spare = pool.bytes_per_block(0) if plan.plan.settings and plan.plan.settings.release.since("0.29.0") else 0
            return memory.lo, max(pool.needed(fitted.original_max_model_len, r) for r in range(len(pool.ranks))) + spare
        return None
    return None
