"""Values a configuration may leave out because they are the defaults of its class in transformers.

Nested text configurations often do (``gemma-3-4b-it`` names no heads, ``llava-1.5`` not even its layers). Only absent
keys are filled, only for model types listed here, and only the keys that decide sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_GEMMA3 = {
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096,
    "vocab_size": 262208,
}  # fmt: skip
_LLAMA = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "max_position_embeddings": 2048, "vocab_size": 32000,
}  # fmt: skip

CLASS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": _LLAMA,
    "mistral": {
        **_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    "mixtral": {**_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072},
    "gemma": {
        "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192, "vocab_size": 256000,
    },
    "gemma2": {
        "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192, "sliding_window": 4096,
        "vocab_size": 256000,
    },
    "gemma3_text": _GEMMA3,
    "gemma3n_text": {
        "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 35, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768, "sliding_window": 512,
        "num_kv_shared_layers": 15, "vocab_size": 262400,
    },
    "qwen2": {
        "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "max_position_embeddings": 32768, "vocab_size": 151936,
    },
    "qwen3": {
        "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32768, "vocab_size": 151936,
    },
    "cohere2": {"sliding_window": 4096},
    "olmo3": {"sliding_window": 4096},
    "exaone4": {"sliding_window": 4096},
    "gpt_oss": {"sliding_window": 128, "head_dim": 64, "num_key_value_heads": 8},
    "gemma4_text": {"sliding_window": 512, "head_dim": 256, "num_key_value_heads": 4, "global_head_dim": 512},
}  # fmt: skip


def with_class_defaults(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with its class's defaults where it leaves a key out (an explicit null stays null)."""
    kind = text.get("model_type")
    defaults = CLASS_DEFAULTS.get(kind) if isinstance(kind, str) else None
    return {**(defaults or {}), **text}


def filled_keys(text: Mapping[str, Any]) -> list[str]:
    """Return the keys :func:`with_class_defaults` would fill in."""
    kind = text.get("model_type")
    defaults = CLASS_DEFAULTS.get(kind) if isinstance(kind, str) else None
    return [key for key in defaults or {} if key not in text]
