"""VL002: the start-up never came to its end."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import between, duration
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import SharedMemoryWait, WeightsLoaded
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import PHASES, Startup

_LAST = PHASES[-2]
_PATIENCE = 600
"""Seconds vLLM waits for an engine's processes by default."""


@check("the start-up never came to its end", Severity.WARNING)
def never_ready(startup: Startup, outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a start-up whose log stops before the server is ready, while nothing says that it failed."""
    if startup.usable or outcome.failure is not None:
        return
    stop = outcome.stop
    if stop is None and context.facts is not None and context.facts.growing:
        raise Missing("the log is still being written")
    took = between(startup.records, startup.records[-1:]) if startup.records else None
    first = next((r for r in startup.records if r.time or r.wrapper_time), None)
    if first is not None:
        took = between([first], reversed(startup.records))
    waits = startup.all(SharedMemoryWait)
    explanation = []
    if waits:
        explanation.append(
            f"a process waited for another {len(waits)} times {waits[-1].seconds:g} s: harmless while compiling or"
            " loading"
        )
    if stop is not None:
        message = f"the start-up was told to stop while {startup.phase}"
        remedy = (
            "nothing, if it was meant; a health check or a systemd limit that gives up too early needs a longer"
            " patience"
        )
        remedy += f" than {duration(took)}" if took is not None else f" than it had at line {stop.line}"
    elif startup.phase == _LAST:
        message = "the engine is initialised, but the log never says that the server is ready"
        remedy = f"add what follows line {startup.last_line}, and the stream the web server writes to (uvicorn writes to stderr)"
    else:
        message = f"the log stops while {startup.phase}, and the server was not ready"
        remedy = _remedy(startup, took)
    yield Finding(
        message,
        line=stop.line if stop is not None else startup.last_line,
        expected="'Application startup complete.'" if not startup.offline else "'init engine … took …'",
        observed=f"{startup.phase}" + (f" {duration(took)} after the first line" if took is not None else ""),
        remedy=remedy,
        explanation="; ".join(explanation),
        severity=Severity.NOTE if startup.phase == _LAST else None,
    )


def _remedy(startup: Startup, took: float | None) -> str:
    """Return how long to wait, and what to look for where the process is gone."""
    # Twice what it has taken so far, at least as long as vLLM itself waits for an engine (VLLM_ENGINE_READY_TIMEOUT_S: 600 s).
    minutes = -(-int(max(2 * (took or 0), _PATIENCE)) // 60)
    weights = sum(record.gib for record in startup.all(WeightsLoaded))
    so_far = f" ({duration(took)} so far)" if took is not None else ""
    return (
        f"if it is still starting{so_far}, watch it with `vlogcheck --follow --timeout {minutes}m`: nothing follows line"
        f" {startup.last_line} yet; if the process is gone it was killed without a word: look for the kernel's (dmesg |"
        " grep -i 'out of memory'), since loading takes as much host memory as the weights"
        + (f" ({weights:.2f} GiB here)" if weights else "")
    )
