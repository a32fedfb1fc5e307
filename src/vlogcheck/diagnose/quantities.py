"""Diagnoses of what the KV cache's ledger gives: bytes per token, tokens, requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.diagnose._case import Bounds, Case, Variant
from vlogcheck.diagnose._result import Candidate, Diagnosis
from vlogcheck.diagnose.mistakes import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["diagnose_bytes_per_token", "diagnose_concurrency", "diagnose_tokens"]


def diagnose_bytes_per_token(case: Case, seen: Bounds) -> Diagnosis:
    """Return the mistakes with which the ledger gives `seen` bytes per token and rank (bounds)."""
    right = case.bytes_per_token(Variant("", case.layers, case.settings))

    def value(variant: Variant) -> Bounds | None:
        found = case.bytes_per_token(variant)
        return None if not found or found == right else (found, found)

    return _search(case, value, seen)


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
