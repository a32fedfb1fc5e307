"""VL203: a rank holds fewer weights than the model's configuration gives."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers
from vlogcheck.checks._weights import ExpectedWeights, stage_of
from vlogcheck.records import OffloadedWeights
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import Interval, format_gib


@check("a rank holds fewer weights than the model's configuration gives", Severity.ERROR)
def weights_below_configured(workers: Workers, expected: ExpectedWeights, startup: Startup) -> Iterator[Finding]:
    """Flag weights below the estimate and its tolerance: shards missing, another model, a larger split, offloading."""
    if not any("weights" in worker.ledger for worker in workers):
        raise Missing("the log prints no weights")
    if startup.last(OffloadedWeights) is not None or startup.args.get("cpu_offload_gb"):
        raise Missing("weights are offloaded to the host: the line does not count them")
    off = [
        (bounds.lo - seen.hi, worker, seen, bounds)
        for worker in workers
        if (seen := worker.ledger["weights"].interval) is not None
        and seen.hi < (bounds := expected.bounds(stage_of(worker, startup))).lo
    ]
    if not off:
        return
    _, worker, seen, bounds = max(off, key=lambda item: item[0])
    short = (bounds.lo + bounds.hi) // 2 - seen.mid
    why = _why(expected, seen, startup)
    yield Finding(
        f"a rank holds {format_gib(seen.mid)} of weights, {format_gib(short)} less than the configuration gives"
        + workers.where(worker, lambda w: (i := w.ledger["weights"].interval) is not None and i.overlaps(seen)),
        line=worker.ledger["weights"].line,
        expected=f"{format_gib(bounds.lo)} to {format_gib(bounds.hi)} by the configuration",
        observed=worker.ledger["weights"].text(),
        remedy="compare the configuration with the one the server loaded, and the shards with the checkpoint's index:"
        f" {format_gib(short)} per rank are not there",
        explanation=why or "shards of the checkpoint are missing, or the configuration is another model's",
        severity=None if expected.stated and why else Severity.WARNING,
    )


def _why(expected: ExpectedWeights, seen: Interval, startup: Startup) -> str:
    tp = expected.options.tensor_parallel_size
    trials: list[tuple[str, dict[str, object]]] = [
        (f"the weights are split over {tp * factor} ranks, not {tp}", {"tensor_parallel_size": tp * factor})
        for factor in (2, 4, 8)
    ]
    trials.append(("the weights are in 8 bits (fp8)", {"quantization": "fp8"}))
    for text, changed in trials:
        if any(Interval(s.low_bytes, s.high_bytes).overlaps(seen) for s in expected.otherwise(**changed)):
            return text
    return ""
