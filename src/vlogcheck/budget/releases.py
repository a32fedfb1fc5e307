"""What changed when: the release a rule holds from, and the defaults of each release, in one table.

"0.20.2" means "seen first in 0.20.2": the change landed between it and the release before it that was read. A nightly
(``0.11.2.dev690+g67475a6e8``) follows the rules of the release it leads to; a version without meaning (``0.1.dev1``)
or none at all follows the newest rules, and the plan says that it was assumed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from vlogcheck.budget._device import Device

__all__ = [
    "NEWEST",
    "Release",
    "default_batched_tokens",
    "default_max_num_seqs",
    "default_utilization",
    "is_plain",
    "order",
    "parse_release",
]

#: The newest release whose rules are known.
NEWEST = "0.33.0"

#: Older than this no vLLM release has the rules below; "0.1.dev1" is what an untagged build calls itself.
_OLDEST = "0.2.0"


def is_plain(version: str) -> bool:
    """Whether a version is nothing but numbers and dots, as releases are: then `packaging` (5 ms to import) is not needed."""
    parts = version.split(".")
    return version.isascii() and len(version) < 100 and all(part.isdecimal() for part in parts)


@lru_cache(maxsize=256)
def order(version: str) -> tuple[int, tuple[int, ...], int]:
    """Return what puts final and post releases in order. Raises `ValueError` for what is no version."""
    if is_plain(version):
        epoch, post, parts = 0, -1, tuple(map(int, version.split(".")))
    else:
        from packaging.version import Version

        parsed = Version(version)
        epoch, post, parts = parsed.epoch, -1 if parsed.post is None else parsed.post, parsed.release
    while parts and not parts[-1]:
        parts = parts[:-1]
    return epoch, parts, post


class Release(NamedTuple):
    """A vLLM release whose rules are followed."""

    text: str
    """The version as it was given, or the newest known one."""
    version: str
    """What is compared; a nightly counts as the release it leads to."""
    assumption: str | None = None
    """Why another version than the given one is followed, None when it is the given one's."""

    def since(self, version: str) -> bool:
        """Whether this release is ``version`` or newer."""
        return order(self.version) >= order(version)

    def before(self, version: str) -> bool:
        """Whether this release is older than ``version``."""
        return order(self.version) < order(version)


def parse_release(text: str | None) -> Release:
    """Return the release whose rules apply to version ``text``; never raises."""
    if text is None or not text.strip():
        return Release(NEWEST, NEWEST, f"release unknown: rules of {NEWEST} assumed")
    shown = text.strip()
    version = shown.removeprefix("v")
    base: str | None = ".".join(str(int(part)) for part in version.split(".")) if is_plain(version) else None
    nightly = untagged = False
    if base is None and len(shown) < 100:
        from packaging.version import InvalidVersion, Version

        try:
            parsed = Version(version)
        except (InvalidVersion, ValueError):  # too many digits for a number
            pass
        else:
            base = parsed.base_version
            untagged = order(base) < order(_OLDEST)
            if parsed.post is not None:
                base = f"{base}.post{parsed.post}"
            nightly = parsed.is_devrelease
    if base is None:
        return Release(shown[:100], NEWEST, f"release {shown[:40]!r} is no version: rules of {NEWEST} assumed")
    if untagged or order(base) < order(_OLDEST):
        return Release(shown, NEWEST, f"release {shown} is an untagged build: rules of {NEWEST} assumed")
    if order(base) > order(NEWEST):
        return Release(shown, base, f"release {shown} is newer than {NEWEST}: rules of {NEWEST} assumed")
    if nightly:
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
