"""VL010: a line of the ledger that cannot be read because two processes wrote at once."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import LogFacts
from vlogcheck.records import DeviceBlocks, KVCacheCapacity, KVCacheMemory, MaxConcurrency, MemoryUse, WeightsLoaded
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.template import Record

_LEDGER = (WeightsLoaded, KVCacheMemory, KVCacheCapacity, MaxConcurrency, DeviceBlocks, MemoryUse)
_LONG = 12
"""Characters a literal must have to prove that the line began as that message."""

_DEVICE = 10
"""Characters a device's name in front of the first literal may have (`GPU KV cache size: `)."""


def _beginnings() -> dict[str, tuple[type[Record], int]]:
    """Return the first literal of each wording of the ledger's lines, with the record and the latest place it stands at."""
    found: dict[str, tuple[type[Record], int]] = {}
    for kind in _LEDGER:
        for template in kind.templates:
            first = template.literals()[0][0]
            if template.source == "vllm" and len(first.strip()) >= _LONG:
                found[first.lstrip()] = (kind, 0 if template.head else _DEVICE)
    return found


def _kind(text: str, beginnings: dict[str, tuple[type[Record], int]]) -> type[Record] | None:
    """Return the record a line was to make: it begins so, it is the beginning of it, or nothing shows where it ends."""
    for start, (kind, at) in beginnings.items():
        if 0 <= text.find(start, 0, at + len(start)) <= at or (text and not at and start.startswith(text)):
            return kind
    for kind in _LEDGER:
        if any(template.lines()[0].fullmatch(text) for template in kind.templates if template.open_end):
            return kind
    return None


@check("a line of the ledger is torn apart", Severity.WARNING, per_log=True)
def ledger_line_torn(log: LogFacts) -> Iterator[Finding]:
    """Flag lines that begin as a line of the ledger and do not end as one."""
    if not log.startups:
        return
    beginnings = _beginnings()
    cut_end = (log.end, getattr(log.end, "path", None)) if log.truncated else None
    for line, text in log.unrecognised_lines:
        kind = _kind(text, beginnings)
        if kind is None or (line, getattr(line, "path", None)) == cut_end:
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
