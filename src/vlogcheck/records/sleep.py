"""Sleep mode: device memory given back and taken again."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["SleepFreed", "SleepTime"]


class SleepFreed(Record):
    """Sleep mode released device memory; later KV figures stay valid after waking (v1/worker/gpu_worker.py)."""

    freed_gib: GiB
    """Memory released."""
    used_gib: GiB | None = None
    """Memory still in use."""
    backed_up_gib: GiB | None = None
    """Part of it that was copied to the host."""

    templates = (
        Template(
            "Sleep mode freed {freed_gib} GiB memory, {used_gib} GiB memory is still in use.",
            versions=">=0.7.0",
            example="Sleep mode freed 68.42 GiB memory, 2.11 GiB memory is still in use.",
        ),
        Template(
            "CuMemAllocator: sleep freed {freed_gib} GiB memory in total, of which {backed_up_gib} GiB is backed up in"
            " CPU and the rest {_} GiB is discarded directly.",
            versions=">=0.11.0",
            example="CuMemAllocator: sleep freed 68.42 GiB memory in total, of which 14.99 GiB is backed up in CPU and"
            " the rest 53.43 GiB is discarded directly.",
        ),
        Template(
            "XpuMemAllocator: sleep freed {freed_gib} GiB memory in total, of which {backed_up_gib} GiB is backed up"
            " in CPU and the rest {_} GiB is discarded directly.",
            versions=">=0.23.0",
            example="XpuMemAllocator: sleep freed 68.42 GiB memory in total, of which 14.99 GiB is backed up in CPU"
            " and the rest 53.43 GiB is discarded directly.",
        ),
        Template(
            "CuMemAllocator: discarded {freed_gib} GiB for tags {_}.",
            versions=">=0.28.0",
            example="CuMemAllocator: discarded 53.43 GiB for tags ('kv_cache',).",
        ),
        Template(
            "XpuMemAllocator: discarded {freed_gib} GiB for tags {_}.",
            versions=">=0.28.0",
            example="XpuMemAllocator: discarded 53.43 GiB for tags ('kv_cache',).",
        ),
    )


class SleepTime(Record):
    """The engine went to sleep or woke up (v1/executor/abstract.py)."""

    seconds: float
    """Time it took."""
    state: Word
    """`asleep` or `awake`."""

    templates = (
        Template(
            "It took {seconds} seconds to fall asleep.",
            versions=">=0.7.3",
            example="It took 3.214000 seconds to fall asleep.",
            values={"state": "asleep"},
        ),
        Template(
            "It took {seconds} seconds to wake up[[ tags {_}]].",
            versions=">=0.7.3",
            example="It took 0.812000 seconds to wake up tags {'kv_cache', 'weights'}.",
            values={"state": "awake"},
        ),
        Template(
            "It took {seconds} seconds to discard tags {_}.",
            versions=">=0.31.0",
            example="It took 0.204000 seconds to discard tags {'kv_cache'}.",
            values={"state": "asleep"},
        ),
    )
