"""VL202: a rank holds more weights than the model's configuration gives."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Worker, Workers, worth
from vlogcheck.checks._weights import ExpectedWeights, stage_of
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import Interval, format_gib


@check("a rank holds more weights than the model's configuration gives", Severity.ERROR)
def weights_above_configured(workers: Workers, expected: ExpectedWeights, startup: Startup) -> Iterator[Finding]:
    """Flag weights above the estimate and its tolerance: quantisation not applied, another type, buffers."""
    off = [
        (seen.lo - bounds.hi, worker, seen, bounds)
        for worker in workers
        if (seen := worker.ledger["weights"].interval) is not None
        and seen.lo > (bounds := expected.bounds(stage_of(worker, startup))).hi
    ]
    if not any("weights" in worker.ledger for worker in workers):
        raise Missing("the log prints no weights")
    if not off:
        return
    _, worker, seen, bounds = max(off, key=lambda item: item[0])
    why, fix = _why(expected, worker, seen, startup)
    extra = seen.mid - (bounds.lo + bounds.hi) // 2
    yield Finding(
        f"a rank holds {format_gib(seen.mid)} of weights, {format_gib(extra)} more than the configuration gives"
        + workers.where(worker, lambda w: (i := w.ledger["weights"].interval) is not None and i.overlaps(seen)),
        line=worker.ledger["weights"].line,
        expected=f"{format_gib(bounds.lo)} to {format_gib(bounds.hi)}"
        f" ({_reason(expected) or 'the parameters, their buffers and the allocator'})",
        observed=worker.ledger["weights"].text(),
        remedy=f"{_remedy(fix)}: the KV cache of each rank grows by about {format_gib(extra)}{worth(worker, extra)}",
        explanation=why or "unexplained: no single change of type, quantisation or parallel size gives this figure",
        fix=fix,
        severity=None if expected.stated and why else Severity.WARNING,
    )


def _reason(expected: ExpectedWeights) -> str:
    return next((stage.tolerance_reason for stage in expected.stages if stage.tolerance_reason), "")


def _why(
    expected: ExpectedWeights, worker: Worker, seen: Interval, startup: Startup
) -> tuple[str, dict[str, int | float | str]]:
    """Recompute the estimate with one thing changed; return what makes it the logged figure."""
    stage = stage_of(worker, startup)
    tp = expected.options.tensor_parallel_size
    trials: list[tuple[str, dict[str, object], dict[str, int | float | str]]] = [
        ("the weights are in float32, 4 bytes each", {"dtype": "float32"}, {"dtype": "bfloat16"}),
        (
            "the quantisation was not applied: these are 16-bit weights",
            {"unquantised": True, "quantization": None},
            {"quantization": expected.stages[0].method},
        ),
    ]
    if tp > 1:
        trials.append(("the weights were not split over the tensor parallel ranks", {"tensor_parallel_size": 1}, {}))
    if expected.stages[0].method == "none":
        trials.pop(1)
    fitting = []
    for text, changed, fix in trials:
        found = expected.otherwise(**changed)
        chosen = found if stage is None or stage >= len(found) else [found[stage]]
        if any(Interval(s.low_bytes, s.high_bytes).overlaps(seen) for s in chosen):
            fitting.append((text, fix))
    if len(fitting) < 2:
        return fitting[0] if fitting else ("", {})
    return "one of: " + "; ".join(text for text, _ in fitting), fitting[0][1]


def _remedy(fix: dict[str, int | float | str]) -> str:
    if "dtype" in fix:
        return f"--dtype {fix['dtype']}"
    if "quantization" in fix:
        return f"load it quantised (--quantization {fix['quantization']}, and a checkpoint that is)"
    return "find what the log loaded beside the model (LoRA, a drafter, a vision tower), or correct the configuration"
