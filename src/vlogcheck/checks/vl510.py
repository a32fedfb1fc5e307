"""VL510: a card's occupancy is not what the ledger gives."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._cards import CardUse, CardUses, odd_card, reported_line
from vlogcheck.checks._memory import gib
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.smi import Occupancy
from vlogcheck.units import GIB

_LEAST = GIB // 100
"""Less than this is not seen in figures of two decimals."""


@check("a card's occupancy is not what the ledger gives", Severity.WARNING)
def occupancy_not_as_ledger(cards: CardUses, occupancy: Occupancy) -> Iterator[Finding]:
    """Reconcile `--smi` with weights + KV cache + the rest, card by card."""
    over = [use for use in cards if use.over > _LEAST]
    odd = odd_card(cards)  # VL511 says why one card holds less than the others
    under = [use for use in cards if use.under > _LEAST and use is not odd]
    if over:
        worst = max(over, key=lambda use: use.over)
        yield Finding(
            f"card {worst.card.number} holds {gib(worst.over)} more than the server of this log can"
            + (f" (and {len(over) - 1} more card{'s' if len(over) > 2 else ''})" if len(over) > 1 else ""),
            line=reported_line(worst),
            expected=f"{_due(worst)}: weights, KV cache, graphs, activation and a context",
            observed=f"{gib(worst.card.used.mid)} in use of {gib(worst.card.total.mid)}",
            remedy=_who(worst, occupancy) + f"; at least {gib(worst.over)} there are somebody else's",
            explanation=f"card {worst.card.number} is taken to be {worst.worker.name}'s: steady state is compared, so the"
            " reading must be of the serving server",
        )
    if under:
        worst = max(under, key=lambda use: use.under)
        yield Finding(
            f"card {worst.card.number} holds {gib(worst.under)} less than weights and KV cache of this log",
            line=reported_line(worst),
            expected=f"at least {gib(worst.due.lo)}: the pool is taken at start and kept",
            observed=f"{gib(worst.card.used.mid)} in use of {gib(worst.card.total.mid)}",
            remedy="take the reading while this server serves (after `Application startup complete.`) and on its own host;"
            f" {gib(worst.under)} less can also be a pool that was made smaller on this card, or a server in sleep mode",
            explanation=f"card {worst.card.number} is taken to be {worst.worker.name}'s",
        )


def _due(use: CardUse) -> str:
    return f"{gib(use.due.lo)} to {gib(use.due.hi)}"


def _who(use: CardUse, occupancy: Occupancy) -> str:
    found = [process for process in occupancy.processes if process.card == use.card.number]
    if len(found) > 1:
        names = ", ".join(
            f"{process.name} (pid {process.pid}" + (f", {gib(process.used.mid)})" if process.used is not None else ")")
            for process in found
        )
        return f"the reading names on this card: {names}"
    return "look who else is on it (nvidia-smi, rocm-smi --showpids, npu-smi info, fuser -v /dev/kfd /dev/dri/*)"
