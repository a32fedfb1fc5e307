"""What changed when: the release a rule holds from, and the defaults of each release, in one table.

"0.20.2" means "seen first in 0.20.2": the change landed between it and the release before it that was read. A nightly
(``0.11.2.dev690+g67475a6e8``) follows the rules of the release it leads to; a version without meaning (``0.1.dev1``)
or none at
all follows the newest rules, and the plan says that it was assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.version import Version

if TYPE_CHECKING:
    from vlogcheck.budget._device import Device

__all__ = [
    "NEWEST",
    "Release",
    "default_batched_tokens",
    "default_max_num_seqs",
    "default_utilization",
    "parse_release",
]

#: The newest release whose rules are known.
NEWEST = "0.33.0"

#: Older than this no vLLM release has the rules below; "0.1.dev1" is what an untagged build calls itself.
_OLDEST = Version("0.2.0")


@lru_cache(maxsize=256)
def _version(text: str) -> Version:
    return Version(text)


@dataclass(frozen=True)
class Release:
    """A vLLM release whose rules are followed.

    Attributes:
        text: the version as it was given, or the newest known one.
        version: what is compared; a nightly counts as the release it leads to.
        assumption: why another version than the given one is followed, ``None`` when it is the given one's.

    """

    text: str
    version: Version
    assumption: str | None = None

    def since(self, version: str) -> bool:
        """Whether this release is ``version`` or newer."""
        return self.version >= _version(version)

    def before(self, version: str) -> bool:
        """Whether this release is older than ``version``."""
        return self.version < _version(version)


def parse_release(text: str | None) -> Release:
    """Return the release whose rules apply to version ``text``; never raises."""
    newest = Version(NEWEST)
    if text is None or not text.strip():
        return Release(NEWEST, newest, f"release unknown: rules of {NEWEST} assumed")
    shown = text.strip()
    try:
        version = Version(shown.removeprefix("v")) if len(shown) < 100 else None
    except ValueError:  # InvalidVersion is one
        version = None
    if version is None:
        return Release(shown[:100], newest, f"release {shown[:40]!r} is no version: rules of {NEWEST} assumed")
    base = Version(version.base_version)
    if base < _OLDEST:
        return Release(shown, newest, f"release {shown} is an untagged build: rules of {NEWEST} assumed")
    if version.post is not None:
        base = Version(f"{version.base_version}.post{version.post}")
    if base > newest:
        return Release(shown, base, f"release {shown} is newer than {NEWEST}: rules of {NEWEST} assumed")
    if version.is_devrelease:
        return Release(shown, base, f"release {shown} is a nightly: rules of {base} assumed")
    return Release(shown, base)


def default_utilization(release: Release) -> float:
    """``--gpu-memory-utilization`` when it is not given (``CacheConfig``, 0.92 from 0.20.2)."""
    return 0.92 if release.since("0.20.2") else 0.9


def default_max_num_seqs(release: Release, device: Device) -> int:
    """``--max-num-seqs`` of a server when it is not given (``EngineArgs.get_batch_defaults``)."""
    if release.before("0.8.0"):
        return 256
    if device.is_cpu:
        return 128
    return 1024 if release.before("0.8.5") or _is_large(release, device) else 256


def default_batched_tokens(release: Release, device: Device) -> int:
    """``--max-num-batched-tokens`` of a server when it is not given (``EngineArgs.get_batch_defaults``), in tokens."""
    if release.since("0.28.0") and device.memory is not None and device.memory >= 160 << 30:
        return 16384
    return 8192 if _is_large(release, device) else 2048


def _is_large(release: Release, device: Device) -> bool:
    """Whether the card gets the larger batches: by name to 0.8.4, by memory from 0.8.5, A100s excepted from 0.9.0."""
    if release.before("0.8.5"):
        return "h100" in device.name or "h200" in device.name
    large = device.memory is not None and device.memory >= 70 << 30
    return large and not (release.since("0.9.0") and "a100" in device.name)
