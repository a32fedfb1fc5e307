"""VL204: a rank reports next to no weights."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.records import CheckpointSize, OffloadedWeights
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("a rank reports next to no weights", Severity.WARNING)
def weights_missing(workers: DeviceWorkers, startup: Startup, checkpoint: CheckpointSize | None) -> Iterator[Finding]:
    """Flag weights of zero, and ranks that together hold less than a quarter of the checkpoint."""
    known = [(seen, worker) for worker in workers if (seen := worker.ledger["weights"].interval) is not None]
    if not known:
        raise Missing("the log prints no weights")
    if startup.last(OffloadedWeights) is not None or startup.args.get("cpu_offload_gb"):
        raise Missing("weights are offloaded to the host: the line does not count them")
    tp, pp = parallel_sizes(startup)
    seen, worker = min(known, key=lambda pair: pair[0].mid)
    on_disk = checkpoint.checkpoint_gib.bytes if checkpoint is not None else None
    # An fp32 checkpoint loaded in 8 bits keeps a quarter of its size; less cannot hold the model.
    if seen.lo > 0 and (on_disk is None or max(s.hi for s, _ in known) * tp * pp * 4 >= on_disk.lo):
        return
    due = f"the checkpoint's {format_gib(on_disk.mid)} over {tp * pp} ranks" if on_disk else "the model's weights"
    ranks = tp * pp
    cards = f"its {ranks} cards" if ranks > 1 else "its 1 card"
    gap = on_disk.mid // (tp * pp) - seen.mid if on_disk else None
    yield Finding(
        f"a rank reports {format_gib(seen.mid)} of weights{workers.where(worker, lambda w: 'weights' in w.ledger)}",
        line=worker.ledger["weights"].line,
        expected=due,
        observed=worker.ledger["weights"].text(),
        remedy=f"the model is not on the device that was measured: pin the server to {cards}"
        f" (CUDA_VISIBLE_DEVICES={','.join(map(str, range(min(ranks, 8))))}) or upgrade (before 0.7.3 another device than the"
        " model's could be measured)."
        + (
            f" Until then lower the KV cache by {format_gib(gap)} per rank"
            if gap
            else " The KV cache is too large by them"
        ),
        explanation="the KV cache was sized as if the weights took nothing: out-of-memory errors will follow",
    )
