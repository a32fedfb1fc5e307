"""Which terms of a rank's device memory are subtracted to get the KV cache, by release.

Read from worker/worker.py (V0), v1/worker/gpu_worker.py and utils/mem_utils.py of the releases; "0.20.2" means that it
was seen there first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

__all__ = ["DeviceRule", "Graphs", "device_rule"]

Graphs = Literal["none", "uncounted", "separate", "inside"]
"""Where graph memory is in the budget: no graphs are captured; captured outside it; an estimate is a term of its own;
an estimate is part of the activation term."""


class DeviceRule(NamedTuple):
    """How a release turns device memory into KV cache memory (kv_cache sizing in worker.py and gpu_worker.py)."""

    subtracted: tuple[str, ...]
    """Keys of the terms that are subtracted from `requested`."""
    graphs: Graphs
    others_charged: bool
    """Whether memory of other processes on the card is charged to this one (V1 until 0.9.0.1; V0 0.2.5–0.3.0 and 0.6.4)."""
    pinned: bool = False
    """Whether the KV cache was given in bytes (`--kv-cache-memory-bytes`), so the utilization plays no part."""


def device_rule(
    release: Release, *, v0: bool, eager: bool = False, counted: bool | None = None, consumed: bool | None = None,
    pinned: bool = False,
) -> DeviceRule:  # fmt: skip
    """Return the rule of a release.

    `counted` is whether graph memory is estimated inside the utilization, None for the release's default (on from
    0.20.2, opt-in in 0.18 and 0.19, unknown before); `consumed` is whether a line prints weights and non-torch memory as
    one, None where no line prints either.
    """
    if counted is None:
        counted = release.since("0.20.2")
    if consumed is None:
        consumed = not v0 and release.since("0.27.1")
    graphs: Graphs = "uncounted"
    if eager:
        graphs = "none"
    elif counted and not v0 and release.since("0.18"):
        graphs = "inside" if consumed or release.before("0.19") else "separate"
    if v0:
        charged = (release.since("0.2.5") and release.before("0.3.1")) or (
            release.since("0.6.4") and release.before("0.6.5")
        )
    else:
        charged = release.before("0.9.1")
    terms = ("consumed", "activation") if consumed else ("weights", "non_torch", "activation")
    if v0 and release.before("0.2.5"):
        terms = ("weights", "activation")  # the peak of torch's allocator only
    return DeviceRule((*terms, "graph_estimate") if graphs == "separate" else terms, graphs, charged, pinned)
