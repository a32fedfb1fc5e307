"""What a block takes by the blocks of host memory the V0 engine sets aside: the swap space ÷ their number.

Releases before 0.6.4 print no memory figure but weights. They print `# GPU blocks: N, # CPU blocks: M`, and M is the swap space
(`--swap-space`, 4 GiB for each rank by default) over the bytes of a block, rounded down (`determine_num_available_blocks` of
vllm/worker/worker.py, 0.2.0 to 0.10.2; `profile_num_available_blocks` before 0.4.1).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import parse_release
from vlogcheck.records import DeviceBlocks
from vlogcheck.units import GIB

if TYPE_CHECKING:
    from vlogcheck.startup import Engine, Startup

__all__ = ["HostBlocks", "host_blocks"]

_SWAP_GIB = Fraction(4)
"""`--swap-space` where it is not given."""


class HostBlocks(NamedTuple):
    """Bytes of one block of the rank whose blocks are largest."""

    lo: Fraction
    """Bytes the block is larger than."""
    hi: Fraction
    """Bytes it is at most."""
    blocks: int
    """Blocks on the device, which all ranks have alike."""
    status: Literal["derived", "assumed"]
    """Whether the log states the swap space."""
    line: int


def host_blocks(startup: Startup, engine: Engine) -> HostBlocks | None:
    """Return what a block takes by the printed blocks of host memory; None where the log does not say it.

    Nothing is said of start-ups that swap nothing, nor of drafters: their blocks come out of the device's memory only.
    """
    printed = [r for r in engine.all(DeviceBlocks) if r.cpu_blocks and r.device_blocks and r.device.lower() != "cpu"]
    config = engine.config or startup.config
    v1 = (config is not None and config.engine_generation == "V1") or parse_release(startup.version).since("0.11.0")
    if not printed or v1 or startup.args.get("speculative_model") or startup.args.get("speculative_config"):
        return None
    stated = startup.args.get("swap_space")
    swap = _SWAP_GIB
    if stated is not None:
        if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 < stated < 1 << 20:
            return None
        swap = Fraction(str(stated))
    least = min(printed, key=lambda r: r.cpu_blocks or 0)
    assert least.cpu_blocks
    size, blocks = swap * GIB, min(r.device_blocks for r in printed)
    status: Literal["derived", "assumed"] = "assumed" if stated is None else "derived"
    return HostBlocks(size / (least.cpu_blocks + 1), size / least.cpu_blocks, blocks, status, least.line)
