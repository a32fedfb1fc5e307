"""VL010: a line of the ledger that cannot be read because two processes wrote at once."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import LogFacts
from vlogcheck.records import DeviceBlocks, KVCacheCapacity, KVCacheMemory, MaxConcurrency, MemoryUse, WeightsLoaded
from vlogcheck.registry import Finding, Severity, check

_LEDGER = (WeightsLoaded, KVCacheMemory, KVCacheCapacity, MaxConcurrency, DeviceBlocks, MemoryUse)
_LONG = 12
"""Characters a literal must have to prove that the line began as that message."""


@check("a line of the ledger is torn apart", Severity.WARNING, per_log=True)
def ledger_line_torn(log: LogFacts) -> Iterator[Finding]:
    """Flag lines that begin as a line of the ledger and do not end as one."""
    if not log.startups:
        return
    beginnings = {
        literals[0].lstrip(): kind
        for kind in _LEDGER
        for template in kind.templates
        if template.source == "vllm" and (literals := template.literals()[0]) and len(literals[0].lstrip()) >= _LONG
    }
    cut_end = log.lines if log.truncated else None
    for line, text in log.unrecognised_lines:
        kind = next((k for start, k in beginnings.items() if text.startswith(start)), None)
        if kind is None or line == cut_end:
            continue
        yield Finding(
            f"a {kind.__name__} line cannot be read",
            line=line,
            expected=f"such as '{kind.templates[0].example[:100]}'",
            observed=text[:120],
            remedy="its figure is missing from the ledger: let each process write to a stream of its own, or look"
            " at line"
            f" {line} and the ones around it",
        )
