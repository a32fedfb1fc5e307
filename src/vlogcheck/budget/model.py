"""A model's ``config.json`` as vLLM reads it.

Nothing here knows what a model is called: the accessors read the spellings different families use for the same quantity
(``num_key_value_heads``, ``n_head_kv``, ``multi_query`` …), as vLLM does in ``config/model.py`` and
``transformers_utils/model_arch_config_convertor.py``. Lengths are in tokens, sizes in elements; nothing is in bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._defaults import filled_keys, with_class_defaults
from vlogcheck.budget._values import MAX_LAYERS, MAX_MODULES, ModelConfigError, Values, as_int

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

__all__ = ["ModelConfig", "ModelConfigError", "load_model_config", "overridden"]

#: Where multimodal wrappers keep the language model's own configuration, in the order they are tried.
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "llm")

#: Outer shells that hold a whole model with its own text part (Qwen2.5-Omni and kin).
_SHELL_KEYS = ("thinker_config",)

#: Keys that carry a length the model was trained for; vLLM takes the smallest one present.
_LENGTH_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip

#: Scalings that vLLM does not multiply the length by: the config's length already includes them.
_UNSCALED_ROPE = frozenset({"su", "longrope", "llama3", "mrope", "default"})

_YARN = frozenset({"yarn", "deepseek_yarn"})

#: From here on a YaRN model's length is taken as stated instead of being stretched again.
_YARN_AS_STATED = "0.30.0"

_FALCON_TYPES = frozenset({"falcon", "RefinedWeb", "RefinedWebModel"})


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """One model configuration with typed, checked accessors.

    Attributes:
        raw: the whole JSON object, read-only.
        text: the language model's own part of it (the same object where nothing is nested), read-only.
        directory: the directory the file was read from, where there is one (weights may lie beside it).
        filled: keys the configuration leaves out whose values are its class's defaults.

    Every accessor may raise :class:`ModelConfigError` for a value of the wrong type or of an impossible size.

    """

    raw: Mapping[str, Any]
    text: Mapping[str, Any]
    directory: Path | None = field(default=None)
    filled: tuple[str, ...] = ()

    @cached_property
    def values(self) -> Values:
        """Checked access to :attr:`text`."""
        return Values(self.text)

    @cached_property
    def outer(self) -> Values:
        """Checked access to :attr:`raw`."""
        return Values(self.raw)

    @cached_property
    def is_nested(self) -> bool:
        """Whether the language model is a part of a larger (multimodal) configuration."""
        return self.text is not self.raw

    @cached_property
    def architecture(self) -> str | None:
        """The first of ``architectures``, looked up outside first; ``None`` where no name is given."""
        names = self.outer.strings("architectures") or self.values.strings("architectures")
        return names[0] if names else None

    @cached_property
    def text_architecture(self) -> str | None:
        """The first of the text part's ``architectures``, where the wrapper names one."""
        names = self.values.strings("architectures")
        return names[0] if names else None

    @cached_property
    def model_type(self) -> str:
        """``model_type`` of the whole configuration (empty where absent)."""
        return self.outer.text("model_type") or ""

    @cached_property
    def text_model_type(self) -> str:
        """``model_type`` of the text part (empty where absent)."""
        return self.values.text("model_type") or ""

    # Sizes -----------------------------------------------------------------------------------------------------------

    @cached_property
    def num_layers(self) -> int:
        """Decoder layers.

        Raises:
            ModelConfigError: no spelling of the key is present, or the number is impossible.

        """
        if self.values.has("decoder_layers") and self.is_encoder_decoder:
            layers = self.values.need("decoder_layers", minimum=1)
        elif self.values.has("layers_block_type") and not self.values.has("num_hidden_layers"):
            layers = len(self.values.strings("layers_block_type") or [])
        else:
            layers = self.values.need(
                "num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", minimum=1
            )
        if layers > MAX_LAYERS:
            raise ModelConfigError(f"config key 'num_hidden_layers' is {layers}: no model has that many layers")
        return layers

    @cached_property
    def hidden_size(self) -> int:
        """Width of the residual stream, in elements."""
        return self.values.need("hidden_size", "n_embd", "n_embed", "d_model", "dim", minimum=1)

    @cached_property
    def num_attention_heads(self) -> int:
        """Query heads; 0 for models without attention (Mamba)."""
        values = self.values
        if self.is_encoder_decoder and values.has("decoder_attention_heads"):
            return values.need("decoder_attention_heads", minimum=1)
        return values.integer("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads") or 0

    @cached_property
    def num_kv_heads(self) -> int:
        """Key/value heads in all, before any tensor-parallel share; not the MLA latent."""
        values = self.values
        heads = self.num_attention_heads
        if self.text_model_type in _FALCON_TYPES:
            if values.flag("new_decoder_architecture"):
                return values.integer("num_kv_heads", "n_head_kv", minimum=1) or heads
            return 1 if values.flag("multi_query", default=True) else heads
        nested = values.object("attn_config") if isinstance(self.text.get("attn_config"), Mapping) else Values({})
        inner = nested.integer("kv_n_heads", minimum=1)
        if inner is not None:
            return inner
        if values.flag("multi_query") and self.text_model_type == "gpt_bigcode":
            return 1
        if values.flag("multi_query_attention") and values.has("multi_query_group_num"):
            return values.need("multi_query_group_num", minimum=1)
        if self.text_model_type == "step3p5":
            return values.need("num_attention_groups", minimum=1)
        if self.text_model_type == "step3_text":
            return values.integer("num_attention_groups", minimum=1) or 1
        found = values.integer("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", minimum=1)
        return heads if found is None else found

    @cached_property
    def explicit_head_dim(self) -> int | None:
        """The head size the configuration states, ``None`` where it follows from hidden size and heads."""
        return self.values.integer("head_dim", "attention_head_dim", "kv_channels", minimum=1)

    @cached_property
    def head_dim(self) -> int:
        """K and Q head size: the explicit key where present, else hidden size over heads (floor)."""
        explicit = self.explicit_head_dim
        if explicit is not None:
            return explicit
        if self.num_attention_heads < 1:
            raise ModelConfigError("config lacks 'num_attention_heads'")
        return max(1, self.hidden_size // self.num_attention_heads)

    @cached_property
    def v_head_dim(self) -> int | None:
        """V head size where the configuration states one (MLA models, models with a different V size)."""
        return self.values.integer("v_head_dim", minimum=1)

    @cached_property
    def vocab_size(self) -> int:
        """Rows of the embedding before padding."""
        return self.values.need("vocab_size", "padded_vocab_size", minimum=1)

    @cached_property
    def intermediate_size(self) -> int | None:
        """Width of the dense feed-forward layer, where one spelling of it is present and it is one number."""
        found = self.values.first("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "decoder_ffn_dim")
        if found is None or isinstance(found[1], list | Mapping):
            return None
        return as_int(found[1], found[0])

    @cached_property
    def tie_word_embeddings(self) -> bool:
        """Whether embedding and output head share one tensor (the wrapper's word counts before the text part's)."""
        for values in (self.outer, self.values):
            if values.has("tie_word_embeddings"):
                return values.flag("tie_word_embeddings")
        return False

    @cached_property
    def is_encoder_decoder(self) -> bool:
        """Whether the configuration says so (Whisper, BART)."""
        return self.outer.flag("is_encoder_decoder")

    # Types -----------------------------------------------------------------------------------------------------------

    @cached_property
    def dtype(self) -> str | None:
        """The checkpoint's element type (``bfloat16`` …) without a ``torch.`` prefix, ``None`` where not stated."""
        for values in (self.outer, self.values):
            found = values.text("torch_dtype", "dtype")
            if found:
                return found.removeprefix("torch.")
        return None

    @cached_property
    def quantization_config(self) -> Mapping[str, Any] | None:
        """``quantization_config`` (or ``compression_config``) of the whole configuration or the text part."""
        for values in (self.outer, self.values):
            if values.has("quantization_config", "compression_config"):
                return MappingProxyType(dict(values.object("quantization_config", "compression_config").data))
        return None

    @cached_property
    def quantization_method(self) -> str | None:
        """``quant_method`` in lower case, where a quantisation is stated."""
        config = self.quantization_config
        return (Values(config, "quantization_config").text("quant_method") or "").lower() or None if config else None

    # Layers ----------------------------------------------------------------------------------------------------------

    @cached_property
    def layer_types(self) -> tuple[str, ...] | None:
        """Per-layer kinds (``full_attention``, ``sliding_attention``, ``linear_attention`` …) where listed."""
        found = self.values.strings("layer_types", "layers_block_type", "layer_type_list")
        return None if found is None else tuple(found)

    @cached_property
    def sliding_window(self) -> int | None:
        """``sliding_window`` in tokens; ``None`` where absent, null or 0."""
        found = self.values.first("sliding_window", "sliding_window_size")
        if found is None or isinstance(found[1], list):
            return None
        return as_int(found[1], found[0]) or None

    @cached_property
    def num_nextn_layers(self) -> int:
        """Multi-token-prediction modules the checkpoint carries."""
        count = self.values.integer("num_nextn_predict_layers", "mtp_num_hidden_layers", "n_predict", "num_mtp_modules")
        if (count or 0) > MAX_MODULES:
            raise ModelConfigError(f"config key 'num_nextn_predict_layers' is {count}: no model has that many")
        return count or 0

    @cached_property
    def is_mla(self) -> bool:
        """Whether attention keeps one latent per token (a ``kv_lora_rank`` is given)."""
        return (self.values.integer("kv_lora_rank") or 0) > 0

    @cached_property
    def kv_lora_rank(self) -> int:
        """Width of the MLA latent."""
        return self.values.need("kv_lora_rank", minimum=1)

    @cached_property
    def q_lora_rank(self) -> int | None:
        """Rank of the MLA query compression, ``None`` without one."""
        return self.values.integer("q_lora_rank", minimum=1)

    @cached_property
    def qk_nope_head_dim(self) -> int:
        """Part of the MLA head size without position."""
        return self.values.need("qk_nope_head_dim")

    @cached_property
    def qk_rope_head_dim(self) -> int:
        """Part of the MLA head size that carries the position."""
        return self.values.need("qk_rope_head_dim")

    # Experts ---------------------------------------------------------------------------------------------------------

    @cached_property
    def num_experts(self) -> int:
        """Routed experts per MoE layer; 0 for dense models."""
        return self.values.integer("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts") or 0

    @cached_property
    def num_experts_per_token(self) -> int | None:
        """Experts each token is sent to."""
        return self.values.integer(
            "num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "experts_per_token"
        )

    @cached_property
    def num_shared_experts(self) -> int:
        """Experts every token passes."""
        return self.values.integer("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or 0

    @cached_property
    def moe_intermediate_size(self) -> int | None:
        """Width of one routed expert, where it is stated apart from the dense width and is one number."""
        found = self.values.first("moe_intermediate_size", "expert_intermediate_size", "ffn_hidden_size_moe")
        if found is None or isinstance(found[1], list | Mapping):
            return None
        return as_int(found[1], found[0])

    # Length ----------------------------------------------------------------------------------------------------------

    @cached_property
    def rope(self) -> Values:
        """``rope_parameters`` or ``rope_scaling``; empty where there is none."""
        return self.values.object("rope_parameters", "rope_scaling")

    @cached_property
    def derived_max_model_len(self) -> int:
        """The longest context the configuration allows, by the newest release's rule, in tokens."""
        return self._derive(scales_yarn=False)

    def default_max_model_len(self, release: Release) -> int:
        """Return the context length a release uses when ``--max-model-len`` is not given, in tokens.

        The smallest length key present (2048 without any), times the rope factor for scalings that stretch it. YaRN
        stretched
        ``original_max_position_embeddings`` until 0.31.0; later releases take the length as stated. LongRoPE models
        default to their
        original length. Source: ``_get_and_verify_max_len``, vllm/config/model.py.
        """
        kinds = {rope.text("rope_type", "type") for rope in self._ropes}
        original = self.values.integer("original_max_position_embeddings", minimum=1)
        if "longrope" in kinds and original is not None and release.since("0.10.0"):
            return original
        return self._derive(scales_yarn=release.before(_YARN_AS_STATED))

    @cached_property
    def _ropes(self) -> list[Values]:
        nested = [Values(value, "rope_parameters") for value in self.rope.data.values() if isinstance(value, Mapping)]
        return nested or [self.rope]

    def _derive(self, *, scales_yarn: bool) -> int:
        lengths = [n for n in (self.values.integer(key) for key in _LENGTH_KEYS) if n]
        derived = min(lengths) if lengths else 2048
        if "gemma3" in self.model_type:
            return derived
        for rope in self._ropes:
            kind = rope.text("rope_type", "type")
            if kind is None or kind in _UNSCALED_ROPE or (kind in _YARN and not scales_yarn):
                continue
            factor = rope.number("factor")
            if kind in _YARN:
                derived = rope.integer("original_max_position_embeddings", minimum=1) or derived
            if factor is not None:
                derived = int(derived * factor)
        return as_int(derived, "max_position_embeddings", minimum=1)


def overridden(model: ModelConfig, overrides: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration with the keys of ``--hf-overrides`` replaced; nested text parts are merged.

    Raises:
        ModelConfigError: the overrides leave no object.

    """
    changed = dict(model.raw)
    for key, value in overrides.items():
        inner = changed.get(key)
        if key in (*_TEXT_KEYS, *_SHELL_KEYS) and isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = {**inner, **value}
        changed[key] = value
    return _build(changed, model.directory)


def _text_part(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    values = Values(raw)
    for key in _SHELL_KEYS:
        if values.has(key):
            return _text_part(values.object(key).data)
    for key in _TEXT_KEYS:
        inner = raw.get(key)
        if isinstance(inner, Mapping) and inner:
            return inner
    return raw


_LARGEST_FILE = 32 << 20
"""Bytes of a configuration that are read: the largest published ones are below 1 MiB."""


def load_model_config(source: str | Path | Mapping[str, Any]) -> ModelConfig:
    """Read a model configuration.

    Args:
        source: path of a ``config.json``, a directory that holds one, or the JSON object itself.

    Raises:
        ModelConfigError: missing, unreadable or absurdly large file, not JSON, not an object.

    """
    if isinstance(source, Mapping):
        return _bounded(source, None, "the model configuration")
    if not isinstance(source, (str, Path, os.PathLike)):
        raise ModelConfigError(f"a model configuration is a path or a mapping, not {type(source).__name__}")
    path = Path(source)
    try:
        if path.is_dir():
            path = path / "config.json"
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ModelConfigError(f"no model configuration at {path}") from None
    except OSError as error:
        raise ModelConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise ModelConfigError(f"cannot read {str(path)!r}: {error}") from None
    if len(data) > _LARGEST_FILE:
        raise ModelConfigError(f"{path} is larger than {_LARGEST_FILE >> 20} MiB: no model configuration")
    try:
        content = json.loads(data)
    except RecursionError:
        raise ModelConfigError(f"{path} is nested too deeply") from None
    except ValueError as error:  # bad JSON, bad encoding, an integer of too many digits
        raise ModelConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise ModelConfigError(f"{path} holds {type(content).__name__}, not a JSON object")
    return _bounded(content, path.parent, str(path))


def _bounded(content: Mapping[str, Any], directory: Path | None, name: str) -> ModelConfig:
    try:
        return _build(content, directory)
    except RecursionError:
        raise ModelConfigError(f"{name} is nested too deeply") from None


def _build(content: Mapping[str, Any], directory: Path | None) -> ModelConfig:
    wrapped = content.get("hf_config")
    if isinstance(wrapped, Mapping) and not {"architectures", "model_type", "hidden_size"} & content.keys():
        content = wrapped  # a configuration filed with a note of where it came from
    if not content:
        raise ModelConfigError("the model configuration is an empty object")
    raw = MappingProxyType(dict(content))
    text = _text_part(raw)
    if text is raw:
        raw = text = MappingProxyType(with_class_defaults(content))
    else:
        text = MappingProxyType(with_class_defaults(text))
    return ModelConfig(raw, text, directory, tuple(filled_keys(_text_part(content))))
