"""The ledger before any server exists: what a model, its flags and a card make of memory.

`Budget` holds one model's terms; `answer` computes it. Bytes are whole; what a configuration file cannot say (activation peak,
non-torch memory, graphs) is a stated assumption, never a hidden number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig, ModelConfigError
from vlogcheck.budget.plan import KVPlan, plan
from vlogcheck.budget.pool import largest_length
from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.budget.weights import WeightEstimate, estimate_weights
from vlogcheck.ledger import Ledger
from vlogcheck.units import GIB, Interval

__all__ = ["Budget", "answer"]

_ERRORS = {
    "kv_cache_too_small": "KVCacheTooSmall",
    "no_kv_cache_memory": "NoKVCacheMemory",
    "not_supported": "NotSupported",
}
"""Names of refusals, those of the records that a log would have."""
_CARD_CLASSES = ("a100", "b200")
_DEGREES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Budget:
    """One model's ledger and the answers that follow from it."""

    name: str
    plan: KVPlan
    weights: tuple[WeightEstimate, ...]
    ledger: Ledger
    """Terms of the tightest rank, then of the KV cache."""
    concurrency: float | None
    """Requests asked for."""
    context: int | None
    """Tokens per request asked for; the longest context where none was."""
    concurrency_at_context: Fraction | None
    """Requests of that length that fit."""
    largest_context: int | None
    """Longest request of which `concurrency` fit."""
    smallest_utilization: Fraction | None
    """Utilization, rounded up to two decimals, at which what was asked for fits; None where none up to 1 does."""
    smallest_tensor_parallel: int | None
    """Fewest ranks per layer (1, 2, 4, 8, 16 or the given number) at which it fits, keeping the utilization."""
    needed_bytes: int | None
    """KV cache memory per rank that what was asked for takes."""

    @property
    def too_long(self) -> bool:
        """Whether requests of `context` tokens are refused, whatever the memory: they exceed max_model_len."""
        longest = self.plan.max_model_len
        return self.context is not None and longest is not None and self.context > longest

    @property
    def fits(self) -> bool | None:
        """Whether what was asked for fits; None where it cannot be said."""
        if self.plan.unknown is not None:
            return None
        if self.plan.error is not None:
            return False
        if self.too_long:
            return False
        if self.plan.num_blocks is None:
            return None
        if self.concurrency is None or not self.plan.specs:  # without a KV cache there is nothing to run out of
            return True
        return self.concurrency_at_context is not None and self.concurrency_at_context >= self.concurrency

    def to_dict(self) -> dict[str, Any]:
        """Return the budget for JSON."""
        found = self.plan
        error = found.error
        return {
            "model": self.name,
            "fits": self.fits,
            "num_blocks": found.num_blocks,
            "num_blocks_high": found.blocks_interval.hi if found.blocks_interval else None,
            "kv_cache_tokens": found.kv_cache_tokens,
            "kv_cache_tokens_high": found.tokens_interval.hi if found.tokens_interval else None,
            "max_concurrency": None if found.max_concurrency_text is None else float(found.max_concurrency_text),
            "max_model_len": found.max_model_len,
            "cpu_blocks": found.cpu_blocks,
            "layer_specs": [
                {
                    "kind": item.spec.kind,
                    "count": item.count,
                    "block_size": item.spec.block_size,
                    "page_size_bytes": item.spec.page_size_bytes,
                    "num_kv_heads": item.spec.num_kv_heads,
                    "head_size": item.spec.head_size,
                    "dtype": item.spec.dtype,
                    "sliding_window": item.spec.window,
                }
                for item in found.specs
            ],
            "groups": [
                {
                    "kind": group.kind,
                    "n_layers": len(group.layers),
                    "block_size": group.block_size,
                    "page_size_bytes": group.page_size_bytes,
                }
                for group in found.groups
            ],
            "blocks_per_request": found.blocks_per_request(),
            "bytes_per_block": found.bytes_per_block(),
            "weights_gib_per_rank": [None if w.unknown else round(w.allocated_bytes / GIB, 4) for w in self.weights],
            "weights_bytes_per_rank": [None if w.unknown else w.param_bytes for w in self.weights],
            "weights_tolerance": [None if w.unknown else w.tolerance for w in self.weights],
            "error": None
            if error is None
            else {
                "kind": _ERRORS.get(error.kind, error.kind),
                "needed_gib": None if error.needed_gib is None else float(error.needed_gib),
                "available_gib": None if error.available_gib is None else float(error.available_gib),
                "estimated_max_model_len": error.estimated_max_model_len,
                "message": error.message,
            },
            "concurrency": self.concurrency,
            "context": self.context,
            "concurrency_at_context": None
            if self.concurrency_at_context is None
            else round(float(self.concurrency_at_context), 4),
            "largest_context": self.largest_context,
            "smallest_utilization": None if self.smallest_utilization is None else float(self.smallest_utilization),
            "smallest_tensor_parallel_size": self.smallest_tensor_parallel,
            "needed_kv_cache_bytes": self.needed_bytes,
            "unknown": None if found.unknown is None else found.unknown.reason,
            "ledger": self.ledger.to_dict(),
            "assumptions": _unique([*found.assumptions, *(a for w in self.weights for a in w.assumptions)]),
        }


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


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
        available = _available(ledger, weights, total_memory, other, options, release)
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
    _terms(ledger, made, available)
    context = context or made.max_model_len
    blocks = made.num_blocks
    per_request = made.blocks_per_request(context) if context else None
    at_context = Fraction(blocks, per_request) if blocks is not None and per_request else None
    needed = _needed(made, concurrency or 1, context)
    utilization, degree = _smallest(
        model, options, weights, _required(made, options, needed), total_memory, other, release,
        lambda changed: answer(
            model, changed, release=release, env=env, device=device, concurrency=concurrency or 1, context=context,
        ),
    ) if total_memory is not None else (None, None)  # fmt: skip
    return Budget(
        name=name or (model.architecture or ""), plan=made, weights=weights, ledger=ledger, concurrency=concurrency,
        context=context, concurrency_at_context=at_context,
        largest_context=_largest_context(
            made, concurrency, available, lambda length: plan(
                model, replace(options, max_model_len=length), release=release, available=available, env=env, device=device,
                total_memory=memory,
            ),
        ) if concurrency else None, smallest_utilization=utilization,
        smallest_tensor_parallel=degree, needed_bytes=needed,
    )  # fmt: skip


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


