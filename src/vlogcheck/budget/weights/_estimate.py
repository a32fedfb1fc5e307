"""Weights per pipeline stage: parameters, buffers and what the allocator counts for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vlogcheck.budget._partition import stages
from vlogcheck.budget._traits import uses_v2_runner
from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.releases import Release, parse_release
from vlogcheck.budget.weights._allocator import allocated_bytes
from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._deployed import is_expandable, is_text_only, share_of, tolerance_of
from vlogcheck.budget.weights._dimensions import NotModelled
from vlogcheck.budget.weights._drafter import Drafter, build_drafter
from vlogcheck.budget.weights._families import build_model
from vlogcheck.budget.weights._methods import scheme_of
from vlogcheck.budget.weights._quant import Scheme, Unknown

if TYPE_CHECKING:
    from vlogcheck.budget._device import Device
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig

__all__ = ["WeightEstimate", "estimate_weights"]

_SPLIT_LIMIT = 20 << 20

#: More pipeline stages than any deployment has.
_MOST_STAGES = 4096


@dataclass(frozen=True)
class WeightEstimate:
    """Expected weights of one rank of a pipeline stage; all sizes in bytes.

    Attributes:
        pp_rank: the pipeline stage.
        param_bytes: sum of all parameters, exact for the modelled layouts.
        buffer_bytes: rotary caches and other buffers.
        post_load_bytes: tensors that only appear after loading (MLA keeps its absorbed projections beside the
            originals).
        drafter_bytes: parameters of a drafter or MTP module in ``param_bytes``.
        allocated_bytes: what the caching allocator counts for all of these: the "Model loading took" figure of one
            rank.
        tolerance: relative uncertainty of ``allocated_bytes`` as a fraction.
        tolerance_reason: why it is that large.
        assumptions: what was assumed on the way.
        unknown: whether no figure is claimed for the whole; the sizes hold what could be counted (0 where nothing
            could) and ``tolerance_reason`` says what is missing.
        by_part: parameter bytes by part of the model (embedding, attention, mlp, experts, norms, lm_head, vision …).
        method: quantisation method as vLLM names it, ``none`` without one.

    """

    pp_rank: int
    param_bytes: int = 0
    buffer_bytes: int = 0
    post_load_bytes: int = 0
    drafter_bytes: int = 0
    allocated_bytes: int = 0
    tolerance: float = 0.005
    tolerance_reason: str = ""
    assumptions: tuple[str, ...] = ()
    unknown: bool = False
    by_part: Mapping[str, int] = field(default_factory=dict)
    method: str = "none"

    @property
    def low_bytes(self) -> int:
        """Lower end of the tolerance around ``allocated_bytes``."""
        return int(self.allocated_bytes * (1 - self.tolerance))

    @property
    def high_bytes(self) -> int:
        """Upper end of the tolerance around ``allocated_bytes``."""
        return -int(-self.allocated_bytes * (1 + self.tolerance) // 1)


def estimate_weights(
    model: ModelConfig,
    options: ServeOptions,
    release: str | Release | None = None,
    env: Mapping[str, str] | None = None,
    device: Device | None = None,
) -> list[WeightEstimate]:
    """Estimate what "Model loading took" will say, per pipeline stage.

    Args:
        model: the model's configuration.
        options: the server's options; parallel sizes, dtype, quantisation and speculation count.
        release: the vLLM release; the newest known where absent.
        env: vLLM environment variables (``VLLM_PP_LAYER_PARTITION``).
        device: the GPU, which decides how some kernels pad 4-bit experts; Hopper where absent.

    Returns:
        One estimate per pipeline stage. Tensor-parallel ranks of a stage hold equal shares. An estimate marked
        ``unknown`` says in ``tolerance_reason`` what is not modelled.

    Raises:
        ModelConfigError: the configuration lacks a size or holds an impossible one, or the layer partition does not
            fit.

    """
    env = {} if env is None else env
    release = release if isinstance(release, Release) else parse_release(release)
    ranks = max(1, options.pipeline_parallel_size)
    if ranks > _MOST_STAGES:
        raise ModelConfigError(f"{ranks} pipeline stages are more than any deployment has")
    try:
        scheme = scheme_of(model, options, release, device)
        if isinstance(scheme, Unknown):
            raise NotModelled(scheme.reason)
        counts = stages(model.num_layers, ranks, release, env)
        return [_stage(model, options, release, env, scheme, device, rank, counts) for rank in range(ranks)]
    except NotModelled as reason:
        return [
            WeightEstimate(rank, unknown=True, tolerance=1.0, tolerance_reason=str(reason)) for rank in range(ranks)
        ]


def _stage(
    model: ModelConfig,
    options: ServeOptions,
    release: Release,
    env: Mapping[str, str],
    scheme: Scheme,
    device: Device | None,
    rank: int,
    counts: list[int],
) -> WeightEstimate:
    start = sum(counts[:rank])
    share = share_of(options, first=rank == 0, last=rank == len(counts) - 1)
    item = 4 if options.dtype in {"float", "float32"} else 2
    build = Builder(share, item, scheme, release, absorb=env.get("VLLM_MLA_DISABLE", "0") not in {"1", "true", "True"})
    copied = str(options.unused.get("mm_encoder_tp_mode", "")).lower() == "data"
    # the second runner encodes images on the first stage only, and builds no tower on the others (0.33.0 on)
    towerless = not share.first and release.since("0.33.0") and uses_v2_runner(model, options, release, env)
    build_model(
        build,
        model,
        range(start, start + counts[rank]),
        text_only=towerless or is_text_only(options, release),
        copied_tower=copied,
    )
    if model.text.get("auto_map") and not model.outer.has("architectures"):
        build.note("the repository brings its own code")
    drafter = build_drafter(build, model, options) if share.last else Drafter()
    parts: dict[str, int] = {}
    for part, size in build.params:
        parts[part] = parts.get(part, 0) + size
    drafted = sum(size for _, size in drafter.params)
    if drafted:
        parts["drafter"] = drafted
    buffers = [size for _, size in (*build.buffers, *drafter.buffers)]
    after = [size for _, size in (*build.after, *drafter.after)]
    tensors = [*(size for _, size in build.params), *drafter.kept, *buffers, *after]
    limit = _SPLIT_LIMIT if release.since("0.21.0") else None
    tolerance, reason = tolerance_of(scheme, options, device, drafter.missing, absorbed=bool(after))
    if build.uncertain and tolerance < 1:
        tolerance += build.uncertain / max(1, sum(tensors))
        reason = "the towers are counted as plain transformers and uncertain by their whole size"
    return WeightEstimate(
        pp_rank=rank,
        param_bytes=sum(size for _, size in build.params) + drafted,
        buffer_bytes=sum(buffers),
        post_load_bytes=sum(after),
        drafter_bytes=drafted,
        allocated_bytes=allocated_bytes(tensors, max_split_size=limit, expandable=is_expandable(env)),
        tolerance=tolerance,
        tolerance_reason=reason,
        assumptions=tuple(build.notes),
        unknown=tolerance >= 1,
        by_part=parts,
        method=scheme.method,
    )
