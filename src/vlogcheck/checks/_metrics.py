"""Which engine of a metrics page is which engine of the log."""

from __future__ import annotations

from vlogcheck.context import Context, provide
from vlogcheck.metrics_page import EngineMetrics, MetricsPage
from vlogcheck.observed import EngineLedger
from vlogcheck.registry import Missing


def _page(context: Context) -> MetricsPage:
    raise Missing("no metrics page: give --metrics FILE")


provide(MetricsPage, _page)


def engine_pairs(context: Context, page: MetricsPage) -> list[tuple[EngineLedger, EngineMetrics]]:
    """Return the engines of both by index; an only engine in the log stands for all (others may print nothing)."""
    engines = {engine.engine.index: engine for engine in context.observation.engines}
    if not engines:
        raise Missing("the log shows no engine")
    only = next(iter(engines.values())) if len(engines) == 1 else None
    pairs = []
    for metrics in page.engines:
        engine = engines.get(metrics.engine, only)
        if engine is not None:
            pairs.append((engine, metrics))
    return pairs
