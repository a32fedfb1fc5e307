"""VL902: vLLM refused to start because nothing was left for the KV cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._failing import Card, card_of, exact, ranks_text
from vlogcheck.context import Context
from vlogcheck.failures import Failure, Outcome
from vlogcheck.records import (
    AutoFitImpossible,
    DeviceBlocks,
    KVCacheMemory,
    MemoryProfile,
    NoKVCacheMemory,
    TPUMemoryTooSmall,
)
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.units import format_gib

_SAFE = 0.95
"""Above this a share is no remedy: the margin is gone when the first long request comes."""


_ENDS = (KVCacheMemory, MemoryProfile, DeviceBlocks)
_KINDS = (NoKVCacheMemory, AutoFitImpossible, TPUMemoryTooSmall, *_ENDS)
_NEGATIVE = "a figure below zero is no fault of the log: weights, profile run and the rest exceed utilization × total"


@check("refused to start: nothing is left for the KV cache", Severity.ERROR)
def no_memory_for_kv_cache(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag the refusal, with what the weights and the activations took and what is missing at least."""
    failure = outcome.failure
    if failure is None or not isinstance(failure.record, _KINDS):
        return
    if isinstance(failure.record, NoKVCacheMemory) and failure.record.budget_gb is not None:
        yield _on_metal(failure, failure.record)
        return
    missing = _missing(context)
    remedy, fix = _remedy(_card(context, failure), context, missing)
    others = _others(context, failure)
    if others:
        remedy, fix = f"{others}; or {remedy}", {}
    yield Finding(
        f"{'cannot start' if isinstance(failure.record, _ENDS) else 'refused to start'}: no memory is left for the KV"
        f" cache{ranks_text(failure)}",
        line=failure.line,
        expected="memory left for the KV cache after weights, activations and the rest",
        observed=f"{-missing:.2f} GiB left" if missing is not None else "none left",
        remedy=remedy,
        explanation="; ".join(filter(None, (_terms(context, failure), _NEGATIVE if missing else ""))),
        fix=fix,
    )


def _on_metal(failure: Failure, record: NoKVCacheMemory) -> Finding:
    """Say it of vllm-metal, which has a limit and a share of its own, in units of 1e9 bytes."""
    parts = [
        f"{name} {value:.2f} GB"
        for name, value in (
            ("usable", record.usable_gb),
            ("weights", record.model_gb),
            ("overhead", record.overhead_gb),
        )
        if value is not None
    ]
    remedy = "a smaller or more quantised model, or a smaller --max-num-seqs, whose state is set aside too"
    if record.limit_gb and record.usable_gb is not None and record.budget_gb is not None:
        share = math.floor(100 * (record.usable_gb - record.budget_gb) / record.limit_gb) / 100 + 0.01
        if share <= _SAFE:
            knob = "VLLM_METAL_MEMORY_FRACTION (--gpu-memory-utilization where that is auto)"
            remedy = f"{knob} above {share:.2f}; or {remedy}"
    return Finding(
        f"refused to start: no memory is left for the KV cache{ranks_text(failure)}",
        line=record.line,
        expected="memory left for the KV cache after weights and overhead",
        observed=f"{record.budget_gb:.2f} GB left",
        remedy=remedy,
        explanation=", ".join(parts),
    )


