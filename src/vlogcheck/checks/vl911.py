"""VL911: the host's memory ran out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vlogcheck._causes import signalled
from vlogcheck.checks._failing import when_text
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.context import Context
from vlogcheck.failures import Outcome
from vlogcheck.records import (
    CheckpointSize,
    ContainerMemory,
    Crashed,
    EngineInitFailed,
    HostAllocationFailed,
    NoSpaceLeft,
    OffloadTensors,
    OOMKilled,
    ProcessKilled,
    WeightsLoaded,
)
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.units import GIB

_NEED = {
    "loading weights": "loading takes about as much host memory as the weights",
    "capturing graphs": "graph capture takes 4 to 8 GB of host memory; --enforce-eager does without (and saves 1 to"
    " 2 GB of device"
    " memory, at 10 to 20 % of latency), and so does a lower --gpu-memory-utilization such as 0.80",
}
_FLOOR, _CAPTURE, _SYSTEM = 32, 8, 4
"""GB: the least a host should have, what graph capture takes at most, what the system takes at most."""
_TINY = 1.0
"""GiB of weights below which the host's memory is not filled by the model."""


@check("the host's memory ran out, or the process was killed", Severity.ERROR)
def host_memory_exhausted(outcome: Outcome, context: Context) -> Iterator[Finding]:
    """Flag a process ended by the kernel, the container or a failed host allocation."""
    failure = outcome.failure
    if failure is None or failure.kind != "host":
        return
    record = failure.record
    when = when_text(failure)
    need = _NEED.get(failure.phase, "")
    weights = sum(r.gib for r in context.startup.all(WeightsLoaded))
    small = (
        0 < (_weights(context) or 0) < _TINY
    )  # such a model fills no host, and none of the rules of thumb is about it
    if small:
        need = f"the weights of this start-up are {_weights(context):.2f} GiB: the model itself fills no host"
    elif weights and failure.phase != "serving":
        need += f"{'; ' if need else ''}the weights of this start-up are {weights:.2f} GiB"
    host = _host(context)
    if isinstance(record, NoSpaceLeft):
        if record.shared_memory:
            message, observed = f"the shared-memory folder is full, {when}", record.file or "/dev/shm is full"
            remedy = (
                f"docker run --ipc=host or --shm-size {_shared(context)}g; in Kubernetes mount an emptyDir with medium: Memory"
                " on /dev/shm"
            )
        else:
            message, observed = f"a file system is full, {when}", record.file or "no space left on a device"
            remedy = (
                f"free disk space where the model{_size(context)} and caches are stored (HF_HOME, VLLM_CACHE_ROOT) and look"
                f" at line {record.line} for the file: no matter of device memory"
            )
        yield Finding(message, line=record.line, expected="room for the file", observed=observed, remedy=remedy)
        return
    if isinstance(record, Crashed):
        observed = "a bus error: memory that was mapped could not be had, most often /dev/shm of a container"
        remedy = f"docker run --ipc=host or --shm-size {_shared(context)}g"
        message = f"a process crashed {when}: probably too little shared memory"
    elif isinstance(record, ProcessKilled):
        observed = "killed by signal 9 (exit code 137), by whom the log does not say"
        remedy = f"look for the kernel's word (dmesg | grep -i 'out of memory', the container's OOMKilled); {host}"
        suspect = "perhaps by the host's memory" if failure.after_ready or small else "nearly always the host's memory"
        message = f"the process was killed {when}: {suspect}"
    elif isinstance(record, EngineInitFailed) and (ended := signalled(record)) is not None:
        name, signal = ended
        observed = f"{name} ended by signal {signal} (exit code {-signal}), and the log does not say why"
        message = f"the process was killed {when}: {'perhaps' if small else 'nearly always'} the host's memory"
        remedy = f"look for the kernel's word (dmesg | grep -i 'out of memory', the container's OOMKilled); {host}"
        if signal != 9:
            message = f"a process crashed {when}: probably too little shared memory"
            remedy = f"docker run --ipc=host or --shm-size {_shared(context)}g"
    elif isinstance(record, OOMKilled):
        size = f", which held {record.resident_gib:.2f} GiB" if record.resident_gib is not None else ""
        observed = f"the kernel or the container ended {record.name or 'a process'}{size}"
        remedy = host
        if (container := context.startup.last(ContainerMemory)) is not None:
            observed += f"; the container used {container.used_gib:.2f} GiB of the {container.limit_gib:.2f} GiB it may"
            remedy = f"raise the container's limit of {container.limit_gib:.2f} GiB: {host}"
        message = f"the host's memory ran out {when}"
    else:
        assert isinstance(record, HostAllocationFailed)
        sizes = [
            r.tried_gib for r in context.startup.all(HostAllocationFailed) if r.line >= record.line and r.tried_gib
        ]
        tried = f" of {sizes[0]:.2f} GiB" if sizes else ""
        observed = f"an allocation{tried} in {'page-locked ' if record.pinned else ''}host memory failed"
        remedy = (
            f"docker run --ulimit memlock=-1 (ulimit -l says what may be locked); then {host}"
            if record.pinned
            else host
        )
        message = f"the host's memory ran out {when}"
        if record.pinned and (pool := context.startup.last(OffloadTensors)) is not None and pool.line < record.line:
            need = f"line {pool.line} begins the pool of KV offloading, which is page-locked: a smaller pool needs less"
    yield Finding(
        message, line=record.line, expected="host memory for the server's processes", observed=observed, remedy=remedy,
        explanation=need,
        # A server that served may as well have been killed by hand; one that was starting hardly ever is.
        severity=Severity.WARNING if isinstance(record, ProcessKilled) and failure.after_ready else None,
    )  # fmt: skip


