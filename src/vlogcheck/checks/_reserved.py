"""Memory that is taken from the KV cache after it was printed: the multimodal front end's share (0.25.1 and later)."""

from __future__ import annotations

from fractions import Fraction

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._kv import cost_of
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.units import Interval

_MEDIA = ("vision_config", "audio_config", "video_config", "visual", "vision_tower", "mm_vision_tower")


def takes_media(context: Context) -> bool:
    """Whether the release may reserve memory for the front end of this model: it takes images, video or audio."""
    if context.model is None or context.startup.version is None:
        return False
    raw = context.model.config.raw
    return parse_release(context.startup.version).since("0.25.1") and any(key in raw for key in _MEDIA)


def reserved_for_media(context: Context, plan: ExpectedEngine) -> Interval | None:
    """Return the bytes per rank by which the pool is smaller than the printed memory, where a release takes some.

    None where the model takes no media or nothing is missing.
    """
    if not takes_media(context) or plan.available is None:
        return None
    layout, cost = plan.plan.pool, cost_of(plan)
    if layout is None or cost is None or cost.expected <= 0:
        return None
    size = int(cost.expected * cost.block_size)
    low = plan.available.lo - (cost.blocks.hi + 1) * size
    high = plan.available.hi - cost.blocks.lo * size
    missing = Interval(max(low, 0), max(high, 0))
    return missing if low > 0 and Fraction(high, plan.available.hi) < Fraction(1, 2) else None
