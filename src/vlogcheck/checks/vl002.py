"""VL002: the start-up never came to its end."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import between, duration
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import SharedMemoryWait
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import PHASES, Startup

_LAST = PHASES[-2]


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
        if took is not None:
            remedy += f" than {duration(took)}"
    elif startup.phase == _LAST:
        message = "the engine is initialised, but the log never says that the server is ready"
        remedy = "add the rest of the log, and the stream the web server writes to (uvicorn writes to stderr)"
    else:
        message = f"the log stops while {startup.phase}, and the server was not ready"
        remedy = (
            "wait if it is still starting; if the process is gone it was killed without a word: look for the kernel's"
        )
        remedy += " (dmesg | grep -i 'out of memory'), since loading takes as much host memory as the weights"
    yield Finding(
        message,
        line=stop.line if stop is not None else startup.last_line,
        expected="'Application startup complete.'" if not startup.offline else "'init engine … took …'",
        observed=f"{startup.phase}" + (f" {duration(took)} after the first line" if took is not None else ""),
        remedy=remedy,
        explanation="; ".join(explanation),
        severity=Severity.NOTE if startup.phase == _LAST else None,
    )
