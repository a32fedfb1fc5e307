"""VL501: the ranks of a stage hold different amounts of weights."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers
from vlogcheck.checks._ranks import stages
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib


@check("the ranks of one pipeline stage hold different amounts of weights", Severity.WARNING)
def uneven_weights(workers: Workers, startup: Startup) -> Iterator[Finding]:
    """Flag tensor parallel ranks whose weights differ beyond the printed rounding."""
    groups = stages(workers, startup, "weights")
    if not groups:
        raise Missing("no two ranks of one stage print their weights")
    for ranks in groups:
        least = min(ranks, key=lambda pair: pair[1].hi)
        most = max(ranks, key=lambda pair: pair[1].lo)
        if most[1].lo <= least[1].hi:
            continue
        spread = most[1].mid - least[1].mid
        yield Finding(
            f"{most[0].name} holds {format_gib(spread)} more weights than {least[0].name}",
            line=most[0].ledger["weights"].line,
            expected="the same share on every tensor parallel rank (stages of a pipeline may differ)",
            observed=", ".join(f"{worker.name} {format_gib(seen.mid)}" for worker, seen in ranks),
            remedy="check that all ranks load the same checkpoint with the same parallel sizes (a shard that is missing or"
            f" old on one host, experts that cannot be divided): {format_gib(spread)} of KV cache are lost on every rank,"
            " since the fullest card sets the size for all",
            explanation="parallel configuration or loading; another process on the card does not change this figure",
        )
        return
