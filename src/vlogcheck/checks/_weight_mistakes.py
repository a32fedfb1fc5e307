"""The mistakes of a hand figure for the weights that explain how far it is from the logged one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.startup import Startup
from vlogcheck.units import GIB, MIB, Interval, format_gib

if TYPE_CHECKING:
    from vlogcheck.checks._weights import ExpectedWeights

__all__ = ["Mistake", "explanation", "mistakes"]

GB = 10**9


def loosely(stated: Interval) -> Interval:
    """Return the figures a hand-written size may stand for: people cut decimals as often as they round them."""
    if not stated.exact:
        return Interval(stated.lo, stated.hi + (stated.hi - stated.lo) // 2)
    unit = next((unit for unit in (GIB, GB, MIB, 10**6) if stated.lo and stated.lo % unit == 0), 0)
    return Interval(stated.lo - unit // 2, stated.hi + unit) if unit else stated


class Mistake(NamedTuple):
    """One mistake of a hand ledger that makes the stated figure the logged one."""

    key: str
    """Its key in the diagnoses."""
    text: str
    per_rank: Interval
    """What the figure becomes without it."""


def mistakes(stated: Interval, seen: Interval, startup: Startup, expected: ExpectedWeights | None) -> list[Mistake]:
    """Return the single mistakes that explain a stated weight, most likely first."""
    return [m for m in _candidates(loosely(stated), startup, expected, seen) if m.per_rank.overlaps(seen)]


def explanation(found: list[Mistake], stated: Interval, seen: Interval, expected: ExpectedWeights | None) -> str:
    """Return the mistakes in words, as three candidates at most; without any, those that the configuration's weights show."""
    from vlogcheck.diagnose import Diagnosis, Reading, diagnose_weights

    readings = [Reading(mistake.key, mistake.text, mistake.per_rank.lo, mistake.per_rank.hi) for mistake in found]
    if not readings and expected is not None and seen.overlaps(expected.bounds(None)):
        from vlogcheck.expected import Setup

        setup = Setup(expected.model, expected.options, expected.version, None, {}, None, None, True)
        for stage in range(len(expected.stages)):
            readings = readings or list(diagnose_weights(setup, loosely(stated), stage).readings)
    texts = [candidate.text for candidate in Diagnosis(tuple(readings)).candidates]
    if not texts:
        return "unexplained: no single mistake of a hand ledger gives this figure"
    return texts[0] if len(texts) == 1 else "one of: " + "; ".join(texts)


def _candidates(
    stated: Interval, startup: Startup, expected: ExpectedWeights | None, seen: Interval
) -> Iterator[Mistake]:
    tp, pp = parallel_sizes(startup)
    config = startup.config
    said = format_gib(seen.mid)
    if tp > 1:
        yield Mistake(
            "tp_share_taken_twice",
            f"the log's {said} are already per rank: the stated figure was divided by the tensor parallel size {tp}"
            " once more",
            stated.times(tp),
        )
        yield Mistake(
            "share_in_other_unit",
            f"the log's {said} are already per rank: the stated figure was divided by the tensor parallel size {tp}"
            " once more, in GiB that were called GB",
            _scaled(stated.times(tp), GIB, GB),
        )
    for name, count in (("tensor parallel size", tp), ("number of ranks", tp * pp)):
        if count > 1 and (name != "number of ranks" or pp > 1):
            text = f"the stated figure is the total of all ranks: {name} {count}"
            yield Mistake("tp_share_not_taken" if count == tp else "whole_model", text, stated.floordiv(count))
            yield Mistake(
                "total_in_other_unit",
                f"the stated figure is the total of all ranks ({name} {count}), in GiB that were called GB",
                _scaled(stated, GIB, GB * count),
            )
    yield Mistake("gb_for_gib", "GB were meant as GiB: the log counts in GiB (2**30 bytes)", _scaled(stated, GIB, GB))
    yield Mistake(
        "gb_for_gib_inverse", "the stated figure is in GB (10**9 bytes), written as GiB", _scaled(stated, GB, GIB)
    )
    dtype = config.dtype if config is not None else None
    method = config.quantization if config is not None else None
    if dtype == "float32" and method is None:
        yield Mistake("bytes_per_element", "the weights are in float32, 4 bytes instead of 2", stated.times(2))
    elif method is None and dtype is not None:
        key = "quantisation_not_applied"
        yield Mistake(key, f"the weights are not quantised: {dtype} takes twice what 8 bits do", stated.times(2))
        yield Mistake(key, f"the weights are not quantised: {dtype} takes four times what 4 bits do", stated.times(4))
    if expected is not None and seen.overlaps(expected.bounds(None)):
        whole = expected.checkpoint()
        share = min((stage.param_bytes for stage in expected.stages), default=0)
        if whole and stated.lo <= whole <= stated.hi and tp * pp > 1:
            yield Mistake(
                "checkpoint_size",
                f"the stated figure is the checkpoint's size on disk ({whole / GB:.1f} GB, all ranks together)",
                seen,
            )
        elif share and stated.lo <= share <= stated.hi:
            yield Mistake(
                "checkpoint_size",
                f"the stated figure is a share of the checkpoint's size ({share / GB:.2f} GB); on the device the"
                " allocator's rounding and buffers come on top",
                seen,
            )


def _scaled(interval: Interval, up: int, down: int) -> Interval:
    return Interval(interval.lo * up // down, -(-interval.hi * up // down))
