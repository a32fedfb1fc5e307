"""What one layer keeps in the KV cache: its kind, its block and its page, and how many pages a request takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings

FULL = "FullAttentionSpec"
SLIDING = "SlidingWindowSpec"
TURBOQUANT = "TQFullAttentionSpec"  # 0.20.0 to 0.27.1
CHUNKED = "ChunkedLocalAttentionSpec"
MLA = "MLAAttentionSpec"
SLIDING_MLA = "SlidingWindowMLASpec"
CROSS = "CrossAttentionSpec"
MAMBA = "MambaSpec"
UNIFORM = "UniformTypeKVCacheSpecs"

#: Kinds that keep every token of the context.
FULL_KINDS = frozenset({FULL, MLA, TURBOQUANT})


def cdiv(a: int, b: int) -> int:
    """Return ``a / b`` rounded up."""
    return -(-a // b)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of ``multiple`` that is not below ``value``."""
    return cdiv(value, multiple) * multiple


@dataclass(frozen=True)
class LayerSpec:
    """The cache of one layer on one rank, named as vLLM names it (``vllm/v1/kv_cache_interface.py``).

    Attributes:
        kind: vLLM's class name of the spec.
        block_size: tokens per block (for states: tokens between two kept states).
        content_bytes: bytes of one token of the layer (states: of one state), before any padding.
        num_kv_heads: KV heads on this rank; 1 for latents and states.
        head_size: width of K in elements (latent width for MLA), 0 for states.
        head_size_v: width of V in elements.
        dtype: element type of the cache.
        window: tokens a sliding layer looks back, or the chunk of a chunked one.
        page_padded: bytes the page is padded to, ``None`` without padding.
        tokens_per_state: tokens behind one entry (compressed latents keep one for several).
        alignment: bytes a page is rounded up to, ``None`` without.
        speculative_blocks: extra states kept for speculated tokens.
        checkpoint_blocks: extra states kept as prefill checkpoints.
        mode: ``none``, ``align`` or ``all`` for states: how many of them prefix caching keeps.
        retained: tokens a sliding layer keeps below its window (several MTP modules).
        variant: what else keeps two specs from being equal (state type, cache layout name).

    """

    kind: str
    block_size: int
    content_bytes: int
    num_kv_heads: int = 1
    head_size: int = 0
    head_size_v: int = 0
    dtype: str = "bfloat16"
    window: int | None = None
    page_padded: int | None = None
    tokens_per_state: int = 1
    alignment: int | None = None
    speculative_blocks: int = 0
    checkpoint_blocks: int = 0
    mode: str = "none"
    retained: int = 0
    variant: str = ""

    @property
    def unpadded_bytes(self) -> int:
        """Bytes of one block's content."""
        if self.kind == MAMBA:
            return self.content_bytes
        size = self.block_size // self.tokens_per_state * self.content_bytes
        return size if self.alignment is None else round_up(size, self.alignment)

    @property
    def page_size_bytes(self) -> int:
        """Bytes one block of this layer takes in the pool."""
        return self.unpadded_bytes if self.page_padded is None else max(self.page_padded, self.unpadded_bytes)

    def padded_to(self, page: int) -> LayerSpec:
        """Return the same spec with its page padded to ``page`` bytes."""
        return replace(self, page_padded=page)

    def with_block_size(self, block_size: int) -> LayerSpec:
        """Return the same spec with another block size."""
        return replace(self, block_size=block_size)

    def promoted(self, block_size: int | None) -> LayerSpec:
        """Return the spec as full attention, which is how it is kept without the hybrid KV-cache manager."""
        kind = MLA if self.kind == SLIDING_MLA else FULL
        return replace(self, kind=kind, retained=0, block_size=block_size or self.block_size)

    def blocks(self, length: int, settings: Settings) -> int:
        """Blocks a request of ``length`` tokens takes in this layer's group, at most."""
        if self.kind in FULL_KINDS:
            shards = context_shards(settings)
            return cdiv(cdiv(length, shards), self.block_size)
        if self.kind in (SLIDING, SLIDING_MLA):
            if settings.release.before("0.8.3"):  # the window was not used for sizing yet
                return cdiv(length, self.block_size)
            tokens = min((self.window or 1) - 1 + self.retained + settings.in_flight_tokens, length)
            return cdiv(tokens, self.block_size) + 1
        if self.kind == CHUNKED:
            return cdiv(min((self.window or 1) + settings.in_flight_tokens, length), self.block_size)
        if self.kind == CROSS:
            return cdiv(settings.max_num_batched_tokens, self.block_size)
        return self._states(length, settings)

    def _states(self, length: int, settings: Settings) -> int:
        release = settings.release
        if release.before("0.11.1"):
            return 1
        if release.before("0.15.1"):
            return cdiv(length, self.block_size)
        if settings.mamba_mode == "all":
            return cdiv(length, self.block_size) + (self.speculative_blocks if release.since("0.22.1") else 0)
        if settings.mamba_mode == "align":
            return 2 + self.speculative_blocks + self.checkpoint_blocks
        return 1 + self.speculative_blocks


def context_shards(settings: Settings) -> int:
    """Ranks that share a request's tokens: decode context from 0.10.2, prefill too from 0.12.0 to 0.25.1."""
    if settings.release.before("0.10.2"):
        return 1
    shards = settings.options.decode_context_parallel_size
    if settings.release.since("0.12.0") and settings.release.before("0.26.0"):
        shards *= settings.options.prefill_context_parallel_size
    return shards
