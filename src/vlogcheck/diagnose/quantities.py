"""Diagnoses of what the KV cache's ledger gives: bytes per token, tokens, requests."""

from __future__ import annotations

from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING

from vlogcheck.budget.model import ModelConfigError
from vlogcheck.diagnose._case import Bounds, Case, Variant
from vlogcheck.diagnose._result import Candidate, Diagnosis
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
    setup = case.setup._replace(available=None)
    try:
        plan = setup.plan(tensor_parallel_size=1, pipeline_parallel_size=1)
    except ModelConfigError:
        return None
    if plan.pool is None or plan.settings is None:
        return None
    return Case(setup, case.model, plan.settings, plan.pool.layers, ())


def ranks_of_a_token(case: Case) -> Fraction:
    """Return how many times a rank's bytes per token the whole model's are: copies of KV heads and latents count once."""
    whole = whole_model(case)
    rank = case.bytes_per_token(case.unchanged)
    return Fraction(1) if whole is None or not rank else whole.bytes_per_token(whole.unchanged) / rank


def diagnose_stated_bytes(case: Case, told: Bounds) -> Diagnosis:
    """Return the mistakes behind a stated figure that may be meant for one rank or for the whole model."""
    rank = diagnose_bytes_per_token(case, told).candidates
    whole = whole_model(case)
    if whole is None or whole is case:
        return Diagnosis(rank)
    return alternating(rank, diagnose_bytes_per_token(whole, told).candidates)


def alternating(rank: Sequence[Candidate], whole: Sequence[Candidate]) -> Diagnosis:
    """Return the mistakes of both readings of a figure, the commonest of each first."""
    meant = [c._replace(text=f"{c.text} (of the whole model's figure)") for c in whole if c.key not in SHARES]
    pairs = zip_longest(rank, meant)
    return Diagnosis(tuple(candidate for pair in pairs for candidate in pair if candidate is not None))


def diagnose_tokens(case: Case, seen: Bounds, length: int) -> Diagnosis:
    """Return the mistakes with which the release would print `seen` tokens (bounds) for a `max_model_len` of `length`."""
    return _search(case, lambda variant: case.tokens(variant, length), seen)


def diagnose_concurrency(case: Case, seen: Bounds, length: int) -> Diagnosis:
    """Return the mistakes with which `seen` requests (bounds) of `length` tokens would fit."""
    return _search(case, lambda variant: case.concurrency(variant, length), seen)


def _search(case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds) -> Diagnosis:
    return Diagnosis(tuple(_candidates(case, value, seen)))


def _candidates(case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds) -> Iterator[Candidate]:
    for mistake in MISTAKES.values():
        for variant in mistake.variants(case):
            found = value(variant)
            if found is not None and found[0] <= seen[1] and seen[0] <= found[1]:
                yield Candidate(mistake.key, variant.text, *found)
                break
