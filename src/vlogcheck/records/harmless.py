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
            example="Warming up Step5 DSA scored prefill with 8192 tokens.",
        ),
        Template(
            "Skipping Step5 DSA scored-prefill warmup: needs {tokens} tokens per step.",
            versions=">=0.33.0",
            example="Skipping Step5 DSA scored-prefill warmup: needs 8192 tokens per step.",
        ),
        Template(
            "DSV4.1 mHC: MoE top-k finalize fused into the all-reduce for up to {tokens} tokens.",
            versions=">=0.31.0",
            example="DSV4.1 mHC: MoE top-k finalize fused into the all-reduce for up to 256 tokens.",
        ),
        Template(
            "K3 latent-MoE tail fusion with deferred top-k finalization is enabled for up to {tokens} tokens.",
            versions=">=0.29.0",
            example="K3 latent-MoE tail fusion with deferred top-k finalization is enabled for up to 512 tokens.",
        ),
        Template(
            "DeepSeek V4.1 indexer: candidate consumers score only the candidate blocks with DeepGEMM sparse MQA"
            " logits ({_} sparse blocks of {tokens} tokens per row).",
            versions=">=0.31.0",
            example="DeepSeek V4.1 indexer: candidate consumers score only the candidate blocks with DeepGEMM sparse"
            " MQA logits (128 sparse blocks of 64 tokens per row).",
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
            example="Very small vocabulary intersection (97 tokens).",
        ),
        Template(
            "Memory usage before: {_}",
            versions=">=0.4.1",
            example="Memory usage before: CPU: (maxrss: 2,911MiB F: 481,202MiB) GPU: (U: 1,024MiB F: 80,127MiB T:"
            " 81,151MiB) TORCH: (R: 512MiB/512MiB, A: 498MiB/498MiB)",
        ),
        Template(
            "Memory usage after: {_}",
            versions=">=0.4.1",
            example="Memory usage after: CPU: (maxrss: 3,402MiB F: 480,711MiB) GPU: (U: 16,344MiB F: 64,807MiB T:"
            " 81,151MiB) TORCH: (R: 15,832MiB/15,832MiB, A: 15,818MiB/15,818MiB)",
        ),
        Template(
            "Reloaded LoRA adapter '{_}' in place from the same path '{_}'. Prefix-cache blocks computed with its"
            " previous weights are not invalidated; load changed weights from a new path to avoid reusing them.",
            versions=">=0.31.0",
            example="Reloaded LoRA adapter 'sql-lora' in place from the same path '/adapters/sql-lora'. Prefix-cache"
            " blocks computed with its previous weights are not invalidated; load changed weights from a new path to"
            " avoid reusing them.",
        ),
        Template(
            "Please follow the prompt format that is documented on HuggingFace which does not involve repeating {_}"
            " tokens.",
            versions=">=0.5.1,<0.8.3",
            example="Please follow the prompt format that is documented on HuggingFace which does not involve"
            " repeating <|image|> tokens.",
        ),
        Template(
            "FP8 {_} TP loading uses complete checkpoint blocks: local allocation {_}, without weight requantization.",
            versions=">=0.31.0",
            example="FP8 marlin TP loading uses complete checkpoint blocks: local allocation 384, without weight"
            " requantization.",
        ),
        Template(
            "DeepSeek V4 FP8 WO_A needs group-128 blocks for {_} groups of {_} outputs, got weight {_} and scale {_}."
            " Falling back to BF16 WO_A.",
            versions=">=0.31.0",
            example="DeepSeek V4 FP8 WO_A needs group-128 blocks for 8 groups of 1024 outputs, got weight (8192, 4096)"
            " and scale (64, 16). Falling back to BF16 WO_A.",
        ),
        Template(
            "Decoder SWA bounded replay: in eager prefill steps, layer {_} writes its KV for every token, and the rest"
            " of it and layers {_}-{_} run on each request's last {_} tokens only.",
            versions=">=0.32.0",
            example="Decoder SWA bounded replay: in eager prefill steps, layer 56 writes its KV for every token, and"
            " the rest of it and layers 57-60 run on each request's last 128 tokens only.",
        ),
        Template(
            "To initialize buffers correctly, we instantiate the parent module and and extract the value of the buffer"
            " from it. In this case, the parent module is the base model. Instantiating the entire model here risks"
            " GPU OOM. Could this buffer be moved to a child module?",
            versions=">=0.9.0,<0.10.0",
            example="To initialize buffers correctly, we instantiate the parent module and and extract the value of"
            " the buffer from it. In this case, the parent module is the base model. Instantiating the entire model"
            " here risks GPU OOM. Could this buffer be moved to a child module?",
        ),
        Template(
            "Increase the page size from {_} to {_} to make sure there'sno SMEM OOM",
            versions=">=0.8.5,<0.9.2",
            example="Increase the page size from 16 to 32 to make sure there'sno SMEM OOM",
        ),
        Template(
            "XPU Graph support is experimental and has known limitations: (1) only single-GPU execution is supported;"
            " (2) FLASH_ATTN supports PIECEWISE mode only; use TRITON_ATTN for FULL mode; (3) XPU Graph may increase"
            " device memory usage, potentially causing OOM errors or leaving less memory for the KV cache and reducing"
            " performance.",
            versions=">=0.27.0,<0.28.0",
            example="XPU Graph support is experimental and has known limitations: (1) only single-GPU execution is"
            " supported; (2) FLASH_ATTN supports PIECEWISE mode only; use TRITON_ATTN for FULL mode; (3) XPU Graph may"
            " increase device memory usage, potentially causing OOM errors or leaving less memory for the KV cache and"
            " reducing performance.",
        ),
        *(
            Template(text, versions="", source=source, embedded=True, example=example)
            for source, text, example in (
                (
                    "unsloth",
                    "Num GPUs = {_}. Max memory: {_} GB. Platform: ",
                    "Example GPU. Num GPUs = 1. Max memory: 23.546 GB. Platform: Linux.",
                ),
                (
                    "unsloth",
                    "Unsloth: Your GPU has {_} with VRAM = ",
                    "Unsloth: Your GPU has 8.9 with VRAM = 23.55 GB.",
                ),
                (
                    "unsloth",
                    "Unsloth: vLLM's KV Cache can use up to ",
                    "Unsloth: vLLM's KV Cache can use up to 16.09 GB. Also swap space = 6 GB.",
                ),
            )
        ),
        *(
            Template(text, versions="", source="triton", example=example)
            for text, example in (
                (
                    '[["]]Pinned memory pool is created at {_}',
                    "Pinned memory pool is created at '0x7f8380000000' with size 268435456",
                ),
                (
                    '[["]]CUDA memory pool is created on device {_}',
                    "CUDA memory pool is created on device 0 with size 67108864",
                ),
            )
        ),
    )
