"""The configuration vLLM resolves from flags, model and card as far as the plan of the KV cache needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlogcheck.budget.releases import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck.budget._device import Device
    from vlogcheck.budget.flags import ServeOptions

#: Bytes of one element by the name vLLM and PyTorch give the type.
ELEMENT_BYTES = {
    "float64": 8, "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2,
    "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip

#: Element type behind a ``--kv-cache-dtype``.
CACHE_ELEMENT = {
    "fp8": "uint8", "fp8_e4m3": "uint8", "fp8_e5m2": "uint8", "fp8_inc": "float8_e4m3fn", "int8": "int8",
    "int8_per_token_head": "int8", "int4_per_token_head": "uint8", "fp8_per_token_head": "uint8",
    "fp8_ds_mla": "uint8", "nvfp4_ds_mla": "uint8", "nvfp4": "uint8", "nvfp4_4over6": "uint8",
    "turboquant_k8v4": "uint8", "turboquant_4bit_nc": "uint8", "turboquant_k3v4_nc": "uint8",
    "turboquant_3bit_nc": "uint8",
    "bfloat16": "bfloat16", "float16": "float16", "half": "float16", "float32": "float32", "float": "float32",
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Everything the layer specs and the pool depend on, besides the model itself.

    Lengths are in tokens. ``in_flight_tokens`` is the most that can be scheduled and not yet settled for one request:
    the batch limit, or a multiple of it from 0.26.0 on.
    """

    release: Release
    device: Device
    options: ServeOptions
    env: Mapping[str, str]
    dtype: str
    cache_dtype: str
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    in_flight_tokens: int
    prefix_caching: bool
    mamba_mode: str
    use_mla: bool
    hybrid_disabled: bool
    is_v0: bool
    num_speculative_tokens: int
    assumptions: tuple[str, ...]

    @property
    def tp(self) -> int:
        """Tensor-parallel size."""
        return self.options.tensor_parallel_size

    @property
    def pp(self) -> int:
        """Pipeline-parallel size."""
        return self.options.pipeline_parallel_size

    @property
    def cache_element(self) -> str:
        """Element type of the KV cache."""
        return self.dtype if self.cache_dtype == "auto" else CACHE_ELEMENT[self.cache_dtype]

    @property
    def cache_bytes(self) -> int:
        """Bytes of one element of the KV cache."""
        return ELEMENT_BYTES[self.cache_element]
