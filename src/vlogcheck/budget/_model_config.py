"""A model's configuration with typed, checked accessors.

Nothing here knows what a model is called: the accessors read the spellings different families use for the same quantity
(``num_key_value_heads``, ``n_head_kv``, ``multi_query`` …), as vLLM does in ``config/model.py`` and
``transformers_utils/model_arch_config_convertor.py``. Lengths are in tokens, sizes in elements; nothing is in bytes. The
file is long because it holds one short accessor for every quantity the budget reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._context_length import default_context, longest_context
from vlogcheck.budget._values import MAX_LAYERS, MAX_MODULES, ModelConfigError, Values, as_int

if TYPE_CHECKING:
    from vlogcheck.budget.releases import Release

__all__ = ["FALCON_TYPES", "ModelConfig"]

#: Model types of Falcon.
FALCON_TYPES = frozenset({"falcon", "RefinedWeb", "RefinedWebModel"})


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
        if self.text_model_type in FALCON_TYPES:
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
        return longest_context(self)

    def default_max_model_len(self, release: Release) -> int:
        """Return the context length a release uses when ``--max-model-len`` is not given, in tokens."""
        return default_context(self, release)
