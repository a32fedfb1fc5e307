"""Models whose layers differ: block sizes aligned with state pages, padding, groups, the hybrid manager."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = [
    "HiddenStateBlockSize",
    "HybridBlockSize",
    "HybridManagerOff",
    "KVGroupBlockSizes",
    "LayerPadding",
    "MambaPagePadding",
    "StatePageTooLarge",
]


class HybridBlockSize(Record):
    """The attention block grows so that its page covers a state page (model_executor/models/config.py)."""

    block_size_tokens: int
    """Tokens of one attention block from now on."""
    kernel_block_size_tokens: int | None = None
    """Tokens of the kernel's block it must be a multiple of."""
    mamba_page_bytes: int | None = None
    """Bytes of a padded state page, where the line states them."""

    templates = (
        Template(
            "Setting attention block size to {block_size_tokens} tokens to ensure that attention page size is >="
            " mamba page"
            " size.",
            versions=">=0.10.0",
            example="Setting attention block size to 784 tokens to ensure that attention page size is >= mamba page"
            " size.",
        ),
        Template(
            "[XPU]Setting attention block size to {block_size_tokens} tokens to ensure multiple of"
            " {kernel_block_size_tokens}, set mamba_page_size_padded to {mamba_page_bytes} bytes accordingly, before"
            " was {_}"
            " bytes.",
            versions=">=0.20.0",
            example="[XPU]Setting attention block size to 832 tokens to ensure multiple of 64, set"
            " mamba_page_size_padded to"
            " 1703936 bytes accordingly, before was 1671168 bytes.",
        ),
        Template(
            "[XPU]Setting attention block size to {block_size_tokens} tokens to ensure multiple of"
            " {kernel_block_size_tokens}.",
            versions=">=0.32.0",
            example="[XPU]Setting attention block size to 832 tokens to ensure multiple of 64.",
        ),
        Template(
            "Setting attention block size to {block_size_tokens} tokens so the quantized primary KV page covers the"
            " higher-precision padded-spec page.",
            versions=">=0.25.0",
            example="Setting attention block size to 1056 tokens so the quantized primary KV page covers the"
            " higher-precision padded-spec page.",
        ),
    )


class HiddenStateBlockSize(Record):
    """Block size of a layer that caches hidden states for a drafter (v1/core/kv_cache_planning.py)."""

    block_size_tokens: int
    """Tokens of one block."""
    layer: Word | None = None
    """The layer."""
    waste_bytes: int | None = None
    """Bytes of each block that alignment wastes."""
    waste_percent: float | None = None
    """The same as a share."""

    templates = (
        Template(
            "Using block size {block_size_tokens} for hidden-state cache layer {layer}; page alignment wastes"
            " {waste_bytes}"
            " bytes ({waste_percent}%) per block",
            versions=">=0.28.0",
            example="Using block size 32 for hidden-state cache layer model.layers.61.cache; page alignment wastes"
            " 2048 bytes"
            " (1.56%) per block",
        ),
        Template(
            "Using block size {block_size_tokens} for drafting layers",
            versions=">=0.18.0",
            example="Using block size 64 for drafting layers",
        ),
    )


class MambaPagePadding(Record):
    """State pages are padded to the size of an attention page (model_executor/models/config.py)."""

    padding_percent: float
    """Share added to each state page."""

    templates = (
        Template(
            "Padding mamba page size by {padding_percent}% to ensure that mamba page size and attention page size"
            " are exactly"
            " equal.",
            versions=">=0.10.0",
            example="Padding mamba page size by 1.21% to ensure that mamba page size and attention page size are"
            " exactly"
            " equal.",
        ),
    )


class LayerPadding(Record):
    """Groups of layers are padded to equal length (v1/core/kv_cache_utils.py)."""

    padding_layers: int
    """Layers added that hold nothing."""
    waste_percent: float
    """Share of the KV cache they may cost at most."""

    templates = (
        Template(
            "Add {padding_layers} padding layers, may waste at most {waste_percent}% KV cache memory",
            versions=">=0.9.1",
            example="Add 1 padding layers, may waste at most 3.70% KV cache memory",
        ),
    )


