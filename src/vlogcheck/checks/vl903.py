"""VL903: vLLM refused to start because the KV cache cannot hold one request of the longest length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._failing import card_of, exact, ranks_text
from vlogcheck.context import Context
from vlogcheck.failures import Failure, Outcome
from vlogcheck.records import CPUKVCache, KVCacheTokensTooFew, KVCacheTooSmall
from vlogcheck.registry import Finding, Severity, check

_BLOCK = 16


@check("refused to start: the KV cache cannot hold one request", Severity.ERROR)
def kv_cache_smaller_than_request(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag the refusal, with the longest length that fits and the memory that is missing."""
    failure = outcome.failure
    if failure is None:
        return
    if isinstance(failure.record, KVCacheTooSmall):
        yield _gib(failure, failure.record, context)
    elif isinstance(failure.record, KVCacheTokensTooFew):
        record = failure.record
        times = math.ceil(100 * record.max_model_len / record.tokens) / 100 if record.tokens else 0
        yield Finding(
            f"refused to start: the KV cache holds {record.tokens:,} tokens, one request may have"
            f" {record.max_model_len:,}",
            line=record.line,
            expected=f"at least {record.max_model_len:,} tokens",
            observed=f"{record.tokens:,} tokens",
            remedy=f"--max-model-len {record.tokens}, or a KV cache {times:.2f} times as large"
            if record.tokens
            else "no length fits: give the KV cache memory (more cards, a smaller model)",
            fix={"max_model_len": record.tokens},
        )


def _gib(failure: Failure, record: KVCacheTooSmall, context: Context) -> Finding:
    missing = exact(record.needed_gib) - exact(record.available_gib)
    length, computed = record.estimated_max_model_len, False
    if not length and record.available_gib > 0:
        # Without vLLM's own estimate: in proportion, which is exact where every layer costs the same per token.
        share = record.available_gib.bytes.lo / record.needed_gib.bytes.hi
        length, computed = int(record.max_model_len * share) // _BLOCK * _BLOCK, True
    remedies, fix = [], {}
    if length:
        how = " (in proportion; exact where all layers cost the same per token)" if computed else ""
        remedies.append(f"--max-model-len {length}{how}")
        fix["max_model_len"] = length
    remedies.append(f"or {missing:.2f} GiB more for the KV cache of each rank{_share(context, missing)}")
    if (pinned := context.startup.last(CPUKVCache)) is not None and pinned.requested_gib is None:
        whole = math.ceil(record.needed_gib)
        remedies[-1] = (
            f"or VLLM_CPU_KVCACHE_SPACE={whole} (the size is fixed at {pinned.gib} GiB, no utilization changes it)"
        )
    stages, each = _stages(context), _stage_share(record, context)
    if stages and each is not None:
        upgrade = (
            f"upgrade to 0.16 or later, where a stage counts its own layers: about {each:.2f} GiB of"
            f" {record.available_gib} GiB"
        )
        remedies = [upgrade, *(f"until then {text}" if number == 0 else text for number, text in enumerate(remedies))]
    kv_type = context.startup.config.kv_cache_dtype if context.startup.config else None
    if kv_type in (None, "auto", "bfloat16", "float16") and record.needed_gib <= 2 * record.available_gib:
        remedies.append("or an 8-bit KV cache (--kv-cache-dtype fp8), which halves the need")
    return Finding(
        f"refused to start: one request of {record.max_model_len:,} tokens needs {record.needed_gib} GiB of KV"
        " cache, there are"
        f" {record.available_gib} GiB{ranks_text(failure)}",
        line=record.line,
        expected=f"at least {record.needed_gib} GiB for the KV cache",
        observed=f"{record.available_gib} GiB",
        remedy=", ".join(remedies),
        explanation=stages,
        fix=fix,
    )


def _stage_share(record: KVCacheTooSmall, context: Context) -> Decimal | None:
    """Return the part of the needed memory that one of even pipeline stages needs, where it fits."""
    config = context.startup.config
    stages = config.pipeline_parallel_size if config is not None else None
    if not stages:
        return None
    share = exact(record.needed_gib) / stages
    return share if share <= exact(record.available_gib) else None


def _share(context: Context, missing: Decimal) -> str:
    """Return the utilization that gives the missing memory, where the card's size is known and a margin is left."""
    card = card_of(context)
    if card.total_gib is None or card.utilization is None:
        return ""
    share = math.ceil(100 * (card.utilization + missing / card.total_gib)) / 100
    return f" (--gpu-memory-utilization {share:.2f})" if share <= 0.95 else " (the card has none to spare: more cards)"


def _stages(context: Context) -> str:
    """0.14 counted the layers of the whole model for each pipeline stage (vLLM issue 32105)."""
    config, version = context.startup.config, context.startup.version
    stages = config.pipeline_parallel_size if config is not None else None
    if not stages or stages < 2 or version is None:
        return ""
    release = parse_release(version)
    if release.since("0.14.0") and release.before("0.16.0"):
        return f"{version} may count all layers for each of the {stages} pipeline stages: too much per rank"
    return ""
