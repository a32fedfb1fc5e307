"""Kernels around the KV cache: which are possible for its type, which are fused."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["KVBackendChoice", "KVFusion"]


class KVBackendChoice(Record):
    """A quantised KV cache decides which attention kernels are possible (platforms/*, v1/attention/backends/*)."""

    layer_gib: GiB | None = None
    """KV cache of one layer, where its size decides."""

    templates = (
        Template(
            "Cannot use FlashAttention[[-2]] backend for FP8 KV cache.",
            versions=">=0.4.3,<0.11.0",
            example="Cannot use FlashAttention-2 backend for FP8 KV cache.",
        ),
        Template(
            "Please use FlashInfer backend with FP8 KV Cache for better performance by setting environment variable [["
            " ]]VLLM_ATTENTION_BACKEND=FLASHINFER",
            versions=">=0.6.0,<0.10.2",
            example="Please use FlashInfer backend with FP8 KV Cache for better performance by setting environment"
            " variable VLLM_ATTENTION_BACKEND=FLASHINFER",
        ),
        Template(
            "FP8 KV cache is enabled but prefill queries are not quantized to FP8. For long-context workloads (ISL >="
            " 4K), enabling FP8 prefill attention can significantly optimize prefill latency. To enable, add:"
            " --attention-config '{{\"use_prefill_query_quantization\": true}}'",
            versions=">=0.20.0",
            example="FP8 KV cache is enabled but prefill queries are not quantized to FP8. For long-context workloads"
            " (ISL >= 4K), enabling FP8 prefill attention can significantly optimize prefill latency. To enable, add:"
            " --attention-config '{\"use_prefill_query_quantization\": true}'",
        ),
        Template(
            "FP8 KV cache on the CPU backend only does not support fp16 for now, cast to bf16.",
            versions=">=0.8.0,<0.11.1",
            example="FP8 KV cache on the CPU backend only does not support fp16 for now, cast to bf16.",
        ),
        Template(
            "Unable to perform FP8 prefill attention when use_prefill_query_quantization is enabled. Please ensure"
            " that --kv-cache-dtype is set to fp8 and your prefill backend is compatible with FP8 attention.",
            versions=">=0.17.0",
            example="Unable to perform FP8 prefill attention when use_prefill_query_quantization is enabled. Please"
            " ensure that --kv-cache-dtype is set to fp8 and your prefill backend is compatible with FP8 attention.",
        ),
        Template(
            "FlashInfer XQA decode does not support head_dim={_}; reverting this KV-cache group to native FlashInfer"
            " decode.",
            versions=">=0.29.0",
            example="FlashInfer XQA decode does not support head_dim=192; reverting this KV-cache group to native"
            " FlashInfer decode.",
        ),
        Template(
            "KV cache is {layer_gib:.1f} GiB per layer, past the 2 GiB where the Gluon MLA kernel drops its KV bounds"
            " mask; using the padded ASM decode instead. Lower --gpu-memory-utilization or --max-model-len to get"
            " Gluon back.",
            versions=">=0.31.0",
            example="KV cache is 2.7 GiB per layer, past the 2 GiB where the Gluon MLA kernel drops its KV bounds"
            " mask; using the padded ASM decode instead. Lower --gpu-memory-utilization or --max-model-len to get"
            " Gluon back.",
        ),
        Template(
            "TRTLLM attention is disabled because KV transfer (P/D disaggregation) is enabled. TRTLLM attention"
            " requires strictly contiguous KV cache tensors which may not be guaranteed with KV transfer.",
            versions=">=0.16.0,<0.17.0",
            example="TRTLLM attention is disabled because KV transfer (P/D disaggregation) is enabled. TRTLLM"
            " attention requires strictly contiguous KV cache tensors which may not be guaranteed with KV transfer.",
        ),
        Template(
            "fuse_attn_quant: not registering the NVFP4-output attention fusion with an NVFP4 KV cache (no such"
            " trtllm-gen kernel). Layers whose o_proj takes NVFP4 input keep the unfused path (FP8 -> BF16 -> o_proj"
            " quant); FP8-output fusion is unaffected.",
            versions=">=0.30.0",
            example="fuse_attn_quant: not registering the NVFP4-output attention fusion with an NVFP4 KV cache (no"
            " such trtllm-gen kernel). Layers whose o_proj takes NVFP4 input keep the unfused path (FP8 -> BF16 ->"
            " o_proj quant); FP8-output fusion is unaffected.",
        ),
        Template(
            "Gemma4 model has heterogeneous head dimensions {_}. Using per-layer FA3/FA4 selection for FP8 KV cache on"
            " SM90.",
            versions=">=0.31.0",
            example="Gemma4 model has heterogeneous head dimensions {'sliding_attention': 256, 'full_attention': 512}."
            " Using per-layer FA3/FA4 selection for FP8 KV cache on SM90.",
        ),
        Template(
            "Skipping CompressedTensors config group for {_}. Attention quant is coupled with KV-cache quantization in"
            " vLLM.",
            versions=">=0.15.0",
            example="Skipping CompressedTensors config group for LlamaAttention. Attention quant is coupled with"
            " KV-cache quantization in vLLM.",
        ),
        Template(
            "HpcRopeNorm: KV cache pages interleave K and V, which hpc.rope_norm_store_kv[_fp8] cannot address, so K/V"
            " are written by a separate scatter. Update hpc-ops to a build with strided KV cache support to re-enable"
            " the fully fused write.",
            versions=">=0.29.0",
            example="HpcRopeNorm: KV cache pages interleave K and V, which hpc.rope_norm_store_kv[_fp8] cannot"
            " address, so K/V are written by a separate scatter. Update hpc-ops to a build with strided KV cache"
            " support to re-enable the fully fused write.",
        ),
        Template(
            "The kv-cache-dtype '{_}' already exists and will be overwritten by handler {_}.",
            versions=">=0.33.0",
            example="The kv-cache-dtype 'int8' already exists and will be overwritten by handler <class"
            " 'kv_plugin.Int8Handler'>.",
        ),
    )


class KVFusion(Record):
    """Kernels that write the KV cache are fused with their neighbours, or not (compilation/passes/fusion/*)."""

    patterns: int | None = None
    """Places in the model that were fused."""
    tokens: int | None = None
    """Steps of up to so many tokens use the fused kernel."""

    templates = (
        Template(
            "QK Norm+RoPE[[/MRoPE]]+KVCache fusion not enabled: unsupported dtype {_}",
            versions=">=0.26.0",
            example="QK Norm+RoPE/MRoPE+KVCache fusion not enabled: unsupported dtype torch.float32",
        ),
        Template(
            "QK Norm+RoPE[[/MRoPE]]+KVCache fusion not enabled for a layer: head_size={_} is not supported by the"
            " fused_qk_norm_rope_cache_pts_quant_shuffle kernel (supported: {_}). Falling back to the unfused path.",
            versions=">=0.26.0",
            example="QK Norm+RoPE/MRoPE+KVCache fusion not enabled for a layer: head_size=192 is not supported by the"
            " fused_qk_norm_rope_cache_pts_quant_shuffle kernel (supported: (64, 128, 256)). Falling back to the"
            " unfused path.",
        ),
        Template(
            "QK Norm+RoPE[[/MRoPE]]+KVCache fusion not enabled for a layer: head_size_v={_} differs from"
            " head_size={_}, which the fused kernel does not support. Falling back to the unfused path.",
            versions=">=0.26.0",
            example="QK Norm+RoPE/MRoPE+KVCache fusion not enabled for a layer: head_size_v=128 differs from"
            " head_size=192, which the fused kernel does not support. Falling back to the unfused path.",
        ),
        Template(
            "QK Norm+MRoPE+KVCache fusion not enabled for a layer: rotary_dim={_} exceeds head_size={_}.",
            versions=">=0.31.0",
            example="QK Norm+MRoPE+KVCache fusion not enabled for a layer: rotary_dim=256 exceeds head_size=128.",
        ),
        Template(
            "QK Norm+MRoPE+KVCache fusion not enabled for a layer/style: rotary_dim={_} must be divisible by {_} for"
            " head_size={_} and is_neox={_}.",
            versions=">=0.31.0",
            example="QK Norm+MRoPE+KVCache fusion not enabled for a layer/style: rotary_dim=36 must be divisible by 8"
            " for head_size=128 and is_neox=True.",
        ),
        Template(
            "QK-Norm+RoPE[[/MRoPE]]+KVCache fusion: replaced {patterns} pattern(s) with [[AITER"
            " fused_qk_norm_rope_cache_pts_quant_shuffle]][[an AITER fused attention-prologue kernel]]",
            versions=">=0.26.0",
            example="QK-Norm+RoPE/MRoPE+KVCache fusion: replaced 36 pattern(s) with an AITER fused attention-prologue"
            " kernel",
        ),
        Template(
            "QK-Norm+RoPE+KVCache fusion requires ROCm with AITER. The fusion will be disabled.",
            versions=">=0.26.0",
            example="QK-Norm+RoPE+KVCache fusion requires ROCm with AITER. The fusion will be disabled.",
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
            "fuse_[[qk_norm_]]rope_kvcache is enabled, but splitting_ops is None and Inductor graph partition is not"
            " enabled.[[ ]]Disabling fuse_[[qk_norm_]]rope_kvcache.[[ ]]Please either set splitting_ops to an empty"
            " list [][[ ]]or set use_inductor_graph_partition to True to enable [[QK-Norm+]]RoPE+KV cache fusion.",
            versions=">=0.19.0",
            example="fuse_qk_norm_rope_kvcache is enabled, but splitting_ops is None and Inductor graph partition is"
            " not enabled. Disabling fuse_qk_norm_rope_kvcache. Please either set splitting_ops to an empty list [] or"
            " set use_inductor_graph_partition to True to enable QK-Norm+RoPE+KV cache fusion.",
        ),
        Template(
            "Max num batched tokens below [[qk_norm+]]rope+kvcache fusion threshold, [[rope+kvcache ]]fusion enabled"
            " for num_tokens <= {tokens}.",
            versions=">=0.17.0",
            example="Max num batched tokens below rope+kvcache fusion threshold, rope+kvcache fusion enabled for"
            " num_tokens <= 256.",
        ),
        Template(
            "Canonicalized degenerate KV cache strides (FlashAttention[[DiffKV]]): shape={_}, key strides before={_}"
            " after={_}, value strides before={_} after={_}",
            versions=">=0.21.0",
            example="Canonicalized degenerate KV cache strides (FlashAttention): shape=torch.Size([7592, 16, 1, 128]),"
            " key strides before=(4096, 128, 128, 1) after=(4096, 128, 2048, 1), value strides before=(4096, 128, 128,"
            " 1) after=(4096, 128, 2048, 1)",
        ),
        Template(
            "Canonicalized degenerate KV cache strides (FlashInfer): shape={_}, strides before={_}, strides after={_}",
            versions=">=0.21.0",
            example="Canonicalized degenerate KV cache strides (FlashInfer): shape=torch.Size([7592, 2, 1, 16, 128]),"
            " strides before=(4096, 2048, 128, 128, 1), strides after=(4096, 2048, 2048, 128, 1)",
        ),
    )
