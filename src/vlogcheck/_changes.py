"""What releases are known to have changed about the memory ledger, each with its source.

`since` is the first release that was read with the change: it landed between that one and the release read before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

__all__ = ["CHANGES", "Change", "changes_between"]


class Change(NamedTuple):
    """One change."""

    since: str
    terms: tuple[str, ...]
    """Terms of the ledger it touches."""
    text: str
    source: str
    """Where it was read: a file of vLLM, or an issue number of its repository."""


CHANGES = (
    Change("0.2.5", ("activation",), "the profile run takes the largest batch into account", "issue 2136"),
    Change(
        "0.5.1",
        ("activation", "blocks", "tokens"),
        "the profile run gives vision models their images at the largest size allowed",
        "issues 5976, 6124",
    ),
    Change(
        "0.6.4",
        ("non_torch", "rest", "kv_cache"),
        "the utilization limits the whole card: memory of other processes is charged to this server",
        "issue 10451, worker/worker.py",
    ),
    Change(
        "0.6.5",
        ("non_torch", "rest", "kv_cache"),
        "V0 charges only what this server added (weights, non-torch, activations)",
        "worker/worker.py",
    ),
    Change(
        "0.7.1",
        ("kv_bytes_per_token",),
        "latent attention (DeepSeek) is cached as one latent instead of K and V of every head",
        "attention/backends/mla",
    ),
    Change(
        "0.8.0",
        ("non_torch", "rest", "kv_cache"),
        "the V1 engine is the default: memory of other processes is charged to this server again",
        "v1/worker/gpu_worker.py, issue 14376",
    ),
    Change(
        "0.8.0",
        ("kv_bytes_per_token", "tokens", "concurrency"),
        "V1 counts latent attention (DeepSeek) once, not as K and V: twice the tokens",
        "pull request 14462",
    ),
    Change(
        "0.8.3",
        ("activation", "max_num_seqs"),
        "on cards of 70 GiB and more the defaults are 1,024 requests and 8,192 tokens per step instead of 256 and 2,048",
        "engine/arg_utils.py",
    ),
    Change(
        "0.9.1",
        ("non_torch", "rest", "kv_cache"),
        "only what this server added is charged; it refuses to start where less is free than asked for",
        "v1/worker/gpu_worker.py",
    ),
    Change(
        "0.9.1",
        ("tokens", "concurrency", "kv_bytes_per_token"),
        "layers with a sliding window keep only their window (hybrid KV cache manager)",
        "v1/core/kv_cache_utils.py",
    ),
    Change(
        "0.14.1",
        ("tokens", "concurrency"),
        "chunked local attention (Llama 4) uses the hybrid KV cache manager by default",
        "envs.py",
    ),
    Change(
        "0.18.1",
        ("tokens", "concurrency"),
        "groups of layers that differ by up to half in number are padded to one size",
        "v1/core/kv_cache_utils.py",
    ),
    Change(
        "0.20.2",
        ("utilization", "requested"),
        "the default utilization is 0.92 instead of 0.90",
        "config/cache.py",
    ),
    Change(
        "0.20.2",
        ("graph_estimate", "kv_cache", "rest"),
        "memory of CUDA graphs is estimated and taken off the budget (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 undoes it)",
        "v1/worker/gpu_worker.py, issue 45178",
    ),
    Change(
        "0.20.2",
        ("tokens",),
        "the printed tokens are the concurrency × the request length: for models whose layers differ they cannot be compared"
        " with older ones",
        "v1/core/kv_cache_utils.py",
    ),
    Change(
        "0.21.0",
        ("weights",),
        "weights are loaded with an allocator that splits large blocks, which changes what loading is said to take",
        "v1/worker/gpu_worker.py",
    ),
    Change(
        "0.25.1",
        ("kv_cache", "tokens"),
        "for multimodal models memory for decoding images and video is taken off what is printed as available",
        "v1/worker/gpu_worker.py",
    ),
    Change(
        "0.26.0",
        ("graph_estimate", "kv_cache"),
        "graphs are estimated on ROCm too; the estimate is reported to be several GiB too high for some models",
        "issue 50780",
    ),
    Change(
        "0.26.0",
        ("concurrency", "tokens"),
        "a request with a sliding window is planned with the tokens of all steps in flight, not of one",
        "v1/core/kv_cache_utils.py",
    ),
    Change(
        "0.27.1",
        ("weights", "non_torch", "consumed", "rest"),
        "weights and non-torch memory are measured together, as a difference of the card's free memory",
        "utils/mem_utils.py",
    ),
    Change(
        "0.28.0",
        ("activation", "rest"),
        "on cards of 160 GiB and more the default is 16,384 tokens per step instead of 8,192",
        "engine/arg_utils.py",
    ),
    Change(
        "0.29.0",
        ("blocks", "tokens"),
        "admission plans with one block less: the null block is set aside",
        "v1/core/kv_cache_utils.py",
    ),
    Change(
        "0.32.0",
        ("requested",),
        "weights held by another process are taken off the budget",
        "v1/worker/utils.py",
    ),
)
"""In order of the release."""


def changes_between(old: Release, new: Release) -> list[Change]:
    """Return what changed after `old`, up to and including `new`."""
    return [change for change in CHANGES if old.before(change.since) and new.since(change.since)]
