"""Lines that look like figures of memory, blocks or tokens and are no term of the ledger."""

from __future__ import annotations

from vlogcheck.template import Record, Template

__all__ = ["HarmlessMention", "KernelTokens"]


class KernelTokens(Record):
    """A kernel path is taken, or warmed up, for steps of up to so many tokens."""

    tokens: int
    """Tokens."""

    templates = (
        Template(
            "Warming up Step5 DSA scored prefill with {tokens} tokens.",
            versions=">=0.33.0",
            example="Warming up Step5 DSA scored prefill with 4096 tokens.",
        ),
        Template(
            "Skipping Step5 DSA scored-prefill warmup: needs {tokens} tokens per step.",
            versions=">=0.33.0",
            example="Skipping Step5 DSA scored-prefill warmup: needs 4096 tokens per step.",
        ),
        Template(
            "DSV4.1 mHC: MoE top-k finalize fused into the all-reduce for up to {tokens} tokens.",
            versions=">=0.31.0",
            example="DSV4.1 mHC: MoE top-k finalize fused into the all-reduce for up to 4096 tokens.",
        ),
        Template(
            "K3 latent-MoE tail fusion with deferred top-k finalization is enabled for up to {tokens} tokens.",
            versions=">=0.29.0",
            example="K3 latent-MoE tail fusion with deferred top-k finalization is enabled for up to 4096 tokens.",
        ),
        Template(
            "DeepSeek V4.1 indexer: candidate consumers score only the candidate blocks with DeepGEMM sparse MQA"
            " logits ({_} sparse blocks of {tokens} tokens per row).",
            versions=">=0.31.0",
            example="DeepSeek V4.1 indexer: candidate consumers score only the candidate blocks with DeepGEMM sparse"
            " MQA logits (16 sparse blocks of 4096 tokens per row).",
        ),
    )


class HarmlessMention(Record):
    """A line that speaks of memory or tokens and says nothing about the ledger."""

    templates = (
        Template(
            "`VLLM_ENABLE_RESPONSES_API_STORE` is enabled. This may cause a memory leak since we never remove"
            " responses from the store.",
            versions=">=0.10.1",
            example="`VLLM_ENABLE_RESPONSES_API_STORE` is enabled. This may cause a memory leak since we never"
            " remove responses from the store.",
        ),
        Template(
            "Writing outputs to memory buffer",
            versions=">=0.7.3,<0.33.0",
            example="Writing outputs to memory buffer",
        ),
        Template(
            "You should not set a max_size smaller than 1MB, which can lead to error or degradation to custom"
            " allreduce or rccl.",
            versions=">=0.9.2",
            example="You should not set a max_size smaller than 1MB, which can lead to error or degradation to"
            " custom allreduce or rccl.",
        ),
        Template(
            "Very small vocabulary intersection ({_} tokens).",
            versions=">=0.25.0",
            example="Very small vocabulary intersection (16 tokens).",
        ),
        Template(
            "Memory usage before: {_}",
            versions=">=0.4.1",
            example="Memory usage before: 16",
        ),
        Template(
            "Memory usage after: {_}",
            versions=">=0.4.1",
            example="Memory usage after: 16",
        ),
        Template(
            "Reloaded LoRA adapter '{_}' in place from the same path '{_}'. Prefix-cache blocks computed with its"
            " previous weights are not invalidated; {_}",
            versions=">=0.31.0",
            example="Reloaded LoRA adapter '16' in place from the same path '16'. Prefix-cache blocks computed with"
            " its previous weights are not invalidated; 16",
        ),
        Template(
            "Please follow the prompt format that is documented on HuggingFace which does not involve repeating {_}"
            " tokens.",
            versions=">=0.5.1,<0.8.3",
            example="Please follow the prompt format that is documented on HuggingFace which does not involve"
            " repeating 16 tokens.",
        ),
        Template(
            "FP8 {_} TP loading uses complete checkpoint blocks: local allocation {_}, without weight requantization.",
            versions=">=0.31.0",
            example="FP8 16 TP loading uses complete checkpoint blocks: local allocation 16, without weight"
            " requantization.",
        ),
        Template(
            "DeepSeek V4 FP8 WO_A needs group-128 blocks for {_}",
            versions=">=0.31.0",
            example="DeepSeek V4 FP8 WO_A needs group-128 blocks for 16",
        ),
        Template(
            "Decoder SWA bounded replay: {_} tokens only.",
            versions=">=0.32.0",
            example="Decoder SWA bounded replay: 16 tokens only.",
        ),
        Template(
            "To initialize buffers correctly, we instantiate the parent module {_}",
            versions=">=0.9.0,<0.10.0",
            example="To initialize buffers correctly, we instantiate the parent module 16",
        ),
        Template(
            "Increase the page size from {_} to {_} to make sure there's{_}no SMEM OOM",
            versions=">=0.8.5,<0.9.2",
            example="Increase the page size from 16 to 16 to make sure there's16no SMEM OOM",
        ),
        Template(
            "XPU Graph support is experimental and has known limitations: {_} XPU Graph may increase device memory"
            " usage, {_}",
            versions=">=0.27.0,<0.28.0",
            example="XPU Graph support is experimental and has known limitations: 16 XPU Graph may increase device"
            " memory usage, 16",
        ),
    )
