"""VL505: fewer ranks are in the log than were configured."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers, release_of
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.records import WeightsLoaded
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup


@check("fewer ranks are in the log than were configured", Severity.NOTE)
def ranks_missing(workers: Workers, startup: Startup) -> Iterator[Finding]:
    """Flag a log with fewer weight reports than ranks, in releases in which every rank prints one (before 0.11.1)."""
    if startup.version is None:
        raise Missing("the release is not known")
    if release_of(startup).since("0.11.1"):
        raise Missing("from 0.11.1 on only the first rank of a host prints its weights")
    tp, pp = parallel_sizes(startup)
    for engine in startup.engines:
        reports = engine.all(WeightsLoaded)
        if not reports or len(reports) >= tp * pp:
            continue
        missing = tp * pp - len(reports)
        yield Finding(
            f"{len(reports)} of {tp * pp} ranks report their weights",
            line=reports[-1].line,
            expected=f"{tp * pp} lines: tensor parallel size {tp}, pipeline parallel size {pp}",
            observed=f"{len(reports)}",
            remedy=f"add the log{'s' if missing > 1 else ''} of the other host{'s' if missing > 1 else ''} or worker processes"
            f" ({missing} ranks): the tightest card may be among them",
            explanation="ranks on other hosts print to their own logs; Ray may drop lines it takes for duplicates"
            " (RAY_DEDUP_LOGS=0)",
        )
        return
