"""Diagnoses of what the KV cache's ledger gives: bytes per token, tokens, requests."""

from __future__ import annotations

from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.diagnose._case import Case, Variant
from vlogcheck.diagnose._result import Diagnosis, Reading, of, reading
from vlogcheck.diagnose.mistakes import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vlogcheck.diagnose._case import Bounds

__all__ = [
    "SHARES",
    "SLIPS",
    "Evidence",
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


SLIPS = frozenset(
    {"kv_counted_once", "latent_as_k_and_v", "gb_for_gib", "block_rounding", "tp_share_taken_twice",
     "pp_share_taken_twice", "replication_forgotten", "latent_divided"}
)  # fmt: skip
"""Slips of arithmetic: a server makes none of them, so they explain no figure that a log prints."""


class Evidence(NamedTuple):
    """What else is known of a figure."""

    printed: bool = False
    """Whether it is the log's own rather than somebody's: then no slip of arithmetic is behind it."""
    bytes_told: Bounds | None = None
    """Bytes per token, of a rank or of the whole model, that the same person stated: one mistake gives both figures."""


_NOTHING = Evidence()


def diagnose_bytes_per_token(case: Case, seen: Bounds, evidence: Evidence = _NOTHING) -> Diagnosis:
    """Return the mistakes with which the ledger gives `seen` bytes per token and rank (bounds)."""
    right = case.bytes_per_token(case.unchanged)

    def value(variant: Variant) -> Bounds | None:
        found = case.bytes_per_token(variant)
        return None if not found or found == right else (found, found)

    return _search(case, value, seen, evidence)


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


def diagnose_tokens(case: Case, seen: Bounds, length: int, evidence: Evidence = _NOTHING) -> Diagnosis:
    """Return the mistakes with which the release would print `seen` tokens (bounds) for a `max_model_len` of `length`."""
    right = case.tokens(case.unchanged, length)
    return _search(case, lambda variant: _other(case.tokens(variant, length), right), seen, evidence)


def diagnose_concurrency(case: Case, seen: Bounds, length: int, evidence: Evidence = _NOTHING) -> Diagnosis:
    """Return the mistakes with which `seen` requests (bounds) of `length` tokens would fit."""
    right = case.concurrency(case.unchanged, length)
    return _search(case, lambda variant: _other(case.concurrency(variant, length), right), seen, evidence)


def _other(found: Bounds | None, right: Bounds | None) -> Bounds | None:
    """Return a figure, or None where it is the right one: a mistake without effect explains nothing."""
    return None if found == right else found


def _search(case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds, evidence: Evidence) -> Diagnosis:
    found = list(_readings(case, value, seen, evidence))
    if evidence.bytes_told is not None and len(found) > 1:
        found = _giving_both(case, found, evidence.bytes_told) or found
    return of(known for known, _ in found)


def _giving_both(case: Case, found: Sequence[tuple[Reading, Variant]], told: Bounds) -> list[tuple[Reading, Variant]]:
    """Return the readings with which a token takes the bytes that were stated: a rank's, or else the whole model's."""
    readings = Fraction(1), ranks_of_a_token(case)
    right = case.bytes_per_token(case.unchanged)
    meant = [times for times in readings if told[0] <= right * times <= told[1]][:1] or readings
    return [
        (known, variant)
        for known, variant in found
        if any(told[0] <= case.bytes_per_token(variant) * times <= told[1] for times in meant)
    ]


def _readings(
    case: Case, value: Callable[[Variant], Bounds | None], seen: Bounds, evidence: Evidence
) -> Iterator[tuple[Reading, Variant]]:
    """Yield one reading for each mistake that gives the figure: of its variants the one that agrees best."""
    for mistake in MISTAKES.values():
        if evidence.printed and mistake.key in SLIPS:
            continue
        found = [
            (known, variant)
            for variant in mistake.variants(case)
            if (bounds := value(variant)) is not None
            and (known := reading(mistake.key, variant.text, bounds, seen)) is not None
        ]
        if found:
            yield next((pair for pair in found if pair[0].central), found[0])
