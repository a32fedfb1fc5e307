"""VL201: the weights of a rank are not what was expected."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers, worth
from vlogcheck.checks._weights import ExpectedWeights
from vlogcheck.expect import Expectation
from vlogcheck.records import WeightsLoaded
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("the weights of a rank are not what was expected", Severity.ERROR)
def weights_not_as_expected(
    expectation: Expectation, workers: Workers, startup: Startup, configured: ExpectedWeights | None
) -> Iterator[Finding]:
    """Hold `--expect-weights` against every rank's weights, within the rounding of both."""
    stated = expectation.size("weights")
    if stated is None:
        raise Missing("no weights were expected: give --expect-weights")
    known = [(term.interval, worker) for worker in workers if (term := worker.ledger["weights"]).interval is not None]
    if not known:
        raise Missing("the log prints no weights")
    off = [(seen, worker) for seen, worker in known if seen is not None and not seen.overlaps(stated)]
    if not off:
        return
    from vlogcheck.checks._weight_mistakes import explanation, mistakes

    seen, worker = max(off, key=lambda pair: abs(pair[0].distance(stated)))
    found = mistakes(stated, seen, startup, configured)
    difference = seen.mid - stated.mid
    loaded = worker.rank.rank.last(WeightsLoaded)
    label = (
        f"; this release prints GiB with the label {loaded.unit_label}"
        if loaded is not None and loaded.unit_label == "GB"
        else ""
    )
    word = "more" if difference > 0 else "less"
    yield Finding(
        f"a rank holds {format_gib(seen.mid)} of weights, {format_gib(abs(difference))} {word} than expected"
        + workers.where(worker, lambda w: (i := w.ledger["weights"].interval) is not None and i.overlaps(seen)),
        line=worker.ledger["weights"].line,
        expected=f"{format_gib(stated.mid)} per rank as stated",
        observed=f"{worker.ledger['weights'].text()} per rank{label}",
        remedy=f"--expect-weights {seen.mid / 2**30:.2f}GiB is what each rank loads; the KV cache of each has"
        f" {format_gib(abs(difference))} {'less' if difference > 0 else 'more'} than planned"
        + worth(worker, abs(difference)),
        explanation=explanation(found, stated, seen, configured),
        fix={"expect_weights_bytes": seen.mid},
    )
