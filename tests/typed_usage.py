"""How a deployment script uses the library. mypy checks it strictly, and a test runs it."""

from __future__ import annotations

from pathlib import Path

import vlogcheck
from vlogcheck.records import KVCacheMemory, MaxConcurrency


def promised(log: Path) -> float | None:
    """The last concurrency the log prints on a line of its own."""
    found: float | None = None
    for record in vlogcheck.parse(log):
        if isinstance(record, MaxConcurrency):
            found = record.max_concurrency
    return found


def tightest_pool(log: Path) -> int | None:
    """Bytes of the smallest KV cache memory any rank reports, at least."""
    pools = [record.gib.bytes.lo for record in vlogcheck.parse(log) if isinstance(record, KVCacheMemory)]
    return min(pools, default=None)


def gate(log: Path, model: Path | None = None) -> list[str]:
    """The reasons not to deploy; empty when the promise is kept."""
    expectation = vlogcheck.Expectation(concurrency=16, context=4096, weights="15.4GiB")
    report: vlogcheck.Report = vlogcheck.check(log, expectation, model)
    if report.ok:
        return []
    reasons = [f"{finding.code} line {finding.line}: {finding.message}" for finding in report.failing]
    return reasons or [report.inconclusive or report.verdict]


def pushed(data: bytes) -> list[vlogcheck.Record]:
    """The records of bytes that come in pieces."""
    parser = vlogcheck.Parser()
    return [*parser.feed(data), *parser.close()]
