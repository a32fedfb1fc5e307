"""Warm-up and the buffers fixed by it: what was left out, and what did not fit afterwards."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = [
    "AutotuneTokens",
    "ProfilingLengthTooShort",
    "WarmupFailed",
    "WarmupSkipped",
    "WorkspaceTooSmall",
]


class WarmupSkipped(Record):
    """The KV cache has too few blocks for a warm-up step (v1/worker/gpu/warmup.py): the first requests are slower."""

    blocks: int
    """Blocks there are."""
    required_blocks: int
    """Blocks the step needs."""

    templates = (
        Template(
            "Skipping V2 mixed prefill+decode warmup because only {blocks} KV blocks are available for {required_blocks}"
            " required warmup blocks.",
            versions=">=0.24.0",
            example="Skipping V2 mixed prefill+decode warmup because only 3 KV blocks are available for 8 required warmup"
            " blocks.",
        ),
    )


class WarmupFailed(Record):
    """A kernel could not be tuned ahead; tuning in the first request may run out of memory (layers/mamba)."""

    kernel: str
    """GDN prefill or Mamba2 SSD."""
    layer: str
    """The layer."""

    templates = (
        Template(
            "GDN prefill kernel warmup (T={_}) failed for layer {layer}. First inference may OOM due to autotuner.",
            versions=">=0.18.0",
            example="GDN prefill kernel warmup (T=64) failed for layer model.layers.0.linear_attn. First inference may OOM"
            " due to autotuner.",
            values={"kernel": "GDN prefill"},
        ),
        Template(
            "Mamba2 SSD kernel warmup failed for layer {layer} (initial_states={_}[[, final_states={_}]]). First"
            " inference may experience latency spike or OOM due to autotuner.",
            versions=">=0.22.0",
            example="Mamba2 SSD kernel warmup failed for layer model.layers.0.mixer (initial_states=True,"
            " final_states=True). First inference may experience latency spike or OOM due to autotuner.",
            values={"kernel": "Mamba2 SSD"},
        ),
    )


class AutotuneTokens(Record):
    """Kernels are tuned with a batch of this size (model_executor/warmup/kernel_warmup.py)."""

    batch_tokens: int
    """Tokens of the batch."""

    templates = (
        Template(
            "Running FlashInfer autotune with {batch_tokens} tokens[[ and token buckets {_}]].",
            versions=">=0.29.0",
            example="Running FlashInfer autotune with 8192 tokens and token buckets (1, 2, 4).",
        ),
        Template(
            "Running FlashInfer BF16-only autotune with {batch_tokens} tokens.",
            versions=">=0.30.0,<0.32",
            example="Running FlashInfer BF16-only autotune with 8192 tokens.",
        ),
    )


class WorkspaceTooSmall(Record):
    """A kernel asks for more scratch memory than was set aside while profiling (v1/worker/workspace.py)."""

    caller: str
    """Who asks."""
    required_gib: GiB
    """What it needs."""
    current_gib: GiB
    """What there is."""

    templates = (
        Template(
            "Workspace is locked but allocation from '{caller}' requires {required_gib:.2MiB} MB, current size is"
            " {current_gib:.2MiB} MB. Workspace growth is not allowed after locking.",
            versions=">=0.13.0",
            example="Workspace is locked but allocation from 'flashmla.py:412:forward' requires 512.00 MB, current size is"
            " 256.00 MB. Workspace growth is not allowed after locking.",
        ),
    )


_WORST = (
    " is too short to hold the multi-modal embeddings in the worst case ({needed_tokens} tokens in total, out of which {_} are"
    " reserved for multi-modal embeddings). This may cause certain multi-modal inputs to fail during inference, even when the"
    " input text is short. To avoid this, you should increase `max_model_len`, reduce `max_num_seqs`, and/or reduce"
    " `mm_counts`."
)
_WORST_EXAMPLE = _WORST.replace("{needed_tokens}", "9800").replace("{_}", "{'image': 9600}")


class ProfilingLengthTooShort(Record):
    """V0's profile run does not hold the largest multimodal input, so its memory is underestimated (multimodal/profiling.py)."""

    profiled_tokens: int
    """Length of a profiled sequence."""
    needed_tokens: int
    """Tokens of the largest input."""

    templates = (
        Template(
            "The sequence length used for profiling (max_num_batched_tokens / max_num_seqs = {profiled_tokens})"
            + _WORST,
            versions=">=0.8.0,<0.11",
            example="The sequence length used for profiling (max_num_batched_tokens / max_num_seqs = 2048)"
            + _WORST_EXAMPLE,
        ),
        Template(
            "The encoder sequence length used for profiling (max_num_batched_tokens / max_num_seqs = {profiled_tokens})"
            + _WORST,
            versions=">=0.9.0,<0.11.1",
            example="The encoder sequence length used for profiling (max_num_batched_tokens / max_num_seqs = 2048)"
            + _WORST_EXAMPLE,
        ),
        Template(
            "The encoder sequence length used for profiling (max_num_batched_tokens / max_num_seqs = {profiled_tokens}) "
            + _WORST,
            versions=">=0.8.4,<0.9",
            example="The encoder sequence length used for profiling (max_num_batched_tokens / max_num_seqs = 2048) "
            + _WORST_EXAMPLE,
        ),
        Template(
            "The context length ({profiled_tokens}) of the model" + _WORST,
            versions=">=0.6.5,<0.8",
            example="The context length (2048) of the model" + _WORST_EXAMPLE,
        ),
    )
