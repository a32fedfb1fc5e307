"""VL912: a process of the server died without saying why."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._causes import signalled
from vlogcheck.checks._failing import when_text
from vlogcheck.failures import Outcome
from vlogcheck.records import Crashed, EngineInitFailed, RayWorkerDied, ServerProcessDied, WorkerDied
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.template import Record


@check("a process of the server died without a cause in the log", Severity.ERROR)
def process_died(outcome: Outcome) -> Iterator[Finding]:
    """Flag a worker, engine or front end that is gone while nothing says why."""
    failure = outcome.failure
    if failure is None or failure.kind != "died":
        return
    record = failure.record
    code = getattr(record, "exit_code", None)
    name = getattr(record, "worker", None) or getattr(record, "engine", None) or getattr(record, "name", None)
    if isinstance(record, Crashed) and record.fault == "gpu":
        yield Finding(
            f"a process crashed {when_text(failure)}: a kernel faulted on the GPU, which is no lack of memory",
            line=record.line,
            expected="kernels that keep to their memory",
            observed="the driver ended the process of a kernel that faulted",
            remedy="no term of the memory ledger is at fault: another attention back end (VLLM_ATTENTION_BACKEND or"
            " --attention-backend), --enforce-eager, or another build of vLLM, its kernels or the driver for this card; the"
            f" driver's own words are in dmesg -T {_when(record)}",
        )
        return
    if isinstance(record, RayWorkerDied):
        name = f"process {record.worker_pid}" if record.worker_pid is not None else None
    if isinstance(record, Crashed):
        what, observed = "a process crashed", f"{record.fault} fault"
    elif isinstance(record, (WorkerDied, RayWorkerDied, ServerProcessDied)):
        what, observed = (
            "a front-end process died" if isinstance(record, ServerProcessDied) else "a worker died",
            f"{name or 'a process'} ended",
        )
    else:
        if isinstance(record, EngineInitFailed) and (ended := signalled(record)) is not None:
            name, code = ended[0], -ended[1]
        what, observed = "the engine died", f"{name or 'the engine'} ended"
    if code is not None:
        observed += f" with exit code {code}"
    killed = code == -9
    yield Finding(
        f"{what} {when_text(failure)}, and nothing in the log says why",
        line=record.line,
        expected="a process that ends says why",
        observed=observed + ("" if not killed else ": killed from outside by signal 9"),
        remedy=f"look outside this log {_when(record)}: dmesg -T (kernel: out of memory, NVRM: Xid), the container's state"
        " (OOMKilled), the output of the other ranks; with host memory below 32 GB, suspect that first",
        explanation=f"metrics just before (line {failure.sample.line}): {failure.sample.running} requests ran, KV cache"
        f" {failure.sample.usage:g} % full"
        if failure.sample is not None
        else "",
    )


def _when(record: Record) -> str:
    """Return the moment to look at, as the log prints it."""
    time = record.time or record.wrapper_time
    return f"at {time} (line {record.line})" if time else f"for the time of line {record.line}"
