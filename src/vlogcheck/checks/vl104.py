"""VL104: the utilization is 1.0."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import default_utilization
from vlogcheck.checks._memory import Workers, gib, release_of, stated_utilization
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("the utilization is 1.0", Severity.ERROR)
def utilization_one(workers: Workers | None, startup: Startup) -> Iterator[Finding]:
    """Flag a `--gpu-memory-utilization` that leaves nothing of the card."""
    term = stated_utilization(startup, workers)
    if term.lo is None or not term.exact or term.lo < 1:
        return
    default = default_utilization(release_of(startup))
    total = workers[0].ledger["total"].interval if workers else None
    room = f" ({gib((1 - default) * total.mid)} of this card)" if total is not None else ""
    yield Finding(
        "--gpu-memory-utilization 1.0 leaves nothing of the card for anything that the profile run did not see",
        line=term.line,
        expected=f"{default:g}, the default of this release",
        observed="1.0",
        remedy=f"--gpu-memory-utilization {default:g}: contexts, communication buffers, fragments and run-time peaks"
        f" need the other {100 - default * 100:.2g} %{room}",
        fix={"gpu_memory_utilization": default},
    )