def _weights(context: Context) -> float | None:
    """Return the GiB that loading holds in host memory: the weights of all ranks, else the checkpoint's files."""
    loaded = sum(record.gib for record in context.startup.all(WeightsLoaded))
    files = context.startup.last(CheckpointSize)
    return loaded or (files.checkpoint_gib if files is not None else None)


def _size(context: Context) -> str:
    weights = _weights(context)
    return f" ({weights:.2f} GiB)" if weights else ""


def _shared(context: Context) -> int:
    """Return GB of shared memory: 16 are ample for the ranks of one host, 4 for each where there are more than four."""
    tp, pp = parallel_sizes(context.startup)
    return max(16, int(4 * tp * pp))


def _host(context: Context) -> str:
    """Return the host memory that holds the weights, graph capture and the system."""
    weights, config = _weights(context), context.startup.config
    capture = 0 if config is not None and config.enforce_eager else _CAPTURE
    tp, pp = parallel_sizes(context.startup)
    if not weights:
        each = f" for the {tp * pp} rank{'s' if tp * pp > 1 else ''}"
        return (
            f"give the host or the container at least {_FLOOR} GB{each}: the files of the model and {capture + _SYSTEM} GB for"
            " graph capture and the system have to fit (16 GB hosts fail, 64 GB is comfortable for a 14B model of 8 bits)"
        )
    if weights < _TINY:
        graphs = "graph capture and " if capture else ""
        return (
            f"{weights:.2f} GiB of weights and {capture + _SYSTEM} GB for {graphs}the system need no large host: look"
            " who else uses its memory, and at the container's limit"
        )
    needed = math.ceil(weights * GIB / 1e9) + capture + _SYSTEM
    graphs = f" + {capture} GB for graph capture" if capture else ""
    floor = f" ({_FLOOR} GB is the floor in any case)" if needed < _FLOOR else ""
    return (
        f"give the host or the container at least {max(needed, _FLOOR)} GB: {weights:.2f} GiB of weights{graphs} +"
        f" {_SYSTEM} GB for the system are {needed} GB{floor}"
    )
