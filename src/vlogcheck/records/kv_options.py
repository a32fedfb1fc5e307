"""How the KV cache is stored: type, format, layout, block size, and the attention back end that decides it."""

from __future__ import annotations

from vlogcheck.template import Kernels, Name, Record, Template, Word

__all__ = [
    "AttentionBackend",
    "BlockSizeSet",
    "KVCacheDtype",
    "KVCacheFormat",
    "KVCacheLayout",
]


class KVCacheDtype(Record):
    """The KV cache is quantised (config/cache.py); nothing is printed for `auto`."""

    kv_cache_dtype: Word
    """Type, such as `fp8`, `fp8_e4m3`, `int8_per_token_head`."""

    templates = (
        Template(
            "Using {kv_cache_dtype} data type to store kv cache. It reduces the GPU memory footprint and boosts the"
            " performance. {_}",
            versions=">=0.3.0",
            example="Using fp8_e4m3 data type to store kv cache. It reduces the GPU memory footprint and boosts the"
            " performance. Meanwhile, it may cause accuracy drop without a proper scaling factor",
        ),
        Template(
            "Using {kv_cache_dtype} kv-cache for DeepSeekV3.2",
            versions=">=0.11.0",
            example="Using bfloat16 kv-cache for DeepSeekV3.2",
        ),
        Template(
            "Using custom {kv_cache_dtype} kv-cache format for DeepSeekV3.2",
            versions=">=0.11.0,<0.18.0",
            example="Using custom fp8 kv-cache format for DeepSeekV3.2",
        ),
        Template(
            "Using {kv_cache_dtype} KV cache for GLM-5.3-Flash",
            versions=">=0.33.0",
            example="Using fp8 KV cache for GLM-5.3-Flash",
        ),
        Template(
            "Using {kv_cache_dtype} kv-cache for GlmMoeDsaForCausalLM on SM10x",
            versions=">=0.32.0",
            example="Using fp8 kv-cache for GlmMoeDsaForCausalLM on SM10x",
        ),
    )


class KVCacheFormat(Record):
    """Storage format of a latent (MLA) KV cache; `fp8_ds_mla` takes 656 bytes per token and layer."""

    kv_format: str
    """Format."""
    backend: Name | None = None
    """Attention back end it belongs to."""

    templates = (
        Template(
            "Using {kv_format} KV cache format for {backend} backend.",
            versions=">=0.24.0",
            example="Using fp8_ds_mla KV cache format for FLASHMLA_SPARSE backend.",
        ),
        Template(
            "Using DeepSeek's {kv_format} KV cache format.[[ To use standard fp8 kv-cache format, please set"
            " `--attention-backend FLASHINFER_MLA_SPARSE`]]",
            versions=">=0.18.0",
            example="Using DeepSeek's fp8_ds_mla KV cache format. To use standard fp8 kv-cache format, please set"
            " `--attention-backend FLASHINFER_MLA_SPARSE`",
        ),
        Template(
            "Using standard {kv_format} KV cache format. To use DeepSeek's fp8_ds_mla KV cache format, please set"
            " `--attention-backend FLASHMLA_SPARSE`",
            versions=">=0.18.0",
            example="Using standard fp8 KV cache format. To use DeepSeek's fp8_ds_mla KV cache format, please set"
            " `--attention-backend FLASHMLA_SPARSE`",
        ),
    )


