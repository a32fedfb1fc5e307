"""VL913: ranks did not hear from each other."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import duration
from vlogcheck.checks._failing import ranks_text, when_text
from vlogcheck.failures import Outcome
from vlogcheck.records import CollectiveTimeout, CommunicationError, RendezvousTimeout
from vlogcheck.registry import Finding, Severity, check


@check("ranks did not hear from each other in time", Severity.ERROR)
def communication_failed(outcome: Outcome) -> Iterator[Finding]:
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
        remedy="find the rank that is missing, and why, in its own output: it died (host memory, VL911), hangs, or"
        " runs other"
        " code; then the network (NCCL_DEBUG=INFO, NCCL_SOCKET_IFNAME, a firewall, --shm-size for ranks on one host)",
        explanation="changing --gpu-memory-utilization cannot help",
    )
