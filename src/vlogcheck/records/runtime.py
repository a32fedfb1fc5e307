"""What the server says while it serves."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = [
    "DiffusionMetrics",
    "EngineStats",
    "FlopsUtilization",
    "IterationDetails",
    "KVBlocksExhausted",
    "KVTransferMetrics",
    "Preempted",
    "PrefixCacheHits",
    "SpecDecodeMetrics",
]

_RATES = (
    "Avg prompt throughput: {prompt_tokens_per_second} tokens/s, Avg generation throughput: {generation_tokens_per_second}"
    " tokens/s, Running: {running} reqs, "
)


class EngineStats(Record):
    """The periodic metrics line (v1/metrics/loggers.py; engine/metrics.py in V0)."""

    engine: Word | None = None
    """Engine index, where several report."""
    engines: int | None = None
    """Number of engines, where one line sums several up: requests are sums, cache usage a mean."""
    prompt_tokens_per_second: float
    """Prompt tokens processed per second since the last line."""
    generation_tokens_per_second: float
    """Tokens generated per second since the last line."""
    running: int
    """Requests in the running batch."""
    waiting: int
    """Requests waiting (`Pending` in V0); holds the deferred ones from 0.20.2 on."""
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
    external_prefix_cache_hit_percent: float | None = None
    """Hits in the cache behind a KV connector."""
    mm_cache_hit_percent: float | None = None
    """Hits in the cache of multimodal inputs."""
    corrupted: int | None = None
    """Requests with NaN in their logits, where that is watched."""
    device: Word
    """The device the line names."""

    templates = (
        Template(
            "[[Engine {engine}: ]][[{engines} Engines Aggregated: ]]" + _RATES + "Waiting: {waiting} reqs"
            "[[, Deferred: {deferred} reqs]][[, KV fetch: {_} completed waiting]][[, Preemptions: {preemptions}]],"
            " {device} KV cache usage: {kv_cache_usage_percent}%"
            "[[, Prefix cache hit rate: {prefix_cache_hit_percent}%]][[, Corrupted: {corrupted} reqs]]"
            "[[, External prefix cache hit rate: {external_prefix_cache_hit_percent}%]]"
            "[[, MM cache hit rate: {mm_cache_hit_percent}%]][[, {_}]]",
            versions=">=0.7.3",
            example="Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3"
            " reqs, Waiting: 2 reqs, Preemptions: 1, GPU KV cache usage: 4.2%, Prefix cache hit rate: 31.5%, MM cache hit"
            " rate: 12.5%",
        ),
        Template(
            _RATES + "Waiting: {waiting} reqs {device} KV cache usage: {kv_cache_usage_percent}%.",
            versions=">=0.7.1,<0.7.3",
            example="Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3 reqs,"
            " Waiting: 0 reqs GPU KV cache usage: 4.2%.",
        ),
        Template(
            _RATES + "Swapped: {swapped} reqs, Pending: {waiting} reqs, {device} KV cache usage:"
            " {kv_cache_usage_percent}%, CPU KV cache usage: {cpu_kv_cache_usage_percent}%[[.]]",
            versions=">=0.2.0,<0.11.1",
            example="Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 250.1 tokens/s, Running: 3 reqs,"
            " Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 4.2%, CPU KV cache usage: 0.0%.",
        ),
    )


class PrefixCacheHits(Record):
    """Prefix cache hits of V0 on a line of their own (engine/metrics.py)."""

    gpu_percent: float
    """Hits on the device."""
    cpu_percent: float
    """Hits in the swap space."""

    templates = (
        Template(
            "Prefix cache hit rate: GPU: {gpu_percent}%, CPU: {cpu_percent}%",
            versions=">=0.5.5,<0.11.1",
            example="Prefix cache hit rate: GPU: 85.30%, CPU: 0.00%",
        ),
    )


class Preempted(Record):
    """V0 took the KV cache from a running request; printed for the 1st and every 50th (core/scheduler.py)."""

    request: str
    """The request."""
    mode: Word
    """RECOMPUTE or SWAP."""
    total: int | None = None
    """Preemptions so far."""

    templates = (
        Template(
            "Sequence group {request} is preempted by PreemptionMode.{mode} mode because there is not enough KV cache space."
            " This can affect the end-to-end performance. Increase gpu_memory_utilization or tensor_parallel_size to provide"
            " more KV cache memory. total_num_cumulative_preemption={total}",
            versions=">=0.4.3,<0.11",
            example="Sequence group cmpl-1a2b is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV"
            " cache space. This can affect the end-to-end performance. Increase gpu_memory_utilization or"
            " tensor_parallel_size to provide more KV cache memory. total_num_cumulative_preemption=1",
        ),
        Template(
            "Sequence group {request} is preempted by PreemptionMode.{mode} mode because there is not enough KV cache space."
            " This can affect the end-to-end performance.[[ Increase gpu_memory_utilization or tensor_parallel_size to"
            " provide more KV cache memory.]]",
            versions="",
            source="vllm before 0.4.3",
            example="Sequence group cmpl-1a2b is preempted by PreemptionMode.SWAP mode because there is not enough KV cache"
            " space. This can affect the end-to-end performance.",
        ),
    )


_STEP = (
    "Iteration({iteration}): {context_requests} context requests, {context_tokens} context tokens, {generation_requests}"
    " generation requests, {generation_tokens} generation tokens, iteration elapsed time: {milliseconds} ms"
)


class IterationDetails(Record):
    """One scheduler step (`--enable-logging-iteration-details`; v1/engine/core.py, v1/metrics/loggers.py)."""

    engine: Word | None = None
    """Engine index."""
    iteration: int
    """Number of the step."""
    context_requests: int
    """Requests still reading their prompt."""
    context_tokens: int
    """Prompt tokens of the step."""
    generation_requests: int
    """Requests generating."""
    generation_tokens: int
    """Tokens generated."""
    milliseconds: float
    """Time the step took."""
    device: Word | None = None
    """The device, from 0.26."""
    kv_cache_usage_percent: float | None = None
    """Share of the KV cache in use, from 0.26."""

    templates = (
        Template(
            "[[Engine {engine}: ]]"
            + _STEP
            + "[[ (dummy)]], {device} KV cache usage: {kv_cache_usage_percent}%[[, {_}]]",
            versions=">=0.26.0",
            example="Engine 000: Iteration(12): 1 context requests, 512 context tokens, 7 generation requests, 7 generation"
            " tokens, iteration elapsed time: 12.34 ms, GPU KV cache usage: 12.1%",
        ),
        Template(
            _STEP + "[[ (dummy)]]",
            versions=">=0.14.0,<0.26.0",
            example="Iteration(12): 1 context requests, 512 context tokens, 7 generation requests, 7 generation tokens,"
            " iteration elapsed time: 12.34 ms",
        ),
    )


class SpecDecodeMetrics(Record):
    """How many drafted tokens were accepted (v1/spec_decode/metrics.py; engine/metrics.py in V0)."""

    accepted_tokens: int
    """Tokens accepted."""
    drafted_tokens: int
    """Tokens drafted."""
    acceptance_percent: float | None = None
    """Share accepted; None where the line says `nan` because nothing was drafted."""
    acceptance_share: float | None = None
    """Share accepted as a fraction (V0)."""
    mean_acceptance_length: float | None = None
    """Tokens gained per step, with the one the model makes itself."""
    accepted_tokens_per_second: float | None = None
    """Tokens accepted per second."""
    drafted_tokens_per_second: float | None = None
    """Tokens drafted per second."""
    emitted_tokens: int | None = None
    """Tokens given out (V0)."""
    position_rates: str | None = None
    """Acceptance by position in the draft, as printed."""

    templates = (
        Template(
            "SpecDecoding metrics: Mean acceptance length: {mean_acceptance_length}, Accepted throughput:"
            " {accepted_tokens_per_second} tokens/s, Drafted throughput: {drafted_tokens_per_second} tokens/s, Accepted:"
            " {accepted_tokens} tokens, Drafted: {drafted_tokens} tokens, Per-position acceptance rate: {position_rates},"
            " Avg Draft acceptance rate: [[{acceptance_percent}]][[nan]]%",
            versions=">=0.10.2",
            example="SpecDecoding metrics: Mean acceptance length: 2.41, Accepted throughput: 100.20 tokens/s, Drafted"
            " throughput: 210.40 tokens/s, Accepted: 1002 tokens, Drafted: 2104 tokens, Per-position acceptance rate: 0.710,"
            " 0.412, Avg Draft acceptance rate: 47.6%",
        ),
        Template(
            "SpecDecoding metrics: Draft acceptance rate: [[{acceptance_percent}]][[nan]]%, Mean acceptance length:"
            " {mean_acceptance_length}, Accepted: {accepted_tokens} tokens, Drafted: {drafted_tokens} tokens, Per-position"
            " acceptance rate: {position_rates}",
            versions=">=0.8.5,<0.10.2",
            example="SpecDecoding metrics: Draft acceptance rate: 47.6%, Mean acceptance length: 2.41, Accepted: 1002 tokens,"
            " Drafted: 2104 tokens, Per-position acceptance rate: 0.710, 0.412",
        ),
        Template(
            "SpecDecoding metrics: Draft acceptance rate: [[{acceptance_percent}]][[nan]]%, Accepted: {accepted_tokens}"
            " tokens, Drafted: {drafted_tokens} tokens",
            versions=">=0.8.3,<0.8.5",
            example="SpecDecoding metrics: Draft acceptance rate: 47.6%, Accepted: 1002 tokens, Drafted: 2104 tokens",
        ),
        Template(
            "Speculative metrics: Draft acceptance rate: {acceptance_share}, System efficiency: {_}, Number of speculative"
            " tokens: {_}, Number of accepted tokens: {accepted_tokens}, Number of draft tokens: {drafted_tokens}, Number of"
            " emitted tokens: {emitted_tokens}.",
            versions=">=0.5.3,<0.10",
            example="Speculative metrics: Draft acceptance rate: 0.476, System efficiency: 0.612, Number of speculative"
            " tokens: 5, Number of accepted tokens: 1002, Number of draft tokens: 2104, Number of emitted tokens: 1544.",
        ),
        Template(
            "Speculative metrics: Draft acceptance rate: {acceptance_share}, System efficiency: {_}, Number of speculative"
            " tokens: {_}, Number of accepted tokens: {accepted_tokens}, Number of draft tokens tokens: {drafted_tokens},"
            " Number of emitted tokens tokens: {emitted_tokens}.",
            versions=">=0.4.1,<0.5.3",
            example="Speculative metrics: Draft acceptance rate: 0.476, System efficiency: 0.612, Number of speculative"
            " tokens: 5, Number of accepted tokens: 1002, Number of draft tokens tokens: 2104, Number of emitted tokens"
            " tokens: 1544.",
        ),
    )


class DiffusionMetrics(Record):
    """Progress of block-diffusion decoding (v1/spec_decode/metrics.py)."""

    committed_tokens: int
    """Tokens settled."""
    committed_tokens_per_second: float
    """Tokens settled per second."""
    denoising_steps: int
    """Steps taken."""

    templates = (
        Template(
            "DiffusionDecoding metrics: Committed token throughput: {committed_tokens_per_second} tokens/s, Mean denoising"
            " steps per canvas: {_}, Mean tokens committed per denoising step: {_}, Committed: {committed_tokens} tokens,"
            " Denoising steps: {denoising_steps}, Canvas positions evaluated: {_}",
            versions=">=0.24.0",
            example="DiffusionDecoding metrics: Committed token throughput: 100.20 tokens/s, Mean denoising steps per canvas:"
            " 8.10, Mean tokens committed per denoising step: 3.95, Committed: 1002 tokens, Denoising steps: 254, Canvas"
            " positions evaluated: 8128",
        ),
    )


class KVTransferMetrics(Record):
    """What a KV connector moved (distributed/kv_transfer/kv_connector/v1/metrics.py)."""

    metrics: str
    """The figures as printed."""

    templates = (
        Template(
            "KV Transfer metrics: {metrics}",
            versions=">=0.11.0",
            example="KV Transfer metrics: Num successful transfers=12, Avg xfer time (ms)=3.2, Throughput (MB/s)=812.5",
        ),
    )


class KVBlocksExhausted(Record):
    """The KV pool had no block left where the scheduler was sure of one (v1/core/block_pool.py; core/evictor.py in V0)."""

    blocks: int | None = None
    """Blocks asked for, where the line has it."""

    templates = (
        Template(
            "Cannot get {blocks} free blocks from the pool",
            versions=">=0.6.4",
            example="Cannot get 12 free blocks from the pool",
        ),
        Template("No free blocks available", versions=">=0.6.4", example="No free blocks available"),
        Template(
            "No usable cache memory left",
            versions=">=0.4.0,<0.11",
            example="No usable cache memory left",
        ),
    )


class FlopsUtilization(Record):
    """Rate of arithmetic and of memory traffic (v1/metrics/perf.py)."""

    teraflops_per_second: float
    """Arithmetic."""
    gigabytes_per_second: float
    """Memory traffic in 1e9 bytes."""
    engine: Word | None = None
    """Engine index."""

    templates = (
        Template(
            "[[Engine {engine}: ]]MFU: {teraflops_per_second} TF/s/GPU {gigabytes_per_second} GB/s/GPU",
            versions=">=0.14.0,<0.30",
            example="Engine 000: MFU: 120.5 TF/s/GPU 812.3 GB/s/GPU",
        ),
        Template(
            "[[Engine {engine}: ]]MFU: {teraflops_per_second} TF/s/device {gigabytes_per_second} GB/s/device",
            versions=">=0.30.0",
            example="Engine 000: MFU: 120.5 TF/s/device 812.3 GB/s/device",
        ),
    )