class HybridManagerOff(Record):
    """Sliding-window and state layers are allocated as full attention: the KV cache holds fewer tokens."""

    reason: str | None = None
    """Why, where the line says so."""

    templates = (
        Template(
            "Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any optimizations"
            " for saving KV cache memory (e.g., dropping the KV cache outside the sliding window). The compute of"
            " layers like sliding window is still saved.",
            versions=">=0.9.1",
            example="Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any"
            " optimizations for saving KV cache memory (e.g., dropping the KV cache outside the sliding window). The"
            " compute of layers like sliding window is still saved.",
        ),
        Template(
            "Turning off hybrid kv cache manager because {reason}. {_}",
            versions=">=0.11.1",
            example="Turning off hybrid kv cache manager because `--kv-transfer-config` is set. This will reduce the"
            " performance of vLLM on LLMs with sliding window attention or Mamba attention. If you are a developer of"
            " kv connector, please consider supporting hybrid kv cache manager for your connector by making sure your"
            " connector is a subclass of `SupportsHMA` defined in kv_connector/v1/base.py and use"
            " --no-disable-hybrid-kv-cache-manager to start vLLM.",
        ),
        Template(
            "There is a latency regression when using {reason} with the hybrid KV cache manager. Disabling it, by"
            " default. To enable it, set the environment VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE=1.",
            versions=">=0.10.1",
            example="There is a latency regression when using chunked local attention with the hybrid KV cache"
            " manager. Disabling it, by default. To enable it, set the environment"
            " VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE=1.",
        ),
        Template(
            "KV cache page sizes cannot be unified; treating sliding-window layers as full attention for cache"
            " allocation. Sliding-window attention compute is unchanged.",
            versions=">=0.27.0",
            example="KV cache page sizes cannot be unified; treating sliding-window layers as full attention for cache"
            " allocation. Sliding-window attention compute is unchanged.",
            values={"reason": "page sizes cannot be unified"},
        ),
    )


class KVGroupBlockSizes(Record):
    """Block sizes of the groups of layers, and the one the scheduler counts in (v1/core/kv_cache_utils.py)."""

    group_block_sizes: str | None = None
    """Tokens of one block of each group, as printed."""
    scheduler_block_size_tokens: int | None = None
    """Least common multiple of them."""

    templates = (
        Template(
            "kv cache group sizes {group_block_sizes}",
            versions=">=0.30.0",
            example="kv cache group sizes (16, 16, 784)",
        ),
        Template(
            "kv lcm block sizes {scheduler_block_size_tokens}", versions=">=0.30.0", example="kv lcm block sizes 784"
        ),
    )


class StatePageTooLarge(Record):
    """Refused to start: a state page or a block does not fit the pages of the other layers (kv_cache_utils.py)."""

    state_page_bytes: int | None = None
    """Bytes of a state page."""
    attention_page_bytes: int | None = None
    """Bytes of an attention page."""
    largest_block_size_tokens: int | None = None
    """The largest block size that would do, where the line says so."""

    templates = (
        Template(
            "the mamba state page ({state_page_bytes} bytes) does not fit the MLA page ({attention_page_bytes} bytes);"
            " increase tensor parallelism or use a wider KV cache dtype",
            versions=">=0.30.0,<0.32.0",
            example="the mamba state page (2129920 bytes) does not fit the MLA page (1179648 bytes); increase tensor"
            " parallelism or use a wider KV cache dtype",
        ),
        Template(
            "{_} needs {_}-token kernel blocks, which packed {_}-token KV cache blocks cannot be split into. Reduce"
            " --block-size to {largest_block_size_tokens} or set VLLM_KV_CACHE_LAYOUT to a layer-compact layout (e.g."
            " LBNHC).",
            versions=">=0.32.0",
            example="FLASHMLA needs 64-token kernel blocks, which packed 256-token KV cache blocks cannot be split"
            " into. Reduce --block-size to 64 or set VLLM_KV_CACHE_LAYOUT to a layer-compact layout (e.g. LBNHC).",
        ),
    )
