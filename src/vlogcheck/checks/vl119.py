"""VL119: an option takes device memory that the profile run of this release does not see."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import DeviceWorkers, args_line, floor_hundredths, gib, kept, release_of
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.failures import Outcome
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("an option takes memory that the profile of this release does not see", Severity.NOTE)
def unseen_by_profile(outcome: Outcome, workers: DeviceWorkers | None, context: Context) -> Iterator[Finding]:
    """Name LoRA buffers and drafters with V0, and sleep mode's allocator, where the KV cache was sized without them.

    A warning where the device ran out of memory afterwards.
    """
    startup = context.startup
    if startup.version is None or workers is None:
        raise Missing("the release is not known, or the log prints no rank's memory")
    found = [
        item
        for item in (_lora(context, workers), _drafter(context, workers), _sleep(context, workers))
        if item is not None
    ]
    if not found:
        return
    failed = outcome.failure is not None and outcome.failure.kind == "oom"
    for term, why, remedy in found:
        yield Finding(
            f"the KV cache was sized without {term}",
            line=args_line(startup),
            expected="every byte the server takes inside the budget",
            observed=f"vLLM {startup.version} {why}",
            remedy=remedy,
            explanation="a likely cause of the out-of-memory error" if failed else "",
            severity=Severity.WARNING if failed else None,
        )


def _is_v0(context: Context) -> bool:
    config, release = context.startup.config, release_of(context.startup)
    generation = config.engine_generation if config is not None else None
    return release.before("0.11.0") and (generation == "V0" or (generation != "V1" and release.before("0.8.0")))


def _lora(context: Context, workers: DeviceWorkers) -> tuple[str, str, str] | None:
    if stated(context.startup, "enable_lora") is not True or not _is_v0(context):
        return None
    slots, rank = (stated(context.startup, name) for name in ("max_loras", "max_lora_rank"))
    slots = slots if isinstance(slots, int) else 1
    rank = rank if isinstance(rank, int) else 16
    size = _lora_bytes(context, slots, rank)
    of = f" (about {format_gib(size)} per rank)" if size else ""
    remedy = f"--max-loras {max(slots // 2, 1)} or --max-lora-rank {max(rank // 2, 1)} halves them"
    ledger = workers[0].ledger
    total, requested, margin = ledger["total"].interval, ledger["requested"].interval, kept(ledger)
    if size and total is not None and margin is not None:
        if (
            requested is not None
            and ledger["requested"].status != "assumed"
            and total.lo - requested.hi >= size + margin
        ):
            return None  # as much is left outside the request, and the reserve besides
        fits = floor_hundredths(Fraction(total.lo - size - margin, total.hi))
        if fits > 0:
            remedy = f"--gpu-memory-utilization {fits:g} leaves room for them and {gib(margin)} in reserve; or {remedy}"
    elif size:
        remedy = f"lower --gpu-memory-utilization by {format_gib(size)} ÷ the card's memory; or {remedy}"
    return (
        f"the buffers of {slots} LoRA adapters of rank {rank}{of}",
        "(V0) makes them after the profile run",
        f"{remedy}; V1 counts them",
    )


def _lora_bytes(context: Context, slots: int, rank: int) -> int | None:
    """Return 16-bit A and B matrices of the seven projections of every layer, split over the ranks, where they are dense."""
    if context.model is None:
        return None
    from vlogcheck.budget.model import ModelConfigError

    model = context.model.config
    try:
        hidden, layers, heads = model.hidden_size, model.num_layers, model.num_attention_heads
        kv_heads, inner = model.num_kv_heads, model.values.integer("intermediate_size")
        head = model.values.integer("head_dim") or hidden // heads
    except (ModelConfigError, ZeroDivisionError):
        return None
    if not inner or model.values.has("num_experts") or model.values.has("num_local_experts"):
        return None
    query, key = heads * head, kv_heads * head
    each = 2 * (hidden + query) + 2 * (hidden + key) + 3 * (hidden + inner)
    config = context.startup.config
    return 2 * slots * rank * layers * each // ((config.tensor_parallel_size if config is not None else None) or 1)


def _drafter(context: Context, workers: DeviceWorkers) -> tuple[str, str, str] | None:
    drafter = stated(context.startup, "speculative_model")
    config = stated(context.startup, "speculative_config")
    if drafter is None and isinstance(config, dict):
        drafter = config.get("model")
    if not isinstance(drafter, str) or drafter in ("", "None", "[ngram]", "ngram") or not _is_v0(context):
        return None
    weights = workers[0].ledger["weights"].interval
    target = f" (the target's are {gib(weights.mid)})" if weights is not None else ""
    return (
        f"the weights of the drafter {drafter}",
        "(V0) profiles the target model alone, and the drafter's KV cache comes out of the same blocks",
        f"lower --gpu-memory-utilization by the drafter's weights{target} ÷ the card's memory; V1 loads it before it profiles",
    )


def _sleep(context: Context, workers: DeviceWorkers) -> tuple[str, str, str] | None:
    release = release_of(context.startup)
    if stated(context.startup, "enable_sleep_mode") is not True or _is_v0(context) or release.since("0.20.2"):
        return None
    if any(worker.ledger["non_torch"].known for worker in workers):
        return None  # the terms are printed: a negative one is VL118
    pool = workers[0].ledger["kv_cache"].interval
    of = f" of {gib(pool.mid)}" if pool is not None else ""
    return (
        "what sleep mode's own allocator hides",
        "measures with it more memory reserved by torch than there is: non-torch memory goes negative, unprinted at INFO,"
        " and the KV cache is printed larger than it is",
        "start with VLLM_LOGGING_LEVEL=DEBUG and see whether non-torch memory is below zero: by as much is the printed KV"
        f" cache{of} too large (3.17 GiB in one report); fix it with --kv-cache-memory-bytes",
    )
