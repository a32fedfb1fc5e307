"""VL608: no graphs, or other graphs than asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import default_max_num_seqs, parse_release
from vlogcheck.checks._options import asked, whole
from vlogcheck.records import EagerMode, GraphCapture, GraphCaptureSkipped, GraphModeUnsupported
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("graphs are not captured, or not as asked for", Severity.NOTE)
def eager_forced(startup: Startup) -> Iterator[Finding]:
    """Flag eager mode that nobody asked for, and a graph mode that was replaced."""
    replaced = next((r for r in startup.all(GraphModeUnsupported) if r.becomes is not None), None)
    if replaced is not None:
        yield Finding(
            f"graph mode {replaced.mode} is not possible with {replaced.backend}: {replaced.becomes} is used",
            line=replaced.line,
            expected=replaced.mode,
            observed=str(replaced.becomes),
            remedy=f"cudagraph_mode {replaced.becomes} says the same without the detour of line {replaced.line}; other graphs"
            f" take other memory{_captured(startup)}",
            fix={"cudagraph_mode": str(replaced.becomes)},
        )
    if asked(startup, "enforce_eager") is True:
        return
    forced = next((r for r in startup.all(EagerMode) if r.reason is not None), None)
    skipped = next((r for r in startup.all(GraphCaptureSkipped) if r.reason == "pipeline"), None)
    record = forced or skipped
    if record is None:
        return
    why = forced.reason if forced is not None else "pipeline parallelism"
    yield Finding(
        f"no graphs are captured: not possible with {why}",
        line=record.line,
        expected="captured graphs",
        observed="eager mode",
        remedy=f"plan without graph memory (1 to 2 GB more for the KV cache) and with 10 to 20 % more latency in steps of up to"
        f" {_requests(startup)} requests; --enforce-eager says that the plan does",
        fix={"enforce_eager": 1},
    )


def _requests(startup: Startup) -> int:
    """Return the requests of the largest step: as stated, else the release's default on a card that the log does not name."""
    from vlogcheck.budget._device import parse_device

    stated = whole(asked(startup, "max_num_seqs"))
    return stated or default_max_num_seqs(parse_release(startup.version), parse_device(None))


def _captured(startup: Startup) -> str:
    """Return what the graphs that were captured took, where the log says it."""
    done = startup.last(GraphCapture)
    return f": {done.gib:.2f} GiB here (line {done.line})" if done is not None and done.gib is not None else ""
