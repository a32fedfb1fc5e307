"""A saved `/metrics` page: what each engine says about its KV cache and its requests.

Names are vLLM's own (v1/metrics/loggers.py, engine/metrics.py): `vllm:cache_config_info` carries the sizes as labels
(`kv_cache_size_tokens` and `kv_cache_max_concurrency` from 0.24.0), usage is `vllm:kv_cache_usage_perc` or, in older
releases, `vllm:gpu_cache_usage_perc`; both are shares from 0 to 1.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from vlogcheck._attached import AttachedFileError, Source, read_attached
from vlogcheck._tuples import NamedTuple

__all__ = ["EngineMetrics", "MetricsError", "MetricsPage", "read_metrics"]


class MetricsError(AttachedFileError):
    """A file that is no metrics page of a vLLM server; the text says why."""


class EngineMetrics(SimpleNamespace):
    """One engine's figures. What the page does not hold is None."""

    engine: int
    """Data-parallel index."""
    num_gpu_blocks: int | None = None
    block_size: int | None = None
    """Tokens per block."""
    kv_cache_size_tokens: int | None = None
    kv_cache_max_concurrency: float | None = None
    gpu_memory_utilization: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""
    preemptions: int | None = None
    """Since the engine started."""


class MetricsPage(NamedTuple):
    """A metrics page."""

    path: str
    engines: list[EngineMetrics]


_GAUGES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_cache_usage",
    "vllm:gpu_cache_usage_perc": "kv_cache_usage",
    "vllm:num_preemptions_total": "preemptions",
}
_LARGEST = 1 << 62
_LABELS = {
    "num_gpu_blocks": int,
    "block_size": int,
    "kv_cache_size_tokens": int,
    "kv_cache_max_concurrency": float,
    "gpu_memory_utilization": float,
}


def read_metrics(source: Source) -> MetricsPage:
    """Read a saved page: a path, the bytes, or a binary file.

    Raises `MetricsError` with a message for people when it is none of a vLLM server, or `OSError`.
    """
    from prometheus_client.parser import text_string_to_metric_families  # brings a web server along: 35 ms

    text, path = read_attached(source, "--metrics", MetricsError)
    engines: dict[int, EngineMetrics] = {}
    ours = 0
    try:
        for family in text_string_to_metric_families(text):
            if not family.name.startswith("vllm:"):
                continue
            ours += 1
            for sample in family.samples:
                _take(engines, sample.name, sample.labels, sample.value)
    except ValueError as error:
        raise MetricsError(
            f"{path} is no metrics page: save `curl http://HOST:8000/metrics` ({str(error)[:120]})"
        ) from None
    if not ours:
        raise MetricsError(
            f"{path} holds no vllm: metric: give the page of the vLLM server itself (`curl http://HOST:8000/metrics`)"
        )
    return MetricsPage(path, [engines[index] for index in sorted(engines)])


def _take(engines: dict[int, EngineMetrics], name: str, labels: dict[str, str], value: float) -> None:
    field = _GAUGES.get(name)
    if field is None and name != "vllm:cache_config_info":
        return
    index = labels.get("engine", "0")
    number = int(index) if index.isdecimal() and len(index) < 10 else 0
    engine = engines.setdefault(number, EngineMetrics(engine=number))
    if field is None:
        for label, kind in _LABELS.items():
            number = _number(labels.get(label), kind)
            if number is not None:
                setattr(engine, label, number)
        return
    if not abs(value) < _LARGEST:  # also for NaN
        return
    # Several series of one gauge (one per model name or process) add up; a share is the fullest one.
    before: Any = getattr(engine, field)
    if field == "kv_cache_usage":
        engine.kv_cache_usage = max(before or 0.0, value)
    else:
        setattr(engine, field, (before or 0) + int(value))


def _number(text: str | None, kind: type) -> Any:
    """Return a label's number, or None (`None` is printed where vLLM does not know it)."""
    if text is None or len(text) > 40:
        return None
    try:
        number = kind(text)
    except ValueError:
        return None
    return number if abs(number) < _LARGEST else None  # None also for NaN
