"""VL316: the pool is smaller than the printed memory: a share went to the multimodal front end."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import Plans
from vlogcheck.checks._reserved import reserved_for_media, takes_media
from vlogcheck.context import Context
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the KV cache is smaller than the memory printed for it", Severity.NOTE)
def reserved_after_printing(plans: Plans, context: Context) -> Iterator[Finding]:
    """Flag memory that was taken for images and video after `Available KV cache memory` was printed (0.25.1 and later)."""
    if not takes_media(context):
        raise Missing("the release takes no memory after it was printed, or the model takes no media")
    for plan in plans:
        missing = reserved_for_media(context, plan)
        if missing is None or plan.available is None:
            continue
        kept = plan.available.mid - missing.mid
        yield Finding(
            f"{format_gib(missing.mid)} of the printed KV cache memory are not in the pool",
            line=plan.engine.available.line if plan.engine.available is not None else None,
            expected=f"{format_gib(plan.available.mid)} for the KV cache, as printed",
            observed=f"{format_gib(kept)} by the tokens and the configuration's bytes per token",
            remedy=f"plan with {format_gib(kept)} per rank; fewer or smaller items (--limit-mm-per-prompt) reserve less",
            explanation="from 0.25.1 memory for the multimodal front end is taken after the line is printed; no line says"
            " how much, so this is what it must have been",
        )