def _others(context: Context, failure: Failure) -> str:
    """Return what to do where the weights leave room and the rest, not they, fills the request; else nothing.

    V1 until 0.9.0.1 (and V0 0.6.4) subtract what other processes hold on the card; later ones what is taken on it while they
    profile. The profile run of a multimodal model holds its images and videos at the largest size allowed.
    """
    terms = [rank.ledger for rank in context.observation.ranks[:1]]
    weights = terms[0]["weights"].interval if terms else None
    requested = terms[0]["requested"].interval if terms else None
    printed = any(terms[0][key].known for key in ("non_torch", "activation")) if terms else False
    charged = any(rank.rule.others_charged for rank in context.observation.ranks)
    rest = requested.minus(weights) if weights is not None and requested is not None else None
    if isinstance(failure.record, AutoFitImpossible) or (rest is not None and rest.hi < weights.lo // 4):  # type: ignore[union-attr]
        return ""  # the weights themselves fill the request
    media = "" if printed else "; of a multimodal model limit the images and videos (--limit-mm-per-prompt)"
    if charged:
        version = context.startup.version or "this release"
        newer = "0.6.5" if parse_release(context.startup.version).before("0.6.5") else "0.9.1"
        return (
            f"{version} subtracts what other processes hold on the card: give it a card of its own, upgrade to {newer}, or a"
            f" utilization for all of them together{media}"
        )
    if rest is None or rest.lo <= weights.hi // 2:  # type: ignore[union-attr]
        return ""
    left = _missing(context) or Decimal(0)
    size = Decimal(rest.mid) / (1 << 30) + left
    return (
        f"weights take {format_gib(weights.mid)} of {format_gib(requested.mid)}, {size:.2f} GiB went to the profile run and to"  # type: ignore[union-attr]
        f" what other processes took on the card meanwhile: start servers on one card one after the other{media}"
    )


def _missing(context: Context) -> Decimal | None:
    """Return how far the tightest rank is below zero, where it was printed."""
    printed = [r.gib for r in context.startup.all(KVCacheMemory)]
    left = min(printed + [r.kv_cache_gib for r in context.startup.all(MemoryProfile)], default=None)
    if left is not None and left <= 0:
        return -exact(left)
    for record in context.startup.all(NoKVCacheMemory):
        if record.consumed_gib is not None and record.requested_gib is not None:
            return exact(record.consumed_gib) - exact(record.requested_gib)
    refused = context.startup.last(TPUMemoryTooSmall)
    return exact(refused.excess_gib) if refused is not None else None


def _card(context: Context, failure: Failure) -> Card:
    """Return the card as the refusal itself shows it, else as the log does."""
    record = failure.record
    if not isinstance(record, TPUMemoryTooSmall) or not 0 < record.gpu_memory_utilization <= 1:
        return card_of(context)
    share = exact(record.gpu_memory_utilization)
    return Card(exact(record.cap_gib) / share, share)


def _terms(context: Context, failure: Failure) -> str:
    parts = []
    for rank in context.observation.ranks[:1]:
        for key in ("requested", "weights", "non_torch", "activation"):
            size = rank.ledger[key].interval
            if size is not None:
                parts.append(f"{rank.ledger[key].label} {format_gib(size.mid)}")
    record = failure.record
    if not parts and isinstance(record, NoKVCacheMemory) and record.consumed_gib is not None:
        parts = [f"requested {record.requested_gib} GiB", f"used by the worker {record.consumed_gib} GiB"]
    if isinstance(record, TPUMemoryTooSmall):
        parts = [f"requested {record.cap_gib} GiB of all local devices", f"in use {record.used_gib} GiB"]
    return ", ".join(parts)


def _half_of_weights(context: Context) -> Decimal | None:
    """Return the GiB that twice the ranks would save on each."""
    sizes = [size.hi for rank in context.observation.ranks if (size := rank.ledger["weights"].interval) is not None]
    return Decimal(max(sizes)) / 2 / (1 << 30) if sizes else None


def _remedy(card: Card, context: Context, missing: Decimal | None) -> tuple[str, dict[str, int | float | str]]:
    config = context.startup.config
    tp = (config.tensor_parallel_size if config is not None else None) or 1
    spread = f"split the weights over more cards (--tensor-parallel-size {2 * tp}) or quantise them"
    half = _half_of_weights(context)
    if missing is not None and half is not None and half < missing:
        return (
            f"{missing:.2f} GiB are missing before the first token, more than halving the weights gives ({half:.2f} GiB):"
            " something else takes it. Another process on the card: end it (nvidia-smi, or fuser -v /dev/kfd /dev/dri/*); the"
            " profile run: lower --max-num-batched-tokens or, for images and videos, --limit-mm-per-prompt",
            {},
        )
    if missing is None:
        return f"{spread}, or raise --gpu-memory-utilization if the card has memory to spare", {
            "tensor_parallel_size": 2 * tp
        }
    if card.total_gib and card.utilization is not None:
        share = round(math.floor(100 * (card.utilization + missing / card.total_gib)) / 100 + 0.01, 2)
        if share <= _SAFE:
            return (
                f"give it more than {missing:.2f} GiB: above --gpu-memory-utilization {share:.2f} a KV cache"
                f" begins; or {spread}",
                {"gpu_memory_utilization": share},
            )
    smaller = "lower --max-num-batched-tokens to shrink the activations"
    return f"{missing:.2f} GiB are missing before the first token: {spread}, or {smaller}", {
        "tensor_parallel_size": 2 * tp
    }
