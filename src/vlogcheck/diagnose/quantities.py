"""Diagnoses of what the KV cache's ledger gives: bytes per token, tokens, requests."""

from __future__ import annotations

from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING

from vlogcheck.diagnose._case import Bounds, Case, Variant
from vlogcheck.diagnose._result import Diagnosis, Reading, of, reading
from vlogcheck.diagnose.mistakes import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "SHARES",
    "alternating",
    "diagnose_bytes_per_token",
    "diagnose_concurrency",
    "diagnose_stated_bytes",
    "diagnose_tokens",
    "ranks_of_a_token",
]

SHARES = frozenset(
    {"tp_share_not_taken", "tp_share_taken_twice", "all_pipeline_stages", "pp_share_taken_twice", "whole_model",
     "replication_forgotten", "latent_divided"}
)  # fmt: skip
"""Mistakes in taking a rank's share: none of a figure that is meant for the whole model."""


def diagnose_bytes_per_token(case: Case, seen: Bounds) -> Diagnosis:
    """Return the mistakes with which the ledger gives `seen` bytes per token and rank (bounds)."""
    right = case.bytes_per_token(case.unchanged)

    def value(variant: Variant) -> Bounds | None:
        found = case.bytes_per_token(variant)
        return None if not found or found == right else (found, found)

    return _search(case, value, seen)


def whole_model(case: Case) -> Case | None:
    """Return the ledger of the whole model, as if one rank held it; None where it cannot be planned."""
    if case.tp == 1 and case.pp == 1:
        return case
    one = case.planned("", tensor_parallel_size=1, pipeline_parallel_size=1)
    if one is None:
        return None
    setup = case.setup._replace(available=None, options=one.settings.options)
    return Case(setup, case.model, one.settings, one.layers, ())


def ranks_of_a_token(case: Case) -> Fraction:
    """Return how many times a rank's bytes per token the whole model's are: copies of KV heads and latents count once."""
    whole = whole_model(case)
    rank = case.bytes_per_token(case.unchanged)
    return Fraction(1) if whole is None or not rank else whole.bytes_per_token(whole.unchanged) / rank


def diagnose_stated_bytes(case: Case, told: Bounds) -> Diagnosis:
    """Return the mistakes behind a stated figure that may be meant for one rank or for the whole model."""
    rank = diagnose_bytes_per_token(case, told).readings
    whole = whole_model(case)
    if whole is None or whole is case:
        return Diagnosis(rank)
    return alternating(rank, diagnose_bytes_per_token(whole, told).readings)


def alternating(rank: Sequence[Reading], whole: Sequence[Reading]) -> Diagnosis:
    """Return the mistakes of both readings of a figure, the commonest of each first."""
    meant = [r._replace(text=f"{r.text} (of the whole model's figure)") for r in whole if r.key not in SHARES]
    pairs = zip_longest(rank, meant)
    return of(found for pair in pairs for found in pair)


def diagnose_tokens(case: Case, seen: Bounds, length: int) -> Diagnosis:
    """Return the mistakes with which the release would print `seen` tokens (bounds) for a `max_model_len` of `length`."""
    right = case.tokens(case.unchanged, length)
    return _search(case, lambda variant: _other(case.tokens(variant, length), right), seen)


def diagnose_concurrency(case: Case, seen: Bounds, length: int) -> Diagnosis:
    """Return the mistakes with which `seen` requests (bounds) of `length` tokens would fit."""
    right = case.concurrency(case.unchanged, length)
    return _search(case, lambda variant: _other(case.concurrency(variant, length), right), seen)


def _other(found: Bounds | None, right: Bounds | None) -> Bounds | None:
    """Return a figure, or None where it is the right one: a mistake without effect explains nothing."""
    return None if found == right else found


def _search(case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds) -> Diagnosis:
    return of(_readings(case, value, seen))


def _readings(case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds) -> Iterator[Reading]:
    """Yield one reading for each mistake that gives the figure: of its variants the one that agrees best."""
    for mistake in MISTAKES.values():
        found = [
            known
            for variant in mistake.variants(case)
            if (bounds := value(variant)) is not None
            and (known := reading(mistake.key, variant.text, bounds, seen)) is not None
        ]
        if found:
            yield next((known for known in found if known.central), found[0])
