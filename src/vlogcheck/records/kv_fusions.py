"""Kernels around the KV cache: which are possible for its type, which are fused."""

from __future__ import annotations

from vlogcheck.template import Record, Template

__all__ = ["KVBackendChoice", "KVFusion"]


class KVBackendChoice(Record):
    """A quantised KV cache decides which attention kernels are possible."""

    templates = (
        Template(
            "Cannot use {_} backend for FP8 KV cache.",
            versions=">=0.4.3,<0.11.0",
            example="Cannot use FlashAttention-2 backend for FP8 KV cache.",
        ),
        Template(
            "Please use FlashInfer backend with FP8 KV Cache for better performance by setting environment variable"
            " {_}",
            versions=">=0.6.0,<0.10.2",
            example="Please use FlashInfer backend with FP8 KV Cache for better performance by setting environment"
            " variable 16",
        ),
        Template(
            "FP8 KV cache is enabled but {_}",
            versions=">=0.20.0",
            example="FP8 KV cache is enabled but 16",
        ),
        Template(
            "FP8 KV cache on the CPU backend only does not support fp16 for now, cast to bf16.",
            versions=">=0.8.0,<0.11.1",
            example="FP8 KV cache on the CPU backend only does not support fp16 for now, cast to bf16.",
        ),
        Template(
            "Unable to perform FP8 prefill attention when use_prefill_query_quantization is enabled. {_}",
            versions=">=0.17.0",
            example="Unable to perform FP8 prefill attention when use_prefill_query_quantization is enabled. 16",
        ),
        Template(
            "FlashInfer XQA decode does not support head_dim={_}; reverting this KV-cache group to native FlashInfer"
            " decode.",
            versions=">=0.29.0",
            example="FlashInfer XQA decode does not support head_dim=16; reverting this KV-cache group to native"
            " FlashInfer decode.",
        ),
        Template(
            "KV cache is {_} GiB per layer, past the 2 GiB where the Gluon MLA kernel drops its KV bounds mask; {_}",
            versions=">=0.31.0",
            example="KV cache is 16 GiB per layer, past the 2 GiB where the Gluon MLA kernel drops its KV bounds"
            " mask; 16",
        ),
        Template(
            "TRTLLM attention is disabled because KV transfer (P/D disaggregation) is enabled. {_}",
            versions=">=0.16.0,<0.17.0",
            example="TRTLLM attention is disabled because KV transfer (P/D disaggregation) is enabled. 16",
        ),
        Template(
            "fuse_attn_quant: not registering the NVFP4-output attention fusion with an NVFP4 KV cache {_}",
            versions=">=0.30.0",
            example="fuse_attn_quant: not registering the NVFP4-output attention fusion with an NVFP4 KV cache 16",
        ),
        Template(
            "Gemma4 model has heterogeneous head dimensions {_}. Using per-layer FA3/FA4 selection for FP8 KV cache"
            " on SM90.",
            versions=">=0.31.0",
            example="Gemma4 model has heterogeneous head dimensions 16. Using per-layer FA3/FA4 selection for FP8 KV"
            " cache on SM90.",
        ),
        Template(
            "Skipping CompressedTensors config group for {_}. Attention quant is coupled with KV-cache quantization"
            " in vLLM.",
            versions=">=0.15.0",
            example="Skipping CompressedTensors config group for 16. Attention quant is coupled with KV-cache"
            " quantization in vLLM.",
        ),
        Template(
            "HpcRopeNorm: KV cache pages interleave K and V, {_}",
            versions=">=0.29.0",
            example="HpcRopeNorm: KV cache pages interleave K and V, 16",
        ),
        Template(
            "The kv-cache-dtype '{_}' already exists and will be overwritten by handler {_}.",
            versions=">=0.33.0",
            example="The kv-cache-dtype '16' already exists and will be overwritten by handler 16.",
        ),
    )


class KVFusion(Record):
    """Kernels that write the KV cache are fused with their neighbours, or not (compilation/passes/fusion/*)."""

    templates = (
        Template(
            "QK Norm+{_}KVCache fusion not enabled{_}",
            versions=">=0.26.0",
            example="QK Norm+RoPE/KVCache fusion not enabledRoPE/",
        ),
        Template(
            "QK-Norm+{_}KVCache fusion{_}",
            versions=">=0.26.0",
            example="QK-Norm+RoPE/KVCache fusionRoPE/",
        ),
        Template(
            "KV cache fusion currently only enabled on ROCm. The fusion will be disabled.",
            versions=">=0.17.0",
            example="KV cache fusion currently only enabled on ROCm. The fusion will be disabled.",
        ),
        Template(
            "MLA KV cache update with RoPE fusion enabled but the current platform is not CUDA or ROCm. The fusion"
            " will be disabled.",
            versions=">=0.22.0",
            example="MLA KV cache update with RoPE fusion enabled but the current platform is not CUDA or ROCm. The"
            " fusion will be disabled.",
        ),
        Template(
            "{_}rope_kvcache is enabled, but splitting_ops is None and Inductor graph partition is not enabled.{_}",
            versions=">=0.19.0",
            example="fuse_rope_kvcache is enabled, but splitting_ops is None and Inductor graph partition is not"
            " enabled.fuse_",
        ),
        Template(
            "Max num batched tokens below {_}kvcache fusion threshold, {_}fusion enabled for num_tokens <= {_}.",
            versions=">=0.17.0",
            example="Max num batched tokens below 16kvcache fusion threshold, 16fusion enabled for num_tokens <= 16.",
        ),
        Template(
            "Canonicalized degenerate KV cache strides ({_}): {_}",
            versions=">=0.21.0",
            example="Canonicalized degenerate KV cache strides (16): 16",
        ),
    )
