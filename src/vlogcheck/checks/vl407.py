"""VL407: the concurrency of several engines needs requests to be spread evenly."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._load import counted, per_engine
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.registry import Finding, Missing, Severity, check


@check("data-parallel engines are not loaded evenly", Severity.WARNING)
def uneven_engines(ceiling: ConcurrencyCeiling, context: Context) -> Iterator[Finding]:
    """Flag requests that wait at one engine while another is idle, and promises that no single engine can keep."""
    if ceiling.engines < 2:
        raise Missing("there is one engine")
    each = ceiling.lo / ceiling.engines
    runtime = context.startup.runtime
    if runtime.first_uneven is not None:
        busy, name, idle, other = runtime.first_uneven
        yield Finding(
            f"{counted(busy.waiting)} waited at engine {name} ({busy.running} running) while engine {other}"
            f" ran {idle.running}",
            line=busy.line,
            expected=f"about as many requests on each of {ceiling.engines} engines, {float(each):,.2f} of"
                     f" {ceiling.context:,} tokens"
            " at most",
            observed=f"{busy.running} against {idle.running} running; {runtime.uneven:,} metrics"
                     f" line{'s' if runtime.uneven != 1 else ''} like it",
            remedy="route by load, not by session or hash:"
                   f" {(busy.running + busy.waiting + idle.running + 1) // 2} each would have"
            " left none waiting" if busy.running + busy.waiting + idle.running <= 2 * each else
            f"route by load, not by session or hash, so that each engine gets its {int(each):,} before any waits",
            explanation="every engine has its own KV cache and queue: room on one is of no use to the others",
        )  # fmt: skip
    expected = context.expectation.concurrency
    if expected is not None and each < expected <= ceiling.lo:
        share = per_engine(expected, ceiling.engines)
        yield Finding(
            f"{expected:g} requests need all {ceiling.engines} engines, {share} each",
            line=ceiling.line,
            expected=f"{expected:g} requests of {ceiling.context:,} tokens at once",
            observed=f"{float(each):,.2f} on each of {ceiling.engines} engines, {float(ceiling.lo):,.2f} together",
            remedy=f"spread requests evenly: an engine that gets more than {int(each):,} lets the rest wait;"
            " with sticky sessions or"
            f" prefix-aware routing promise {int(each):,} per engine",
            explanation="the sum over engines is a ceiling only for a router that looks at load",
            severity=Severity.NOTE,
        )
