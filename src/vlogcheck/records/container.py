"""What the kernel says of a container's memory when its limit was reached."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["ContainerMemory"]


class ContainerMemory(Record):
    """A container's use and limit, printed by the kernel before it ends one of its processes (mm/memcontrol.c)."""

    used_gib: GiB
    """In use."""
    limit_gib: GiB
    """The limit."""

    templates = (
        Template(
            "memory: usage {used_gib:KiB}kB, limit {limit_gib:KiB}kB, failcnt {_}",
            versions="",
            source="kernel",
            embedded=True,
            example="memory: usage 4194304kB, limit 4194304kB, failcnt 945",
        ),
    )
