"""The ledger before any server exists: what a model, its flags and a card make of memory.

`Budget` holds one model's terms; `answer` computes it. Bytes are whole; what a configuration file cannot say (activation peak,
non-torch memory, graphs) is a stated assumption, never a hidden number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from vlogcheck.advice import unified_memory, utilization_advice
from vlogcheck.budget._budget import Budget
from vlogcheck.budget._budget_terms import add_cache, add_device
from vlogcheck.budget._fitting import bytes_needed, bytes_required, largest_context_of, smallest_of
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig, ModelConfigError
from vlogcheck.budget.plan import KVPlan, plan
from vlogcheck.budget.releases import parse_release
from vlogcheck.budget.weights import WeightEstimate, estimate_weights
from vlogcheck.ledger import Ledger
from vlogcheck.units import Interval

__all__ = ["Budget", "answer"]

_CARD_CLASSES = ("a100", "b200")


def answer(
    model: ModelConfig, options: ServeOptions | None = None, *, name: str = "", release: str | None = None,
    env: Mapping[str, str] | None = None, device: str | None = None,
    available: Interval | Sequence[Interval] | None = None, total_memory: Interval | None = None,
    other: Interval | None = None, concurrency: float | None = None, context: int | None = None,
) -> Budget:  # fmt: skip
    """Compute a model's budget.

    `available` is the KV cache memory per rank in bytes, one figure or one per pipeline stage; without it, it is what
    `total_memory` × utilization leaves after the weights and `other` (activation peak, non-torch memory and graphs; 0
    and said so where not given). `concurrency` requests of `context` tokens are what must fit. Raises
    `ModelConfigError` (or `FlagError`) for values that cannot be followed.
    """
    options = options or ServeOptions()
    ledger = Ledger(name or (model.architecture or "model"))
    weights = _weights(model, options, release, env)
    if available is None and options.kv_cache_memory_bytes is not None:
        available = Interval.exactly(options.kv_cache_memory_bytes)
    elif available is None and total_memory is not None:
        available = add_device(ledger, weights, total_memory, other, options, release)
    memory = None if total_memory is None else total_memory.hi
    made = plan(model, options, release=release, available=available, env=env, device=device, total_memory=memory)
    if device is None and memory is None and made.num_blocks is not None:
        others = _other_cards(
            made,
            lambda card: plan(model, options, release=release, available=available, env=env, device=card),
        )
        made = replace(made, assumptions=(*made.assumptions, *others))
    if available is not None and not isinstance(available, Interval):
        available = Interval(min(each.lo for each in available), min(each.hi for each in available))
    add_cache(ledger, made, available)
    context = context or made.max_model_len
    blocks = made.num_blocks
    per_request = made.blocks_per_request(context) if context else None
    at_context = Fraction(blocks, per_request) if blocks is not None and per_request else None
    needed = bytes_needed(made, concurrency or 1, context)
    utilization, degree = smallest_of(
        model, options, weights, bytes_required(made, options, needed), total_memory, other, release,
        lambda changed: answer(
            model, changed, release=release, env=env, device=device, concurrency=concurrency or 1, context=context,
        ),
    ) if total_memory is not None else (None, None)  # fmt: skip
    return Budget(
        name=name or (model.architecture or ""), plan=made, weights=weights, ledger=ledger, concurrency=concurrency,
        context=context, concurrency_at_context=at_context,
        largest_context=largest_context_of(
            made, concurrency, available, lambda length: plan(
                model, replace(options, max_model_len=length), release=release, available=available, env=env, device=device,
                total_memory=memory,
            ),
        ) if concurrency else None, smallest_utilization=utilization,
        smallest_tensor_parallel=degree, needed_bytes=needed, advice=_advice(ledger, release, options),
    )  # fmt: skip


def _advice(ledger: Ledger, release: str | None, options: ServeOptions) -> tuple[str, ...]:
    total = ledger["total"].interval if "total" in ledger else None
    share = ledger["utilization"].lo if "utilization" in ledger else None
    if total is None or share is None or unified_memory(total) is not None:
        return ()
    ranks = options.tensor_parallel_size * options.pipeline_parallel_size
    return tuple(utilization_advice(total.mid, parse_release(release), Fraction(share), ranks=ranks))


def _other_cards(made: KVPlan, on: Callable[[str], KVPlan]) -> list[str]:
    """Return what other classes of cards would make of the same bytes, where it differs.

    The card decides the default of ``--max-num-batched-tokens`` (which sizes windows) and the attention backend (which
    sizes blocks).
    """
    found: list[str] = []
    for card in _CARD_CLASSES:
        other = on(card)
        shown = (other.num_blocks, other.kv_cache_tokens, other.max_concurrency_text)
        if shown == (made.num_blocks, made.kv_cache_tokens, made.max_concurrency_text):
            continue
        if other.num_blocks is None or other.kv_cache_tokens is None:
            found.append(f"on {card.upper()}-class cards the same bytes would not do (give --device)")
            continue
        found.append(
            f"on {card.upper()}-class cards the same bytes make {other.num_blocks:,} blocks,"
            f" {other.kv_cache_tokens:,} tokens, concurrency {other.max_concurrency_text}x (give --device)"
        )
    return found


def _weights(
    model: ModelConfig, options: ServeOptions, release: str | None, env: Mapping[str, str] | None
) -> tuple[WeightEstimate, ...]:
    try:
        return tuple(estimate_weights(model, options, release=release, env=env))
    except ModelConfigError as error:
        return (WeightEstimate(0, unknown=True, tolerance_reason=str(error)),)
