"""VL103: the utilization is above the default of its release."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.budget.releases import default_utilization
from vlogcheck.checks._memory import Workers, backend, gib, release_of, stated_utilization, worth
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("the utilization is above the default of its release", Severity.WARNING)
def utilization_above_default(workers: Workers | None, startup: Startup) -> Iterator[Finding]:
    """Flag a stated `--gpu-memory-utilization` above 0.90 (0.92 from 0.20.2)."""
    term = stated_utilization(startup, workers)
    assert term.lo is not None
    assert term.hi is not None
    default = Fraction(str(default_utilization(release_of(startup))))
    if term.lo <= default or term.lo >= 1:  # 1.0 is VL104
        return
    share = Fraction(term.lo + term.hi) / 2
    worker = workers[0] if workers else None
    total = worker.ledger["total"].interval if worker else None
    margin = cost = ""
    if worker is not None and total is not None:
        margin = f": {gib((1 - share) * total.mid)} of {gib(total.mid)} remain for run-time peaks"
        size = (share - default) * total.mid
        cost = f"; it costs {gib(size)} of KV cache per rank{worth(worker, size)}"
    what = "host's memory" if backend(startup) == "cpu" else "card"
    yield Finding(
        f"--gpu-memory-utilization {float(share):g} leaves {float(1 - share) * 100:.3g} % of the {what}{margin}",
        line=term.line,
        expected=f"at most {float(default):g}, the default of vLLM {startup.version or 'of this release'}",
        observed=f"{float(share):g}",
        remedy=f"--gpu-memory-utilization {float(default):g}{cost}. A clean start proves nothing here: a long"
        " prompt or a large batch takes the margin later and the process ends without warning. For more KV cache take"
        " more cards or a smaller type, not a thinner margin",
        fix={"gpu_memory_utilization": float(default)},
    )
