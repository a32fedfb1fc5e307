"""Which decoder layers a pipeline stage holds (``get_pp_indices``, vllm/distributed/utils.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck.budget.releases import Release


def stages(layers: int, ranks: int, release: Release, env: Mapping[str, str]) -> list[int]:
    """Return how many layers each of ``ranks`` stages holds.

    Raises:
        ModelConfigError: ``VLLM_PP_LAYER_PARTITION`` is no list of counts, or does not fit.

    """
    asked = env.get("VLLM_PP_LAYER_PARTITION")
    if asked and ranks > 1:
        try:
            counts = [int(part) for part in asked.split(",")]
        except ValueError:
            raise ModelConfigError(f"VLLM_PP_LAYER_PARTITION={asked[:60]!r} is not a list of counts") from None
        if len(counts) != ranks or sum(counts) != layers or min(counts) < 0:
            raise ModelConfigError(
                f"VLLM_PP_LAYER_PARTITION={asked[:60]!r} does not split {layers} layers into {ranks}"
            )
        return counts
    each, rest = divmod(layers, ranks)
    counts = [each] * ranks
    if release.before("0.8.0"):
        counts[-1] += rest
        return counts
    for back in range(2, rest + 2):  # the last stage holds the output head: it gets none of the remainder
        counts[-back] += 1
    return counts