class KVCacheLayout(Record):
    """Order of the KV cache's dimensions."""

    layout: Word
    """NHD, HND, BLHNC and the like."""
    backend: Name | None = None
    """Attention back end that asks for it."""

    templates = (
        Template(
            "`VLLM_KV_CACHE_LAYOUT` environment variable detected. Setting KV cache layout to {layout}.",
            versions=">=0.9.2,<0.29.0",
            example="`VLLM_KV_CACHE_LAYOUT` environment variable detected. Setting KV cache layout to HND.",
        ),
        Template(
            "`_KV_CACHE_LAYOUT_OVERRIDE` variable detected. Setting KV cache layout to {layout}.",
            versions=">=0.10.1,<0.29.0",
            example="`_KV_CACHE_LAYOUT_OVERRIDE` variable detected. Setting KV cache layout to HND.",
        ),
        Template(
            "Using {layout} KV cache layout for {backend} backend.",
            versions=">=0.11.1,<0.29.0",
            example="Using HND KV cache layout for FLASHINFER backend.",
        ),
        Template("Using {layout} KV cache layout.", versions=">=0.29.0", example="Using BLHNC KV cache layout."),
        Template(
            "Using default KV cache layout {layout}",
            versions=">=0.10.0,<0.10.2",
            example="Using default KV cache layout NHD",
        ),
        Template("Using KV cache layout {layout}", versions=">=0.10.0,<0.10.2", example="Using KV cache layout HND"),
        Template(
            "Using {layout} KV cache layout on V1 engine by default for Blackwell (SM 10.0) GPUs.",
            versions=">=0.10.0,<0.10.2",
            example="Using HND KV cache layout on V1 engine by default for Blackwell (SM 10.0) GPUs.",
        ),
        Template(
            "Using FlashInfer backend with {layout} KV cache layout on V1 engine by default for Blackwell (SM 10.0)"
            " GPUs.",
            versions=">=0.10.0,<0.11.1",
            example="Using FlashInfer backend with HND KV cache layout on V1 engine by default for Blackwell (SM"
            " 10.0) GPUs.",
            values={"backend": "FlashInfer"},
        ),
    )


class AttentionBackend(Record):
    """The attention kernels of the language model (platforms/*.py); the encoder's lines are worded otherwise."""

    backend: Kernels
    """Back end, such as `FLASH_ATTN`, `Flash Attention`, `AITER MLA`."""
    candidates: str | None = None
    """Back ends that would have done too, as printed."""

    templates = (
        Template(
            "Using {backend} attention backend out of potential backends: {candidates}[[.]]",
            versions=">=0.12.0",
            example="Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER'].",
        ),
        Template(
            "Using {backend} backend out of potential backends: {candidates}[[.]]",
            versions=">=0.19.0",
            example="Using ROCM_ATTN backend out of potential backends: ROCM_ATTN, TRITON_ATTN.",
        ),
        Template(
            "Using {backend} backend (selected via --attention-backend).",
            versions=">=0.19.0",
            example="Using TRITON_ATTN backend (selected via --attention-backend).",
        ),
        Template(
            "Using {backend} backend on V1 engine[[ by default for Blackwell (SM 10.0) GPUs]].",
            versions=">=0.7.0,!=0.11.1,!=0.11.2,!=0.14.0,!=0.14.1,!=0.15.0,!=0.15.1",
            example="Using Flash Attention backend on V1 engine.",
        ),
        Template(
            "Using {backend} attention backend.",
            versions=">=0.5.1,!=0.10.0,!=0.10.1,!=0.10.1.1,!=0.11.0",
            example="Using IPEX attention backend.",
        ),
        Template("Using {backend} backend[[.]]", versions=">=0.4.0", example="Using XFormers backend."),
    )


class BlockSizeSet(Record):
    """A back end fixes the KV block size; where nothing does, 16 tokens are usual and nothing is printed."""

    block_size_tokens: int
    """Tokens of one block."""
    backend: Name | None = None
    """Attention back end that asks for it."""

    templates = (
        Template(
            "Forcing kv cache block size to {block_size_tokens} for {backend} backend.",
            versions=">=0.8.0,<0.18.0",
            example="Forcing kv cache block size to 64 for FlashMLA backend.",
        ),
        Template(
            "Setting kv cache block size to {block_size_tokens} for {backend} backend[[(s)]].",
            versions=">=0.18.0",
            example="Setting kv cache block size to 64 for FLASHMLA backend.",
        ),
        Template(
            "[{backend}]: Setting kv cache block size to {block_size_tokens}.",
            versions=">=0.13.0,<0.23.0",
            example="[ROCM_AITER_UNIFIED_ATTN]: Setting kv cache block size to 64.",
        ),
    )
