"""Which kernels other parts than attention and experts use, and how they are set up: nothing of it is a term of the ledger."""

from __future__ import annotations

from vlogcheck.template import Record, Template

__all__ = ["KernelNotice"]


class KernelNotice(Record):
    """A line about kernels, collectives or start methods that is worded like one of the ledger's and says nothing about it."""

    templates = (
        Template(
            "Using Transformers[[ modeling]] backend.",
            versions=">=0.7.2",
            example="Using Transformers modeling backend.",
        ),
        Template(
            "Using TRTLLM attention[[ (auto-detected)]].",
            versions=">=0.10.1,<0.11.1",
            example="Using TRTLLM attention (auto-detected).",
        ),
        Template(
            "[[[get_mxfp4_backend_with_lora] ]]Using Marlin backend",
            versions=">=0.10.2,<0.19.0",
            example="[get_mxfp4_backend_with_lora] Using Marlin backend",
        ),
        Template(
            "[get_mxfp4_backend_with_lora] Using Triton backend",
            versions=">=0.12.0,<0.19.0",
            example="[get_mxfp4_backend_with_lora] Using Triton backend",
        ),
        Template(
            "Using {_} MLA prefill backend.",
            versions=">=0.10.2,!=0.11.0",
            example="Using FLASHINFER MLA prefill backend.",
        ),
        Template(
            "Using {_} KDA prefill backend.",
            versions=">=0.10.2,!=0.11.0",
            example="Using FlashKDA KDA prefill backend.",
        ),
        Template(
            "Using {_} KDA decode backend.",
            versions=">=0.10.2,!=0.11.0",
            example="Using native fused KDA decode backend.",
        ),
        Template(
            "Using [{_}] all-reduce backends (in dispatch order) for group '{_}' out of potential backends: [{_}].",
            versions=">=0.22.0",
            example="Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0' out of potential"
            " backends: ['NCCL_SYMM_MEM', 'CUSTOM', 'PYNCCL'].",
        ),
        Template(
            "Using flashinfer allreduce backend: {_}",
            versions=">=0.19.0",
            example="Using flashinfer allreduce backend: trtllm",
        ),
        Template(
            "Auto-selected flashinfer allreduce backend: {_}",
            versions=">=0.19.0",
            example="Auto-selected flashinfer allreduce backend: mnnvl",
        ),
        Template(
            "Device capability not available, using FlashAttention MLA prefill backend.",
            versions=">=0.21.0,<0.32.0",
            example="Device capability not available, using FlashAttention MLA prefill backend.",
        ),
        Template(
            "Using default {_} config. Performance might be sub-optimal! Config file not found at {_}",
            versions=">=0.6.3",
            example="Using default MoE config. Performance might be sub-optimal! Config file not found at"
            " ['/opt/configs/E=128,N=192.json']",
        ),
        Template(
            "Using FlashInfer MoE FP8 kernels for {_}.",
            versions=">=0.10.0,<0.10.2",
            example="Using FlashInfer MoE FP8 kernels for Fp8MoEMethod.",
        ),
        Template(
            "Using FlashInfer MXFP4 BF16 backend for SM90",
            versions=">=0.10.2,<0.19.0",
            example="Using FlashInfer MXFP4 BF16 backend for SM90",
        ),
        Template(
            "Using FlashInfer MXFP4 {_} backend for SM100[[, {_}]]",
            versions=">=0.10.2,!=0.19.0,!=0.19.1,!=0.20.0,!=0.20.1,!=0.20.2",
            example="Using FlashInfer MXFP4 BF16 backend for SM100, For faster performance on SM100, consider setting"
            " VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1, though this may impact accuracy.",
        ),
        Template(
            "Using FlashInfer FP8 MoE CUTLASS backend for SM90/SM100",
            versions=">=0.11.1,<0.14.0",
            example="Using FlashInfer FP8 MoE CUTLASS backend for SM90/SM100",
        ),
        Template(
            "Using FlashInfer FP8 MoE TRTLLM backend for SM100",
            versions=">=0.11.1,<0.14.0",
            example="Using FlashInfer FP8 MoE TRTLLM backend for SM100",
        ),
        Template(
            "Using Cutlass BlockScaled GroupedGemm backend for FP8 MoE",
            versions=">=0.11.1,<0.15.0",
            example="Using Cutlass BlockScaled GroupedGemm backend for FP8 MoE",
        ),
        Template(
            "Using {_} for MXFP4 GEMM",
            versions=">=0.21.0",
            example="Using FlashInferCutlass backend for MXFP4 GEMM",
        ),
        Template(
            "Using {_} for MXFP6 GEMM",
            versions=">=0.21.0",
            example="Using FlashInferCutlass backend for MXFP6 GEMM",
        ),
        Template(
            "Using {_} for NVFP4 GEMM",
            versions=">=0.11.1",
            example="Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM",
        ),
        Template(
            "Using {_} for[[ AutoRound]] MXFP4 MoE",
            versions=">=0.20.0",
            example="Using MarlinExperts for MXFP4 MoE",
        ),
        Template(
            "Enabling FlashInfer MXFP4 BF16 backend by default for Blackwell. {_}",
            versions=">=0.10.1,<0.10.2",
            example="Enabling FlashInfer MXFP4 BF16 backend by default for Blackwell. For faster performance, consider setting"
            " VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1",
        ),
        Template(
            "Using FlashInfer kernels for NVFP4 path.",
            versions=">=0.10.1,<0.15.1",
            example="Using FlashInfer kernels for NVFP4 path.",
        ),
        Template(
            "Using {_} for MXFP8 GEMM",
            versions=">=0.16.0",
            example="Using FlashInferCutlass backend for MXFP8 GEMM",
        ),
        Template(
            "Using {_} backend for mxfp4 lora",
            versions=">=0.19.0",
            example="Using Marlin backend for mxfp4 lora",
        ),
        Template(
            "Using {_}QuantizationEmulationTritonExperts MOE backend. {_}",
            versions=">=0.20.0",
            example="Using Nvfp4QuantizationEmulationTritonExperts MOE backend. This will dequantize weights on the fly and may"
            " be slower than native quantized MOE.",
        ),
        Template(
            "Using TRITON Unquantized MoE LoRA backend",
            versions=">=0.26.0",
            example="Using TRITON Unquantized MoE LoRA backend",
        ),
        Template(
            "Using FlexAttention backend for {_} on V1 engine.",
            versions=">=0.9.2,!=0.11.1,!=0.11.2,!=0.12.0,!=0.13.0,!=0.14.0,!=0.14.1,!=0.15.0,!=0.15.1,!=0.16.0,"
            "!=0.17.0,!=0.17.1,!=0.18.0,!=0.18.1,!=0.19.0,!=0.19.1,!=0.20.0,!=0.20.1,!=0.20.2",
            example="Using FlexAttention backend for head_size=80 on V1 engine.",
        ),
        Template(
            "Using {_} distributed executor backend for async scheduling.",
            versions=">=0.10.0,<0.11.0",
            example="Using mp-based distributed executor backend for async scheduling.",
        ),
        Template(
            "Defaulting to {_} distributed executor backend[[ for async scheduling]].",
            versions=">=0.11.0,<0.11.1",
            example="Defaulting to mp-based distributed executor backend for async scheduling.",
        ),
        Template(
            "Using OOT custom backend for compilation.",
            versions=">=0.12.0",
            example="Using OOT custom backend for compilation.",
        ),
        Template(
            "Using {_} indexer cache for {_} Indexer.",
            versions=">=0.20.0",
            example="Using FP8 indexer cache for Lightning Indexer.",
        ),
        Template(
            "Using FP8 KV cache but no scaling factors provided. {_}",
            versions=">=0.4.1,<0.7.0",
            example="Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to"
            " less accurate results!",
        ),
        Template(
            "Defaulting to KV cache scaling factors = 1.0 for all layers in TP rank {_}",
            versions=">=0.4.1,<0.7.0",
            example="Defaulting to KV cache scaling factors = 1.0 for all layers in TP rank 0 as an error occurred during"
            " loading.",
        ),
        Template(
            "Loaded KV cache scaling factors from {_}",
            versions=">=0.4.3,<0.7.0",
            example="Loaded KV cache scaling factors from /models/scales.json",
        ),
        Template(
            "KV cache scaling factors provided, but the KV cache data type is not FP8. {_}",
            versions=">=0.4.1,<0.4.3",
            example="KV cache scaling factors provided, but the KV cache data type is not FP8. KV cache scaling factors will"
            " not be used.",
        ),
        Template(
            "flash_attn is not installed. Using naive attention. This will take significantly more GPU memory.",
            versions=">=0.4.0,<0.4.1",
            example="flash_attn is not installed. Using naive attention. This will take significantly more GPU memory.",
        ),
        Template(
            "Using direct symmetric-memory DCP {_} for MLA.",
            versions=">=0.28.0",
            example="Using direct symmetric-memory DCP query gather for MLA.",
        ),
        Template(
            "QK Norm+RoPE fusion enabled, but no Attention layers were discovered.",
            versions=">=0.11.1",
            example="QK Norm+RoPE fusion enabled, but no Attention layers were discovered.",
        ),
        Template(
            "Padding fusion enabled but the current platform is not ROCm. The fusion will be disabled.",
            versions=">=0.16.0",
            example="Padding fusion enabled but the current platform is not ROCm. The fusion will be disabled.",
        ),
        Template(
            "QK Norm+RoPE fusion not enabled: {_}",
            versions=">=0.11.1",
            example="QK Norm+RoPE fusion not enabled: unsupported dtype torch.float32",
        ),
        Template(
            "QK Norm + RoPE fusion enabled but the current platform is not {_}. The fusion will be disabled.",
            versions=">=0.11.1",
            example="QK Norm + RoPE fusion enabled but the current platform is not CUDA or ROCm. The fusion will be disabled.",
        ),
        Template(
            "Prefetching checkpoint files into page cache started (in background[[, num_threads={_}, block_size={_} bytes]])",
            versions=">=0.18.0",
            example="Prefetching checkpoint files into page cache started (in background, num_threads=8, block_size=1048576"
            " bytes)",
        ),
        Template(
            "[[CUDA was previously initialized. ]]We must use the `spawn` multiprocessing start method. {_}"
            " VLLM_WORKER_MULTIPROC_METHOD to 'spawn'.[[ See {_}]]",
            versions=">=0.6.3",
            example="We must use the `spawn` multiprocessing start method. Overriding VLLM_WORKER_MULTIPROC_METHOD to 'spawn'."
            " See https://docs.vllm.ai/en/latest/usage/troubleshooting.html#python-multiprocessing for more information."
            " Reason: CUDA is initialized",
        ),
        Template(
            "VLLM_BATCH_INVARIANT is set but the batch-invariant NVFP4 kernel is not supported on this platform; {_}",
            versions=">=0.22.0",
            example="VLLM_BATCH_INVARIANT is set but the batch-invariant NVFP4 kernel is not supported on this platform;"
            " falling back to emulation for deterministic execution. Reason: sm_90",
        ),
    )
