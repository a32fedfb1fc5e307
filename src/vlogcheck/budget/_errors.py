"""vLLM's refusals with its own figures and its own rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

_GIB = 1 << 30


@dataclass(frozen=True)
class PlanError:
    """Why vLLM would not start.

    Attributes:
        kind: ``kv_cache_too_small``, ``no_kv_cache_memory`` or ``not_supported``.
        message: what vLLM says, shortened to the part with the figures.
        max_model_len: the length that does not fit.
        needed_bytes: bytes the check asks for.
        available_bytes: bytes the check compares with (from 0.29.0 one block less than there is).
        needed_gib: the same as vLLM prints it.
        available_gib: the same as vLLM prints it.
        estimated_max_model_len: the length vLLM says would fit; ``None`` where it says none.

    """

    kind: str
    message: str
    max_model_len: int | None = None
    needed_bytes: int | None = None
    available_bytes: int | None = None
    needed_gib: str | None = None
    available_gib: str | None = None
    estimated_max_model_len: int | None = None


def printed_gib(release: Release, size: int) -> str:
    """GiB as the release prints them: two decimals, without trailing zeros from 0.14.1."""
    return f"{size / _GIB:.2f}" if release.before("0.14.1") else f"{round(size / _GIB, 2)}"


def no_memory(release: Release, available: int, *, auto: bool = False) -> PlanError:
    """There is nothing left for the cache (``auto``: not even for one token when the length is to be fitted)."""
    message = (
        "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token."
        if auto
        else "No available memory for the cache blocks."
    )
    return PlanError(
        "no_kv_cache_memory", message, available_bytes=available, available_gib=printed_gib(release, available)
    )


def too_long(release: Release, length: int, needed: int, available: int, estimate: int) -> PlanError:
    """One request of the full length does not fit."""
    who = "model's" if release.since("0.22.1") else "models's"
    label = "GB" if release.before("0.8.3") else "GiB"
    need, have = printed_gib(release, needed), printed_gib(release, available)
    message = (
        f"To serve at least one request with the {who} max seq len ({length}), ({need} {label} KV cache is needed, "
        f"which is larger than the available KV cache memory ({have} {label})."
    )
    # 0.8.4 to 0.9.0.1 computed the estimate and lost it on the way into the message
    stated = estimate if estimate > 0 and release.since("0.9.1") else None
    if stated is not None:
        message += f" Based on the available memory, the estimated maximum model length is {stated}."
    return PlanError("kv_cache_too_small", message, length, needed, available, need, have, stated)


def too_long_v0(length: int, usable: int) -> PlanError:
    """Return the V0 engine's check, in tokens."""
    message = (
        f"The model's max seq len ({length}) is larger than the maximum number of tokens that can be stored in KV "
        f"cache ({usable})."
    )
    return PlanError("kv_cache_too_small", message, length, estimated_max_model_len=usable)


def not_supported(message: str) -> PlanError:
    """VLLM refuses the combination whatever the memory."""
    return PlanError("not_supported", message)
