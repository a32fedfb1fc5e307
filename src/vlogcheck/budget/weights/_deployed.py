"""What flags, environment and card change about a rank's weights, and how sure the sum is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget.releases import Release
from vlogcheck.budget.weights._build import Share
from vlogcheck.budget.weights._quant import Scheme

if TYPE_CHECKING:
    from vlogcheck.budget._device import Device
    from vlogcheck.budget.flags import ServeOptions

__all__ = ["is_expandable", "is_text_only", "share_of", "tolerance_of"]

_MLA_TOLERANCE = 0.02


def share_of(options: ServeOptions, *, first: bool, last: bool) -> Share:
    """Return what one rank of a stage holds: the divisors of its matrices and experts."""
    tp = max(1, options.tensor_parallel_size)
    # without expert parallelism vLLM cuts the routed experts over the data-parallel ranks too (FusedMoEParallelConfig)
    together = tp * max(1, options.data_parallel_size) * max(1, options.prefill_context_parallel_size)
    if options.enable_expert_parallel and together > 1:
        return Share(tp=tp, moe_tp=1, ep=together, first=first, last=last, extra_experts=_redundant(options))
    return Share(tp=tp, moe_tp=together, ep=1, first=first, last=last)


def is_text_only(options: ServeOptions, release: Release) -> bool:
    """Whether no tower is built: asked for directly, or every kind of input limited to none (0.16 on)."""
    if options.unused.get("language_model_only") in (True, "true", "True"):
        return True
    limits = options.unused.get("limit_mm_per_prompt")
    if isinstance(limits, str):
        try:
            limits = json.loads(limits)
        except (ValueError, RecursionError):
            return False
    if not isinstance(limits, Mapping) or not limits or release.before("0.16.0"):
        return False
    return {"image", "video"} <= limits.keys() and all(count == 0 for count in limits.values())


def is_expandable(env: Mapping[str, str]) -> bool:
    """Whether torch is told to allocate in segments that grow, without rounding each up."""
    settings = f"{env.get('PYTORCH_CUDA_ALLOC_CONF', '')},{env.get('PYTORCH_ALLOC_CONF', '')}".lower().replace(" ", "")
    return "expandable_segments:true" in settings


def tolerance_of(
    scheme: Scheme, options: ServeOptions, device: Device | None, missing: str | None, *, absorbed: bool
) -> tuple[float, str]:
    """Return the widest tolerance that applies, with its reason."""
    if missing is not None:
        return 1.0, missing
    found = [(scheme.tolerance, scheme.reason)]
    if absorbed:
        found.append((_MLA_TOLERANCE, "MLA keeps absorbed projections whose layout depends on the backend"))
    if options.enable_lora:
        found.append((0.05, "LoRA buffers are not counted"))
    if options.cpu_offload_gib:
        return 1.0, "part of the weights is offloaded to host memory"
    if device is not None and _is_amd(device.name):
        found.append((0.02, "ROCm keeps library workspaces beside the weights (about 0.1 GiB in logs)"))
    return max(found, key=lambda pair: pair[0])


def _is_amd(name: str) -> bool:
    return any(word in name.lower() for word in ("amd", "instinct", "radeon", "gfx", "hygon", "dcu"))


def _redundant(options: ServeOptions) -> int:
    config = options.unused.get("eplb_config")
    given = (
        config.get("num_redundant_experts")
        if isinstance(config, Mapping)
        else options.unused.get("num_redundant_experts")
    )
    try:
        return max(0, min(int(str(given)), 1 << 20)) if given is not None else 0
    except ValueError:
        return 0
