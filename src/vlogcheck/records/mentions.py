"""Segments of shared memory, settings of context parallelism, tokens of encoders: near the ledger, no term of it."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["ContextParallelSetting", "EncoderTokens", "KVSpaceSet", "SharedBuffer"]


class SharedBuffer(Record):
    """A segment of shared memory between processes."""

    name: Word | None = None
    """Its name."""
    size_gib: GiB | None = None
    """Its size, where the line has it."""

    templates = (
        Template(
            "Created shared memory {name}",
            versions=">=0.14.0,<0.21.0",
            example="Created shared memory vllm_routed_experts_buffer_af31b2_0",
        ),
        Template(
            "Linked to existing shared memory {name}",
            versions=">=0.14.0,<0.21.0",
            example="Linked to existing shared memory vllm_routed_experts_buffer_af31b2_0",
        ),
        Template(
            "Shared memory {name} size mismatch; recreating",
            versions=">=0.14.0,<0.21.0",
            example="Shared memory vllm_routed_experts_buffer_af31b2_0 size mismatch; recreating",
        ),
        Template(
            "Already attached to shared memory buffer.",
            versions=">=0.14.0,<0.21.0",
            example="Already attached to shared memory buffer.",
        ),
        Template(
            "Creating new shared memory buffer: {name}",
            versions=">=0.15.0",
            example="Creating new shared memory buffer:"
            " VLLM_OBJECT_STORAGE_SHM_BUFFER_4f1c2a3b5d6e47889a0b1c2d3e4f5061",
        ),
        Template(
            "Shared memory created/opened with name: {name}, size: {size_gib:bytes}",
            versions=">=0.11.0",
            example="Shared memory created/opened with name:"
            " VLLM_OBJECT_STORAGE_SHM_BUFFER_4f1c2a3b5d6e47889a0b1c2d3e4f5061, size: 4294967296",
        ),
    )


class KVSpaceSet(Record):
    """The size of the KV cache was set by a variable; the profile run is ignored (openvino_worker.py)."""

    variable: Word
    """The variable."""

    templates = (
        Template(
            "KV_CACHE size was explicitly configured via {variable} environment variable, ignoring profiling run.",
            versions=">=0.6.3,<0.8.2",
            example="KV_CACHE size was explicitly configured via VLLM_OPENVINO_KVCACHE_SPACE environment variable,"
            " ignoring profiling run.",
        ),
    )


class ContextParallelSetting(Record):
    """How the KV cache is interleaved over context-parallel ranks changes."""

    templates = (
        Template(
            "cp_kv_cache_interleave_size is overridden by dcp_kv_cache_interleave_size. And"
            " dcp-kv-cache-interleave-size will be deprecated when PCP is fully supported.",
            versions=">=0.12.0",
            example="cp_kv_cache_interleave_size is overridden by dcp_kv_cache_interleave_size. And"
            " dcp-kv-cache-interleave-size will be deprecated when PCP is fully supported.",
        ),
        Template(
            "When using PD disaggregation with DCP (decode_context_parallel_size={_}), cp_kv_cache_interleave_size is"
            " automatically adjusted from {_} to block_size {_} for block-level alignment.",
            versions=">=0.29.0",
            example="When using PD disaggregation with DCP (decode_context_parallel_size=4),"
            " cp_kv_cache_interleave_size is automatically adjusted from 1 to block_size 64 for block-level alignment.",
        ),
        Template(
            "MiniMax M3 indexer CP: enabled over {_} ranks (each scores 1/{_} of the blocks for every index head)",
            versions=">=0.33.0",
            example="MiniMax M3 indexer CP: enabled over 4 ranks (each scores 1/4 of the blocks for every index head)",
        ),
        Template(
            "MiniMax M3 indexer CP: fused decode selector over {_} ranks [index_heads={_}, shard={_} blocks of {_}]",
            versions=">=0.33.0",
            example="MiniMax M3 indexer CP: fused decode selector over 4 ranks [index_heads=4, shard=2048 blocks of"
            " 8192]",
        ),
    )


class EncoderTokens(Record):
    """The encoder gave another number of tokens than the profile run expects."""

    tokens: int | None = None
    """Tokens it gave."""
    expected_tokens: int | None = None
    """Tokens expected."""

    templates = (
        Template(
            "Encoder returned a different number of tokens than expected; padding or truncating to fit. The embeddings"
            " are not trustworthy outside of memory profiling.",
            versions=">=0.28.0",
            example="Encoder returned a different number of tokens than expected; padding or truncating to fit. The"
            " embeddings are not trustworthy outside of memory profiling.",
        ),
        Template(
            "Encoder returned {tokens} tokens but {expected_tokens} were expected",
            versions=">=0.28.0",
            example="Encoder returned 1008 tokens but 1024 were expected",
        ),
        Template(
            "Expected at least {expected_tokens} dummy encoder tokens for profiling, but found {tokens} tokens"
            " instead.",
            versions=">=0.6.2,<0.15.0",
            example="Expected at least 8192 dummy encoder tokens for profiling, but found 2048 tokens instead.",
        ),
    )
