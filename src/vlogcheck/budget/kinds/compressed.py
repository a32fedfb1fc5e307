"""DeepSeek-V4: a window of latents, compressed latents, their compressors' states and the compressed index.

Sizes are those of the packed fp8 layout (584 bytes per entry, pages rounded up to 576 bytes), read from vLLM 0.32.0
(vllm/models/deepseek_v4 and vllm/v1/attention/backends/mla/sparse_swa.py).
"""

from __future__ import annotations

from vlogcheck.budget._layer import MLA, SLIDING_MLA, LayerSpec
from vlogcheck.budget.kinds._base import Context, builds

_ENTRY = 584
_ALIGN = 576


def _ratio(context: Context, index: int) -> int:
    ratios = context.model.values.integers("compress_ratios") or []
    return max(1, ratios[index] if index < len(ratios) else 1)


def _overlap(ratio: int) -> int:
    return 2 if ratio == 4 else 1


@builds("v4_window")
def window(context: Context, index: int) -> LayerSpec:
    """Build the cache of the last tokens' latents."""
    return LayerSpec(
        kind=SLIDING_MLA, block_size=64, content_bytes=_ENTRY, head_size=context.model.head_dim, dtype="uint8",
        alignment=_ALIGN, window=context.model.values.need("sliding_window", minimum=1), variant="fp8_ds_mla",
    )  # fmt: skip


@builds("v4_compressed")
def compressed(context: Context, index: int) -> LayerSpec:
    """One latent for every few tokens."""
    return LayerSpec(
        kind=MLA, block_size=context.block_size, content_bytes=_ENTRY, head_size=context.model.head_dim, dtype="uint8",
        alignment=_ALIGN, tokens_per_state=_ratio(context, index), variant="fp8_ds_mla",
    )  # fmt: skip


@builds("v4_index")
def index_keys(context: Context, index: int) -> LayerSpec:
    """Build the cache of the compressed index: fp8 keys and their scales."""
    width = context.model.values.integer("index_head_dim", minimum=1) or 128
    return LayerSpec(
        kind=MLA, block_size=context.block_size, content_bytes=width + width // 128 * 4,
        head_size=width + width // 128 * 4, dtype="uint8", alignment=_ALIGN,
        tokens_per_state=_ratio(context, index), variant="indexer",
    )  # fmt: skip


def _state(context: Context, index: int, width: int) -> LayerSpec:
    ratio = _ratio(context, index)
    size = 2 * _overlap(ratio) * width  # keys and scores, twice where groups overlap
    return LayerSpec(
        kind=SLIDING_MLA, block_size=4 if ratio == 4 else 8, content_bytes=size * 4, head_size=size, dtype="float32",
        alignment=_ALIGN, window=_overlap(ratio) * ratio, variant="state",
    )  # fmt: skip


@builds("v4_state")
def state(context: Context, index: int) -> LayerSpec:
    """Build the cache of the group of tokens that is still being compressed."""
    return _state(context, index, context.model.head_dim)


@builds("v4_index_state")
def index_state(context: Context, index: int) -> LayerSpec:
    """Build the cache of the index's unfinished group."""
    return _state(context, index, context.model.values.integer("index_head_dim", minimum=1) or 128)
