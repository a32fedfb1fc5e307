"""Gaudi's memory at the steps of a start-up, as its profiler sums it up."""

from __future__ import annotations

from vlogcheck.template import Record, Size, Template

__all__ = ["HPUMemoryStep"]


class HPUMemoryStep(Record):
    """Device memory one step took on Gaudi (HabanaMemoryProfiler; worker/hpu_worker.py, hpu_model_runner.py, 0.6.4-0.9.2)."""

    step: str
    """The step, as printed."""
    device_gib: Size
    """Device memory it took."""
    used_gib: Size
    """Device memory in use after it."""
    total_gib: Size
    """Device memory in total."""
    host_gib: Size
    """Host memory it took."""

    templates = (
        Template(
            "{step} took {device_gib} of device memory ({used_gib}/{total_gib} used) and {host_gib} of host memory ({_} used)",
            versions="",
            source="vllm-hpu-extension",
            example="Model profiling run took 612 MiB of device memory (15.57 GiB/94.62 GiB used) and 180.9 MiB of host memory"
            " (475.4 GiB/1007 GiB used)",
        ),
    )
