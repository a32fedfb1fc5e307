"""Which card of a reading belongs to which rank, and what the rank should hold of it."""

from __future__ import annotations

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._tuples import NamedTuple
from vlogcheck.advice import reserve
from vlogcheck.checks._memory import DeviceWorkers, Worker, held_before
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.context import Context, provide
from vlogcheck.registry import Missing
from vlogcheck.smi import Card, Occupancy
from vlogcheck.units import Interval


class CardUse(NamedTuple):
    """A card with the rank on it and what the ledger says the rank holds, in bytes."""

    card: Card
    worker: Worker
    due: Interval
    """From weights, KV cache and graphs alone to those with the whole request, the context and the card's reserve."""

    @property
    def over(self) -> int:
        """Bytes in use beyond everything the ledger can account for; 0 or less where there are none."""
        return self.card.used.lo - self.due.hi

    @property
    def under(self) -> int:
        """Bytes missing to what the rank must hold; 0 or less where there are none."""
        return self.due.lo - self.card.used.hi


class CardUses(list[CardUse]):
    """The server's cards in the order of its ranks."""


def _uses(context: Context) -> CardUses:
    occupancy = context.get(Occupancy)
    workers = context.get(DeviceWorkers)
    pools = [_pool(context, worker) for worker in workers]
    whole = [at for at, worker in enumerate(workers) if pools[at] is not None and "weights" in worker.ledger]
    if not whole:
        raise Missing(
            "the log does not print both weights and KV cache memory, so a card's use cannot be reconciled (with"
            " --model-config it can: the tokens give the memory)"
        )
    tp, pp = parallel_sizes(context.startup)
    engines = len({worker.engine.engine.index for worker in workers})
    count = max(len(workers), tp * pp * engines)
    # Ranks that print nothing (one per host from 0.11.1 on) are like the first one that does.
    ranks = [at if at in whole and len(workers) == count else whole[0] for at in range(count)]
    cards = [card for card in occupancy.cards if card.slice is None]
    if len(cards) != count:
        least = min(_due(workers[at], pools[at], cards[0]).lo for at in ranks) if cards else 0
        cards = [card for card in cards if card.used.hi >= least]
    if len(cards) != count:
        raise Missing(
            f"the server has {count} ranks and {len(cards)} of the reading's {len(occupancy.cards)} cards hold enough"
            " for one: which is whose is not known"
        )
    return CardUses(
        CardUse(card, workers[at], _due(workers[at], pools[at], card)) for card, at in zip(cards, ranks, strict=True)
    )


def _pool(context: Context, worker: Worker) -> Interval | None:
    """Return the bytes of a rank's pool: as printed, or those of the blocks that the printed tokens mean."""
    printed = worker.ledger["kv_cache"].interval
    if printed is not None or context.model is None:
        return printed
    try:
        expected = context.model.expected(context, worker.engine)
    except Missing:
        return None
    blocks, size = observed_blocks(expected), expected.plan.bytes_per_block()
    return blocks.times(size) if blocks is not None and size is not None else None


def _due(worker: Worker, pool: Interval | None, card: Card) -> Interval:
    ledger = worker.ledger
    weights = ledger["consumed"].interval or ledger["weights"].interval or Interval(0, 0)
    pool = pool or Interval(0, 0)
    graphs = ledger["graphs"].interval or Interval(0, 0)
    low = weights.plus(pool).lo
    requested, share = ledger["requested"].interval, ledger["utilization"]
    if requested is None and share.hi is not None:
        requested = Interval(0, int(card.total.hi * share.hi))
    high = max(weights.plus(pool).hi, requested.hi if requested is not None else 0)
    if worker.rank.rule.pinned:
        high = weights.plus(pool).hi
    held = held_before(ledger)
    # Outside the request: captured graphs, and the context with what else was in use at start (the reserve, if unknown).
    return Interval(low, high + max(graphs.hi, 0) + (held.hi if held is not None else reserve(card.total.hi)))


def odd_card(cards: CardUses) -> CardUse | None:
    """Return the card that differs most from the others, where it is by more than a reserve; else None."""
    if len(cards) < 2:
        return None
    ordered = sorted(cards, key=lambda use: use.card.used.mid)
    low, high = ordered[0], ordered[-1]
    if high.card.used.lo - low.card.used.hi <= reserve(min(use.card.total.hi for use in cards)):
        return None
    middle = ordered[len(ordered) // 2].card.used.mid
    return low if middle - low.card.used.mid > high.card.used.mid - middle else high


def reported_line(use: CardUse) -> int | None:
    """Return the log line that says most about what the rank holds."""
    ledger = use.worker.ledger
    return ledger["kv_cache"].line or use.worker.engine.capacity.tokens_line or ledger["weights"].line


provide(CardUses, _uses)
