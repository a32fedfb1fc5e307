"""VL913: ranks did not hear from each other."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import duration
from vlogcheck.checks._failing import ranks_text, when_text
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.failures import Outcome
from vlogcheck.records import CollectiveTimeout, CommunicationError, RendezvousTimeout
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.template import Record

_SHOWN = 16
"""Ranks of a server that are named one by one."""


@check("ranks did not hear from each other in time", Severity.ERROR)
def communication_failed(outcome: Outcome, startup: Startup) -> Iterator[Finding]:
    """Flag time-outs and errors of NCCL, HCCL and Gloo where nothing else explains the failure."""
    failure = outcome.failure
    if failure is None or failure.kind != "communication":
        return
    record = failure.record
    expected = "every rank answers"
    if isinstance(record, CollectiveTimeout):
        library = record.library.upper()
        waited = f" for {duration(record.waited_milliseconds / 1000)}" if record.waited_milliseconds else ""
        message = f"{library}: a rank waited in vain{waited}"
        observed = f"{record.operation or 'a collective'} did not complete"
        if record.timeout_milliseconds:
            expected = f"every rank answers within {duration(record.timeout_milliseconds / 1000)}"
    elif isinstance(record, RendezvousTimeout):
        message = "the ranks did not all come together"
        if record.joined is not None and record.expected is not None:
            expected = f"{record.expected} ranks"
            observed = f"{record.joined} of {record.expected} joined"
        else:
            observed = "the store did not answer"
    elif isinstance(record, CommunicationError):
        message, observed = f"{record.library.upper()} reports an error", record.error[:200]
    else:
        message, observed = "another rank closed its connection", "it ended before this one"
    yield Finding(
        f"{message} {when_text(failure)}{ranks_text(failure)}: this is no lack of memory",
        line=record.line,
        expected=expected,
        observed=observed,
        remedy=f"find the rank that is missing{_missing(startup, record)}, and why, in its own output{_from(record)}: it died"
        " (host memory, VL911), hangs, or runs other code; then the network (NCCL_DEBUG=INFO, NCCL_SOCKET_IFNAME, a firewall,"
        " --shm-size for ranks on one host)",
        explanation="changing --gpu-memory-utilization cannot help",
    )


def _missing(startup: Startup, record: Record) -> str:
    """Return which of the ranks did not complain, or how many did not come."""
    if isinstance(record, RendezvousTimeout) and record.joined is not None and record.expected is not None:
        return f" ({record.expected - record.joined} of {record.expected})"
    tp, pp = parallel_sizes(startup)
    waited = {r.rank for r in startup.all(CollectiveTimeout) if r.rank is not None}
    others = [str(rank) for rank in range(tp * pp) if rank not in waited]
    if not waited or not others or tp * pp > _SHOWN:
        return f" among {tp * pp}" if tp * pp > 1 else ""
    return f" (rank {' or '.join(others)} of {tp * pp})"


def _from(record: Record) -> str:
    waited = record.waited_milliseconds if isinstance(record, CollectiveTimeout) else None
    return (
        f" from {duration(waited / 1000)} before line {record.line} on"
        if waited
        else f" up to line {record.line}'s time"
    )
