"""What the server says while it serves."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["EngineStats"]


class EngineStats(Record):
    """The periodic metrics line (v1/metrics/loggers.py; engine/metrics.py in V0)."""

    engine: Word | None = None
    """Engine index, where several report."""
    prompt_tokens_per_second: float
    """Prompt tokens processed per second since the last line."""
    generation_tokens_per_second: float
    """Tokens generated per second since the last line."""
    running: int
    """Requests in the running batch."""
    waiting: int
    """Requests waiting (`Pending` in V0)."""
    swapped: int | None = None
    """Requests swapped out to the host (V0)."""
    deferred: int | None = None
    """Requests put off, from 0.20.2."""
    preemptions: int | None = None
    """Preemptions in this interval."""
    kv_cache_usage_percent: float
    """Share of the KV cache in use."""
    cpu_kv_cache_usage_percent: float | None = None
    """Share of host swap space in use (V0)."""
    prefix_cache_hit_percent: float | None = None
    """Prefix cache hits."""
    device: str
    """The device the line names."""

    templates = (
        Template(
            "[[Engine {engine}: ]]Avg prompt throughput: {prompt_tokens_per_second} tokens/s, Avg generation throughput:"
            " {generation_tokens_per_second} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs"
            "[[, Deferred: {deferred} reqs]][[, KV fetch: {_}]][[, Preemptions: {preemptions}]],"
            " {device} KV cache usage: {kv_cache_usage_percent}%"
            "[[, Prefix cache hit rate: {prefix_cache_hit_percent}%]][[, {_}]]",
            versions=">=0.7.3",
            example="Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3"
            " reqs, Waiting: 0 reqs, GPU KV cache usage: 4.2%, Prefix cache hit rate: 31.5%",
        ),
        Template(
            "Avg prompt throughput: {prompt_tokens_per_second} tokens/s, Avg generation throughput:"
            " {generation_tokens_per_second} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs {device} KV cache"
            " usage: {kv_cache_usage_percent}%.",
            versions=">=0.7.1,<0.7.3",
            example="Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3 reqs,"
            " Waiting: 0 reqs GPU KV cache usage: 4.2%.",
        ),
        Template(
            "Avg prompt throughput: {prompt_tokens_per_second} tokens/s, Avg generation throughput:"
            " {generation_tokens_per_second} tokens/s, Running: {running} reqs, Swapped: {swapped} reqs, Pending: {waiting}"
            " reqs, {device} KV cache usage: {kv_cache_usage_percent}%, CPU KV cache usage:"
            " {cpu_kv_cache_usage_percent}%[[.]]",
            versions=">=0.2.0,<0.11.1",
            example="Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3 reqs,"
            " Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 4.2%, CPU KV cache usage: 0.0%.",
        ),
    )
