"""VL511: the server's cards are unevenly full."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._cards import CardUse, CardUses, odd_card, reported_line
from vlogcheck.checks._memory import gib, worth
from vlogcheck.checks._ranks import even, pipelined
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import Interval


@check("the server's cards are unevenly full", Severity.WARNING)
def uneven_occupancy(cards: CardUses, startup: Startup) -> Iterator[Finding]:
    """Flag a card that differs from the others by more than its reserve, in `--smi`."""
    if len(cards) < 2:
        raise Missing("the server uses one card")
    if pipelined(startup):
        raise Missing("the stages of a pipeline may fill their cards differently")
    odd = odd_card(cards)
    if odd is None:
        return
    rest = [use for use in cards if use is not odd]
    others = sum(use.card.used.mid for use in rest) // len(rest)
    spread, lower = abs(others - odd.card.used.mid), odd.card.used.mid < others
    readings: list[tuple[object, Interval]] = [(use.worker, use.card.used) for use in cards]
    weights = even(readings, "weights")  # type: ignore[arg-type]
    yield Finding(
        f"card {odd.card.number} holds {gib(spread)} {'less' if lower else 'more'} than the others",
        line=reported_line(odd),
        expected="the same on all: every card holds its share of the weights and a pool of the same size",
        observed=", ".join(f"card {use.card.number} {gib(use.card.used.mid)}" for use in cards),
        remedy=_remedy(odd, spread, lower=lower, weights=weights),
        explanation=_explanation(lower=lower, weights=weights),
    )


def _remedy(odd: CardUse, spread: int, *, lower: bool, weights: bool) -> str:
    if not weights:
        return f"the weights are uneven: look at the parallel configuration and at loading first ({gib(spread)})"
    look = (
        f"look who is or was on card {odd.card.number} (nvidia-smi, rocm-smi --showpids, fuser -v /dev/kfd /dev/dri/*)"
    )
    if lower:
        return (
            f"{look} and start again on idle cards: that card's pool came out {gib(spread)} smaller, it sizes the pool of"
            f" all, and every rank gains up to {gib(spread)}{worth(odd.worker, spread)}"
        )
    return f"{look}: {gib(spread)} of it are not this server's; move it, before a peak of either ends both"


def _explanation(*, lower: bool, weights: bool) -> str:
    if not weights:
        return "uneven weights"
    if lower:
        return "the weights are even: another process held memory there while the server started, and has given it back"
    return "the weights are even: another process is on that card"
