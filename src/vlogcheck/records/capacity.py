"""The KV cache as allocated: blocks, tokens, concurrency."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["DeviceBlocks", "KVCacheCapacity", "MaxConcurrency"]


class DeviceBlocks(Record):
    """Blocks in the KV pool and in host swap space (V0 engine; one line per rank in V1 0.7)."""

    device_blocks: int
    """Blocks on the device."""
    cpu_blocks: int | None = None
    """Blocks of swap space on the host."""
    device: Word
    """The device the line names: GPU, CUDA, cuda, rocm, TPU, HPU, xpu, cpu."""

    templates = (
        Template(
            "# {device} blocks: {device_blocks}, # CPU blocks: {cpu_blocks}",
            versions=">=0.2.0,<0.11.1",
            example="# GPU blocks: 27896, # CPU blocks: 2048",
        ),
        Template(
            "# {device} blocks: {device_blocks}",
            versions=">=0.4.0.post1,<0.8.0",
            example="# GPU blocks: 27896",
        ),
    )


class KVCacheCapacity(Record):
    """Tokens the KV cache is said to hold (v1/core/kv_cache_utils.py); from 0.28 with the concurrency in one line."""

    tokens: int
    """Tokens. From 0.20.2 this is int(concurrency × max_model_len), not blocks × block size."""
    device: Word
    """The device the line names."""
    max_model_len: int | None = None
    """Request length the concurrency is for."""
    max_concurrency: float | None = None
    """Requests of that length that fit."""

    templates = (
        Template(
            "{device} KV cache size: {tokens:,} tokens, Maximum concurrency for {max_model_len:,} tokens per request:"
            " {max_concurrency}x",
            versions=">=0.28.0",
            example="GPU KV cache size: 449,248 tokens, Maximum concurrency for 8,192 tokens per request: 54.84x",
        ),
        Template(
            "{device} + host KV cache size: {tokens:,} tokens, Maximum concurrency for {max_model_len:,} tokens per request:"
            " {max_concurrency}x",
            versions=">=0.30.0",
            example="GPU + host KV cache size: 449,248 tokens, Maximum concurrency for 8,192 tokens per request: 54.84x",
        ),
        Template(
            "{device} KV cache size: {tokens:,} tokens",
            versions=">=0.8.0,<0.28",
            example="GPU KV cache size: 449,248 tokens",
        ),
    )


class MaxConcurrency(Record):
    """Requests of one length that the KV cache holds at once, on a line of its own."""

    max_model_len: int
    """Request length in tokens."""
    max_concurrency: float
    """Requests of that length that fit; not capped by `max_num_seqs`."""

    templates = (
        Template(
            "Maximum concurrency for {max_model_len:,} tokens per request: {max_concurrency}x",
            versions=">=0.6.3,<0.28",
            example="Maximum concurrency for 32,768 tokens per request: 13.71x",
        ),
    )
