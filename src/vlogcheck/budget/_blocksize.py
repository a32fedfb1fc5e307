"""The block size vLLM settles on: the flag, the attention backend's, and what a hybrid model's states need.

Sources: ``Platform.update_block_size_for_backend`` (0.18.1 on), ``check_and_update_config`` of vllm/platforms/cuda.py
and ``HybridAttentionMambaModelConfig`` of vllm/model_executor/models/config.py (before).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING

from vlogcheck.budget import _traits as traits
from vlogcheck.budget._layer import cdiv
from vlogcheck.budget._pattern import STATE_KINDS, layer_kinds
from vlogcheck.budget._settings import ELEMENT_BYTES
from vlogcheck.budget.kinds._base import share
from vlogcheck.budget.kinds.attention import bytes_per_head, turboquant_slot
from vlogcheck.budget.kinds.heads import fixed_block, head_sizes, kv_heads
from vlogcheck.budget.kinds.state import keeps_checkpoints, state_of

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

#: Tokens per block on CUDA when nothing asks for more.
DEFAULT = 16

#: Tokens per block of the CPU backend from 0.11.1 on.
CPU_DEFAULT = 128

#: Model types whose classes have a chunk size of 256 where the configuration states none.
_CHUNKED_STATES = frozenset({"bamba", "falcon_h1", "granitemoehybrid", "mamba2", "zamba2"})


@dataclass(frozen=True)
class BlockSizes:
    """The block size of attention layers, of states, and the pages states and sliding layers are padded to."""

    attention: int
    state: int
    state_page: int | None
    assumption: str | None = None
    shared_page: int | None = None


def choose(model: ModelConfig, settings: Settings, *, states: bool = True) -> BlockSizes:
    """Return the block sizes for one model and its settings; ``states``: whether the worker holds state layers."""
    sizes = _alone(model, settings, states=states)
    if settings.options.kv_cache_dtype_skip_layers and settings.release.since("0.25.1"):
        return _shared(sizes, model, settings)
    return sizes


def _shared(sizes: BlockSizes, model: ModelConfig, settings: Settings) -> BlockSizes:
    """Return sizes with which a quantised page holds the least block of a layer that is not quantised.

    ``_align_heterogeneous_kv_block_size`` of vllm/platforms/interface.py, 0.25.1 on.
    """
    k, v = head_sizes(model, settings, "full")
    quantised, plain = bytes_per_head(settings, k, v), (k + v) * ELEMENT_BYTES[settings.dtype]
    if plain <= quantised:
        return sizes
    heads = share(model.num_kv_heads, settings.tp)  # of the model, whatever its global layers have
    align = max(DEFAULT, sizes.attention)
    required = max(heads * plain * (fixed_block(model, settings) or DEFAULT), sizes.state_page or 0)
    block = max(sizes.attention, align * cdiv(required, align * heads * quantised))
    page = block * heads * quantised
    padded = None if sizes.state_page is None else page
    return replace(sizes, attention=block, state_page=padded, shared_page=page)


def _alone(model: ModelConfig, settings: Settings, *, states: bool) -> BlockSizes:
    chosen, assumption = _attention(model, settings)
    if not traits.has_state(model) or settings.is_v0:
        return BlockSizes(chosen, 0, None, assumption)
    length = settings.max_model_len
    aligned = traits.has_attention(model) or settings.release.before("0.20.2")
    if not traits.is_hybrid(model) or not aligned:
        return BlockSizes(chosen, _pure_state_block(settings, chosen, length), None, assumption)
    return _hybrid(model, settings, chosen, assumption, states=states)


def _pure_state_block(settings: Settings, chosen: int, length: int) -> int:
    if settings.options.mamba_block_size is not None and settings.release.since("0.11.1"):
        return settings.options.mamba_block_size
    return chosen if settings.mamba_mode != "none" else length


def _attention(model: ModelConfig, settings: Settings) -> tuple[int, str | None]:
    """Return the block size before states are looked at, and what was assumed for it."""
    release, asked = settings.release, settings.options.block_size
    if model.text_model_type == "deepseek_v4":
        return 256, None
    if settings.device.is_cpu:
        latent = settings.use_mla and release.since("0.18.1")  # chosen by the back end, whose latent kernel takes 16
        return asked or (CPU_DEFAULT if release.since("0.11.1") and not latent else DEFAULT), None
    if settings.use_mla:
        return _latent(model, settings)
    if settings.cache_dtype.startswith("turboquant") and release.since("0.25.1") and not traits.is_hybrid(model):
        # some layers stay in 16 bit: their page of 16 tokens has to fit the page of the quantised ones, counted as 8
        # bit
        align = max(DEFAULT, asked or DEFAULT)
        return align * cdiv(2 * DEFAULT, align), None
    return asked or fixed_block(model, settings) or DEFAULT, None


def _head(model: ModelConfig, settings: Settings) -> int:
    return head_sizes(model, settings, "full")[0] if model.num_attention_heads else 0


def _latent(model: ModelConfig, settings: Settings) -> tuple[int, str | None]:
    release, asked, capability = settings.release, settings.options.block_size, settings.device.capability
    fp8 = settings.cache_dtype.startswith("fp8")
    if model.values.has("index_topk"):
        return 64, None
    backend = (settings.options.attention_backend or settings.env.get("VLLM_ATTENTION_BACKEND") or "").upper()
    if release.since("0.18.1"):
        if asked is not None:
            return asked, None
        sizes = {"FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 64, "TRITON_MLA": 16, "FLASH_ATTN_MLA": 16}
        if backend in sizes:
            return sizes[backend], None
        if capability // 10 == 10:
            return 128, "block size 128 of the CUTLASS_MLA backend assumed"
        if capability // 10 == 9:
            return (64 if fp8 else DEFAULT), None
        return DEFAULT, None
    size = asked or DEFAULT
    if release.before("0.8.0"):
        return size, None
    if backend in {"", "FLASHMLA"} and capability // 10 == 9:
        return (size if size % 64 == 0 else 64), None
    if capability // 10 == 10 and release.since("0.10.0"):
        return (size if size % 128 == 0 else 128), "block size 128 of the CUTLASS_MLA backend assumed"
    if backend == "CUTLASS_MLA":
        return (size if size % 128 == 0 else 128), None
    return size, None


def _hybrid(model: ModelConfig, settings: Settings, chosen: int, assumption: str | None, *, states: bool) -> BlockSizes:
    release = settings.release
    per_token = _bytes_per_token(model, settings)
    kinds = {kind for layer in layer_kinds(model) for kind in layer} & STATE_KINDS
    state = max(state_of(kind, model, settings).size for kind in kinds)
    align = _alignment(model, settings, chosen)
    if settings.mamba_mode == "all":
        chunk = lcm(settings.options.mamba_block_size or _chunk(model), align)
        needed = chunk * cdiv(cdiv(state, per_token), chunk)
    else:
        if states and "gdn" in kinds and keeps_checkpoints("gdn", model, settings):
            align = lcm(align, 64)  # where prefill checkpoints of a delta net may lie
            if settings.device.capability >= 100:
                assumption = "CUDA 13 assumed: with an older one delta nets keep no states of a prefill on its way"
        needed = align * cdiv(state, align * per_token)
    block = max(chosen, needed) if chosen < needed else chosen
    page = block * per_token
    if settings.mamba_mode == "all":
        state_block = needed
    elif settings.mamba_mode == "align":
        state_block = block
    else:
        state_block = settings.max_model_len
        if settings.options.mamba_block_size is not None and release.since("0.11.1"):
            state_block = settings.options.mamba_block_size
    if release.since("0.18.1") and release.before("0.20.2") and settings.options.block_size is None:
        block = DEFAULT  # reset after the page was chosen; grouping raises it again to the same page
    return BlockSizes(block, state_block, None if page == state else page, assumption)


def _bytes_per_token(model: ModelConfig, settings: Settings) -> int:
    if settings.use_mla:
        return (model.kv_lora_rank + model.qk_rope_head_dim) * settings.cache_bytes
    k, v = head_sizes(model, settings, "full")
    heads = share(kv_heads(model, "full", 0), settings.tp)
    if settings.cache_dtype.startswith("turboquant"):
        return heads * turboquant_slot(settings.cache_dtype, k)
    return heads * bytes_per_head(settings, k, v)


def _alignment(model: ModelConfig, settings: Settings, chosen: int) -> int:
    release, device = settings.release, settings.device
    if release.since("0.20.2"):
        align = max(DEFAULT, chosen)
        return max(align, 128) if settings.use_mla and release.since("0.27.0") else align
    if settings.use_mla:
        return 64 if release.since("0.11.0") else DEFAULT
    backend = settings.options.attention_backend or settings.env.get("VLLM_ATTENTION_BACKEND") or "FLASHINFER"
    blackwell = device.capability // 10 == 10 and backend.upper() == "FLASHINFER"
    if blackwell and release.since("0.11.1") and release.before("0.18.0") and _head(model, settings) == 256:
        return 32
    return DEFAULT


def _chunk(model: ModelConfig) -> int:
    """Tokens between two states a kernel can start from (``get_mamba_chunk_size``): Mamba-2's chunk, or 2048."""
    stated = model.values.integer("mamba_chunk_size", "chunk_size", minimum=1)
    if stated is not None:
        return stated
    return {"nemotron_h": 128}.get(model.text_model_type, 256 if model.text_model_type in _CHUNKED_STATES else 2048)
