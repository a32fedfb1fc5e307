"""Saved /metrics pages."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck.metrics_page import MetricsError, read_metrics

PAGE = b"""# HELP python_info Python platform information
# TYPE python_info gauge
python_info{implementation="CPython"} 1.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 12.0
vllm:num_requests_running{engine="1",model_name="m"} 9.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.875
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0",model_name="m"} 4.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",gpu_memory_utilization="0.9",num_gpu_blocks="39018"} 1.0
"""


def test_figures_by_engine() -> None:
    first, second = read_metrics(PAGE).engines
    assert (first.engine, first.running, first.waiting, first.kv_cache_usage, first.preemptions) == (0, 12, 3, 0.875, 4)
    assert (first.num_gpu_blocks, first.block_size, first.gpu_memory_utilization) == (39018, 16, 0.9)
    assert first.kv_cache_size_tokens is None
    assert (second.engine, second.running, second.waiting, second.num_gpu_blocks) == (1, 9, 0, None)


def test_v0_names() -> None:
    page = b'vllm:gpu_cache_usage_perc{model_name="m"} 0.25\nvllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n'
    (engine,) = read_metrics(page).engines
    assert engine.kv_cache_usage == 0.25
    assert engine.num_gpu_blocks is None
    assert engine.block_size == 16


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no vllm: metric"),
        (b"# TYPE go_goroutines gauge\ngo_goroutines 7\n", "no vllm: metric"),
        (b"INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine\n", "no metrics page"),
        (b"\0\0", "not a text file"),
    ],
)
def test_other_files_are_refused_with_what_is_wanted(content: bytes, says: str) -> None:
    with pytest.raises(MetricsError, match=says):
        read_metrics(content)


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    for content in (text, f"vllm:num_requests_running {text}", f'vllm:cache_config_info{{block_size="{text}"}} 1'):
        with contextlib.suppress(MetricsError):
            assert read_metrics(content.encode("utf-8", "surrogatepass")).path == "<bytes>"
