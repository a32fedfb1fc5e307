"""VL006: capacity lines of one process contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vlogcheck._clock import elapsed
from vlogcheck.budget.releases import parse_release
from vlogcheck.records import KVCacheCapacity, KVCacheMemory, MaxConcurrency
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.template import Record

_FIGURES: tuple[tuple[type[Record], str, Callable[[Any], Any], Callable[[Any], str]], ...] = (
    (KVCacheCapacity, "KV cache size", lambda r: r.tokens, lambda v: f"{v:,} tokens"),
    (
        MaxConcurrency,
        "maximum concurrency",
        lambda r: (r.max_model_len, r.max_concurrency),
        lambda v: f"{v[1]}x at {v[0]:,}",
    ),
    (KVCacheMemory, "available KV cache memory", lambda r: r.gib, lambda v: f"{v} GiB"),
)

_MOMENT = 2.0  # seconds


@check("capacity lines of one process contradict each other", Severity.WARNING)
def contradictory_capacity(startup: Startup) -> Iterator[Finding]:
    """Flag one process of one start-up that prints two values of one figure."""
    per_rank = startup.version is not None and parse_release(startup.version).before("0.11.1")
    config = startup.config
    ranks = 1
    if config is not None:
        ranks = (config.tensor_parallel_size or 1) * (config.pipeline_parallel_size or 1)
    for kind, name, value_of, show in _FIGURES:
        lines: dict[Any, list[Any]] = {}
        for record in startup.all(kind):
            lines.setdefault((record.process, record.pid, record.container), []).append(record)
        for found in lines.values():
            values = [value_of(record) for record in found]
            if len(set(values)) < 2:
                continue
            # One line per rank, all from the engine's process, until 0.11.0; old releases tag no process at all.
            expected = (per_rank or found[0].process is None) and len(found) <= ranks
            if startup.version is None and config is None:  # nothing says how many ranks: they print at one moment
                took = elapsed(found[0].time, found[-1].time)
                expected = took is not None and took <= _MOMENT
            smallest = min(found, key=value_of)
            yield Finding(
                f"the ranks differ in {name}: the smallest counts"
                if expected
                else f"one process prints {len(set(values))} values of {name}",
                line=found[-1].line,
                expected=show(values[0]),
                observed=", ".join(show(v) for v in dict.fromkeys(values)),
                remedy=f"count on the smallest, {show(value_of(smallest))} (line {smallest.line})"
                + ("" if expected else "; if two servers write to this file, give each a log of its own"),
                severity=Severity.NOTE if expected else None,
            )