def _available(
    ledger: Ledger, weights: tuple[WeightEstimate, ...], total: Interval, other: Interval | None, options: ServeOptions,
    release: str | None,
) -> Interval | None:  # fmt: skip
    """Add the device's terms to the ledger; return what they leave for the KV cache on the tightest rank."""
    found = parse_release(release)
    share = options.gpu_memory_utilization
    given = share is not None
    share = share if share is not None else default_utilization(found)
    ledger.between("total", "device memory", "bytes", total, "given", origin="--total-memory")
    ratio = Fraction(str(share))
    ledger.exact(
        "utilization", "utilization", "ratio", ratio, "given" if given else "assumed",
        origin="--gpu-memory-utilization" if given else f"default of {found.version}",
    )  # fmt: skip
    requested = Interval(math.floor(total.lo * ratio), math.floor(total.hi * ratio))
    ledger.between("requested", "requested", "bytes", requested, "derived", formula="total × utilization")
    if not weights or any(w.unknown for w in weights):
        why = next((w.tolerance_reason for w in weights if w.unknown), "unknown")
        ledger.missing("weights", "weights", "bytes", why)
        return None
    heaviest = max(weights, key=lambda w: w.allocated_bytes)
    size = Interval(heaviest.low_bytes, heaviest.high_bytes)
    ledger.between(
        "weights", "weights", "bytes", size, "derived",
        formula=f"from the configuration, ±{heaviest.tolerance:.2%}: {heaviest.tolerance_reason}",
    )  # fmt: skip
    if other is None:
        ledger.exact(
            "other", "activation, non-torch, graphs", "bytes", 0, "assumed", origin="not given: --other-memory"
        )
        ledger.assumptions.append(
            "activation peak, non-torch memory and graphs are not in a configuration file and were taken as 0:"
            " the pool is an upper bound (give --other-memory)"
        )
        other = Interval(0, 0)
    else:
        ledger.between("other", "activation, non-torch, graphs", "bytes", other, "given", origin="--other-memory")
    return requested.minus(size).minus(other)


