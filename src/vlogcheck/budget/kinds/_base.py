"""What every kind of cache is built from, and the registry of kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import LayerSpec

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

Builder = Callable[["Context", int], LayerSpec]

BUILDERS: dict[str, Builder] = {}


@dataclass(frozen=True)
class Context:
    """Model, settings and the block size that was chosen for them.

    Attributes:
        block_size: tokens per block of the attention layers.
        state_block_size: tokens between kept states.
        state_page: bytes a state's page is padded to, ``None`` without padding.
        shared_page: bytes a sliding layer's page is padded to where some layers are kept out of the cache's quantisation.

    """

    model: ModelConfig
    settings: Settings
    block_size: int
    state_block_size: int
    state_page: int | None = None
    shared_page: int | None = None

    def skips(self, index: int, *, sliding: bool = False) -> bool:
        """Whether a layer is kept out of the quantisation of the cache (``--kv-cache-dtype-skip-layers``)."""
        skipped = self.settings.options.kv_cache_dtype_skip_layers
        return str(index) in skipped or (sliding and "sliding_window" in skipped)


def builds(*kinds: str) -> Callable[[Builder], Builder]:
    """Register a builder for one or more kinds."""

    def register(builder: Builder) -> Builder:
        for kind in kinds:
            BUILDERS[kind] = builder
        return builder

    return register


def share(heads: int, ranks: int) -> int:
    """KV heads one tensor-parallel rank holds: its share, at least one (heads are replicated beyond that)."""
    return max(1, heads // ranks)
