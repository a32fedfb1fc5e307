"""What the failure checks share: sizes for people, and the utilization that would have left enough room."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._clock import duration
from vlogcheck._tuples import NamedTuple
from vlogcheck.records import OutOfMemory
from vlogcheck.registry import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck.context import Context
    from vlogcheck.failures import Failure

__all__ = [
    "Card",
    "Remedy",
    "amount",
    "card_of",
    "cause",
    "exact",
    "figures",
    "floor_share",
    "lower_utilization",
    "missing_gib",
    "oom_finding",
    "ranks_text",
    "when_text",
]

Fix = dict[str, "int | float | str"]


class Remedy(NamedTuple):
    """What to do, for people and for programs."""

    text: str
    fix: Mapping[str, int | float | str]


class Card(NamedTuple):
    """The card as the log shows it; None where it does not."""

    total_gib: Decimal | None
    utilization: Decimal | None


def exact(value: float) -> Decimal:
    """Return the decimal that was printed, exactly."""
    return Decimal(str(float(value)))


def card_of(context: Context, record: OutOfMemory | None = None) -> Card:
    """Return the card's size and the share vLLM was to take of it."""
    total = exact(record.total_gib) if record is not None and record.total_gib is not None else None
    share = None
    for rank in context.observation.ranks:
        if total is None and (size := rank.ledger["total"].interval) is not None:
            total = Decimal(size.mid) / (1 << 30)
        if share is None and (term := rank.ledger["utilization"]).lo is not None and term.hi is not None:
            middle = Fraction(term.lo + term.hi) / 2
            share = Decimal(middle.numerator) / middle.denominator
    stated = context.startup.args.get("gpu_memory_utilization")
    if share is None and isinstance(stated, (int, float)) and not isinstance(stated, bool) and 0 < stated <= 1:
        share = exact(stated)
    return Card(total, share)


def floor_share(part: Decimal, whole: Decimal) -> float:
    """Return part ÷ whole rounded down to two decimals, not below 0."""
    return max(math.floor(100 * part / whole), 0) / 100 if whole > 0 else 0.0


def lower_utilization(card: Card, missing_gib: Decimal) -> float | None:
    """Return the largest utilization (two decimals) that leaves that much more memory outside the budget."""
    if card.total_gib is None or card.utilization is None or card.total_gib <= 0:
        return None
    share = floor_share(card.utilization * card.total_gib - missing_gib, card.total_gib)
    return share if share > 0 else None


def ranks_text(failure: Failure) -> str:
    """Return how many ranks printed it, empty for one."""
    return f", on {failure.ranks} ranks" if failure.ranks > 1 else ""


def when_text(failure: Failure) -> str:
    """Return how long after ready it was, as far as the log tells."""
    if not failure.after_ready:
        return failure.when
    return (
        f"{duration(failure.seconds)} after the server was ready" if failure.seconds else "after the server was ready"
    )


def oom_finding(failure: Failure, remedy: Remedy, *, expected: str, what: str) -> Finding:
    """Return the finding of a failed device allocation: the figures of torch's message and who holds the memory."""
    record = failure.record
    assert isinstance(record, OutOfMemory)
    return Finding(
        f"out of device memory {what}{ranks_text(failure)}",
        line=record.line,
        expected=expected,
        observed=figures(record),
        remedy=remedy.text,
        explanation=cause(record),
        fix=remedy.fix,
    )


def amount(gib: Decimal) -> str:
    """Return a size in GiB, or in MiB where two decimals would say nothing."""
    return f"{gib:.2f} GiB" if gib >= Decimal("0.01") else f"{gib * 1024:.2f} MiB"


def missing_gib(record: OutOfMemory) -> Decimal | None:
    """Return what was missing at least: the size asked for less what was free."""
    if record.tried_gib is None or record.free_gib is None:
        return None
    return max(exact(record.tried_gib) - exact(record.free_gib), Decimal(0))


def figures(record: OutOfMemory) -> str:
    """Return what the message says of the allocation."""
    parts = []
    tried, free, total = record.tried_gib, record.free_gib, record.total_gib
    alike = tried is not None and free is not None and tried < 1 and f"{tried:.2f}" == f"{free:.2f}"
    scale, unit = (1024, "MiB") if alike else (1, "GiB")  # two decimals of GiB would hide what is missing
    if tried is not None:
        parts.append(f"{tried * scale:.2f} {unit} asked for")
    if free is not None:
        of = f" of {total:.2f} GiB" if total is not None else ""
        parts.append(f"{free * scale:.2f} {unit}{of} free")
    elif tried is not None and total is not None:
        parts.append(f"the device has {total:.2f} GiB")
    if record.process_gib is not None:
        parts.append(f"{record.process_gib:.2f} GiB held by this process")
    device = f" on device {record.device}" if record.device is not None else ""
    return (", ".join(parts) or f"{record.backend} out of memory, no figures printed") + device


def cause(record: OutOfMemory) -> str:
    """Return who holds the memory, where the message tells."""
    if record.other_gib is not None and record.other_gib >= 1:
        return f"another process on the card holds {record.other_gib:.2f} GiB"
    kept, tried = record.unallocated_gib, record.tried_gib
    if kept is not None and tried is not None and kept >= tried:
        return (
            f"torch keeps {kept:.2f} GiB that it cannot use for this allocation: fragmentation"
            " (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)"
        )
    return ""