def _terms(ledger: Ledger, made: KVPlan, available: Interval | None) -> None:
    if available is not None:
        status = "derived" if "requested" in ledger else "given"
        ledger.between(
            "kv_cache", "KV cache", "bytes", available, "derived" if status == "derived" else "given",
            formula="requested − the terms above" if status == "derived" else "",
        )  # fmt: skip
    per_block = made.bytes_per_block()
    if per_block is not None:
        ledger.exact(
            "bytes_per_block", "bytes per block and rank", "bytes per block", per_block, "derived",
            formula="largest group's layers × page bytes" if len(made.groups) > 1 else "layers × page bytes",
        )  # fmt: skip
        if len(made.specs) == 1:
            size = made.specs[0].spec.block_size
            ledger.exact("block_size", "block size", "tokens per block", size, "derived")
            ledger.exact(
                "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token", Fraction(per_block, size),
                "derived", formula="bytes per block ÷ block size",
            )  # fmt: skip
    if made.blocks_interval is not None:
        ledger.between(
            "blocks", "KV cache blocks", "blocks", made.blocks_interval, "derived", formula="KV cache ÷ bytes per block"
        )
    if made.tokens_interval is not None:
        ledger.between(
            "tokens", "KV cache size", "tokens", made.tokens_interval, "derived", formula="as vLLM prints it"
        )
    if made.max_concurrency is not None:
        ledger.exact(
            "concurrency", f"concurrency at {made.max_model_len:,} tokens", "requests",
            Fraction(str(made.max_concurrency_text)), "derived", formula="blocks ÷ blocks per request",
        )  # fmt: skip


def _needed(made: KVPlan, concurrency: float, context: int | None) -> int | None:
    """Return the KV cache bytes per rank that the requests take, the null block included where admission counts it."""
    per_request = made.blocks_per_request(context) if context else None
    if made.pool is None or not per_request:
        return None
    blocks = math.ceil(Fraction(str(concurrency)) * per_request)
    if made.settings is not None and made.settings.release.since("0.29.0"):
        blocks += 1
    return max(blocks * made.pool.bytes_per_block(rank) for rank in range(len(made.pool.ranks)))


def _largest_context(
    made: KVPlan, concurrency: float, available: Interval | None, retry: Callable[[int], KVPlan]
) -> int | None:
    """Return the longest request of which so many fit. Where vLLM refuses the longest context, a shorter one is tried."""
    pool = made.pool
    if pool is None or not made.max_model_len:
        return None
    wanted = Fraction(str(concurrency))
    blocks = made.num_blocks
    if blocks is not None:
        return largest_length(made.max_model_len, lambda n: wanted * pool.blocks_per_request(n) <= blocks) or None
    if available is None or available.lo <= 0:
        return None
    least = max(wanted, Fraction(1))  # vLLM starts only where one request fits

    def holds(length: int) -> bool:
        changed = retry(length)
        each = changed.blocks_per_request(length)
        return changed.num_blocks is not None and each is not None and least * each <= changed.num_blocks

    return largest_length(made.max_model_len, holds) or None


def _smallest(
    model: ModelConfig, options: ServeOptions, weights: tuple[WeightEstimate, ...], needed: int | None, total: Interval,
    other: Interval | None, release: str | None, retry: Callable[[ServeOptions], Budget],
) -> tuple[Fraction | None, int | None]:  # fmt: skip
    """Return the smallest utilization and tensor-parallel size with which the needed KV cache fits on each card."""
    if needed is None or not weights or any(w.unknown for w in weights):
        return None, None
    demand = max(w.high_bytes for w in weights) + needed + (other.hi if other else 0)
    hundredths = math.ceil(Fraction(demand * 100, total.lo)) if total.lo else 101
    utilization = Fraction(hundredths, 100) if hundredths <= 100 else None
    share = options.gpu_memory_utilization or default_utilization(parse_release(release))
    room = math.floor(total.lo * Fraction(str(share)))
    heads = model.num_attention_heads or 0
    for size in sorted({*_DEGREES, options.tensor_parallel_size}):
        if heads and heads % size:
            continue
        if size == options.tensor_parallel_size:
            fits = demand <= room
        else:
            fits = _demand(retry, replace(options, tensor_parallel_size=size), other, room)
        if fits:
            return utilization, size
    return utilization, None


def _required(made: KVPlan, options: ServeOptions, needed: int | None) -> int | None:
    """Return what the KV cache must hold: the requests asked for, and one of the longest context, or vLLM refuses to start."""
    one = _needed(made, 1, made.max_model_len) if options.max_model_len != -1 else None
    return needed if needed is None or one is None else max(needed, one)


def _demand(retry: Callable[[ServeOptions], Budget], options: ServeOptions, other: Interval | None, room: int) -> bool:
    """Whether the changed options fit in `room` bytes."""
    unsized = replace(options, kv_cache_memory_bytes=1 << 60)  # only the request's blocks and the weights matter here
    try:
        budget = retry(unsized)
    except ModelConfigError:
        return False
    required = _required(budget.plan, options, budget.needed_bytes)
    if required is None or any(w.unknown for w in budget.weights):
        return False
    demand = max(w.high_bytes for w in budget.weights) + required + (other.hi if other else 0)
    return demand <= room
