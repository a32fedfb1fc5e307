"""Which structure an architecture has: one registry, keyed by the name vLLM's own registry uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights import _vision as towers
from vlogcheck.budget.weights import _vision_qwen as qwen
from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._decoder import LayerBuilder, decoder, standard_layer
from vlogcheck.budget.weights._dimensions import NotModelled
from vlogcheck.budget.weights._encoders import WHOLE
from vlogcheck.budget.weights._gemma3n import gemma3n_layer, gemma3n_streams
from vlogcheck.budget.weights._hybrids import (
    bamba_layer,
    falcon_h1_layer,
    granite_hybrid_layer,
    jamba_layer,
    nemotron_h_layer,
)
from vlogcheck.budget.weights._linear import bailing_hybrid_layer, kimi_linear_layer, lfm2_layer, qwen_gdn_layer
from vlogcheck.budget.weights._mamba import mamba1_layer, mamba2_layer, zamba2_layer
from vlogcheck.budget.weights._nas import nas_layer
from vlogcheck.budget.weights._own_sparse import (
    afmoe_layer,
    dbrx_layer,
    hunyuan_moe_layer,
    longcat_layer,
    mimo_v2_layer,
    minimax_01_layer,
    step3_layer,
    step3p5_layer,
)
from vlogcheck.budget.weights._plain_tower import has_tower, plain_towers
from vlogcheck.budget.weights._special import gemma4_layer, llama4_layer, loop_coder_layer
from vlogcheck.budget.weights._tower import Tower, add_tower
from vlogcheck.budget.weights._traits import Traits, through_transformers
from vlogcheck.budget.weights._traits_classic import CLASSIC
from vlogcheck.budget.weights._traits_dense import DENSE
from vlogcheck.budget.weights._traits_sparse import SPARSE
from vlogcheck.budget.weights._traits_state import STATE

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig

__all__ = ["build_model", "layer_builder", "text_architecture", "traits_of"]

#: Architecture as vLLM's registry spells it -> the traits of its decoder.
TRAITS = {**DENSE, **CLASSIC, **SPARSE, **STATE}

#: Architectures whose layers are not one attention and one feed-forward part.
LAYERS: dict[str, LayerBuilder] = {
    "AfmoeForCausalLM": afmoe_layer,
    "BailingMoeV2_5ForCausalLM": bailing_hybrid_layer,
    "BambaForCausalLM": bamba_layer,
    "DbrxForCausalLM": dbrx_layer,
    "DeciLMForCausalLM": nas_layer,
    "FalconH1ForCausalLM": falcon_h1_layer,
    "FalconMambaForCausalLM": mamba1_layer,
    "Gemma3nForCausalLM": gemma3n_layer,
    "Gemma4ForCausalLM": gemma4_layer,
    "GraniteMoeHybridForCausalLM": granite_hybrid_layer,
    "HunYuanMoEV1ForCausalLM": hunyuan_moe_layer,
    "IQuestLoopCoderForCausalLM": loop_coder_layer,
    "JambaForCausalLM": jamba_layer,
    "KimiLinearForCausalLM": kimi_linear_layer,
    "Lfm2ForCausalLM": lfm2_layer,
    "Lfm2MoeForCausalLM": lfm2_layer,
    "Llama4ForCausalLM": llama4_layer,
    "LongcatFlashForCausalLM": longcat_layer,
    "Mamba2ForCausalLM": mamba2_layer,
    "MambaForCausalLM": mamba1_layer,
    "MiMoV2FlashForCausalLM": mimo_v2_layer,
    "MiMoV2ForCausalLM": mimo_v2_layer,
    "MiniMaxForCausalLM": minimax_01_layer,
    "MiniMaxM1ForCausalLM": minimax_01_layer,
    "MiniMaxText01ForCausalLM": minimax_01_layer,
    "NemotronHForCausalLM": nemotron_h_layer,
    "NemotronHPuzzleForCausalLM": nemotron_h_layer,
    "Step3TextForCausalLM": step3_layer,
    "Step3p5ForCausalLM": step3p5_layer,
    "Zamba2ForCausalLM": zamba2_layer,
    "OlmoHybridForCausalLM": qwen_gdn_layer,
    "Qwen3NextForCausalLM": qwen_gdn_layer,
    "Qwen3_5ForCausalLM": qwen_gdn_layer,
    "Qwen3_5MoeForCausalLM": qwen_gdn_layer,
}

#: Multimodal wrappers: their language model (``None``: told by the text part) and their tower.
WRAPPERS: dict[str, tuple[str | None, Tower]] = {
    "Gemma3ForConditionalGeneration": ("Gemma3ForCausalLM", towers.siglip_gemma3),
    "Glm4vForConditionalGeneration": ("Glm4ForCausalLM", qwen.glm4v),
    "Glm4vMoeForConditionalGeneration": ("Glm4MoeForCausalLM", qwen.glm4v),
    "Idefics3ForConditionalGeneration": (None, towers.siglip_shuffle),
    "InternVLChatModel": (None, towers.internvit),
    "Llama4ForConditionalGeneration": ("Llama4ForCausalLM", towers.llama4_vision),
    "LlavaForConditionalGeneration": (None, towers.clip),
    "LlavaNextForConditionalGeneration": (None, towers.clip_newline),
    "LlavaOnevisionForConditionalGeneration": (None, towers.siglip_newline),
    "Mistral3ForConditionalGeneration": (None, towers.pixtral),
    "PaliGemmaForConditionalGeneration": (None, towers.siglip_paligemma),
    "SmolVLMForConditionalGeneration": (None, towers.siglip_shuffle),
    "Qwen2VLForConditionalGeneration": ("Qwen2ForCausalLM", qwen.qwen2_vision),
    "Qwen2_5_VLForConditionalGeneration": ("Qwen2ForCausalLM", qwen.qwen2_5_vision),
    "Qwen3VLForConditionalGeneration": ("Qwen3ForCausalLM", qwen.qwen3_vision),
    "Qwen3VLMoeForConditionalGeneration": ("Qwen3MoeLLMForCausalLM", qwen.qwen3_vision),
    "Qwen3_5ForConditionalGeneration": ("Qwen3_5ForCausalLM", qwen.qwen3_vision),
    "Qwen3_5MoeForConditionalGeneration": ("Qwen3_5MoeForCausalLM", qwen.qwen3_vision),
}

#: ``model_type`` of a text part -> the architecture it is.
TEXT_TYPES = {
    "cohere2": "Cohere2ForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "ernie4_5_moe": "Ernie4_5_MoeForCausalLM",
    "exaone4": "Exaone4ForCausalLM",
    "gemma3n_text": "Gemma3nForCausalLM",
    "gemma4_text": "Gemma4ForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "glm_ocr_text": "Glm4ForCausalLM",
    "granite": "GraniteForCausalLM",
    "internlm2": "InternLM2ForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "lfm2": "Lfm2ForCausalLM",
    "nemotron_h": "NemotronHForCausalLM",
    "opt": "OPTForCausalLM",
    "paddleocr_vl_text": "Ernie4_5ForCausalLM",
    "qwen2_5_omni_text": "Qwen2ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_omni_moe_text": "Qwen3MoeForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "step3p5": "Step3p5ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}


def text_architecture(model: ModelConfig) -> str:
    """Architecture of the language model, looked up inside multimodal wrappers."""
    name = model.architecture or ""
    if name not in WRAPPERS:
        if name in TRAITS or not has_tower(model):
            return name
        return model.text_architecture or TEXT_TYPES.get(model.text_model_type, name)
    return WRAPPERS[name][0] or model.text_architecture or TEXT_TYPES.get(model.text_model_type, "")


def traits_of(model: ModelConfig) -> Traits:
    """Structural traits of the language model.

    Raises:
        NotModelled: the architecture is not in the registry.

    """
    name = text_architecture(model)
    factory = TRAITS.get(name)
    if factory is None:
        raise NotModelled(f"architecture {(name or model.architecture or '(none named)')[:80]!r} is not modelled")
    return factory(model)


def layer_builder(model: ModelConfig) -> LayerBuilder:
    """Return the function that builds one layer of the language model."""
    return LAYERS.get(text_architecture(model), standard_layer)


def build_model(
    build: Builder, model: ModelConfig, layers: range, *, text_only: bool = False, copied_tower: bool = False
) -> None:
    """Add the tensors of the stage that holds ``layers``.

    Args:
        build: receives the tensors.
        model: the configuration.
        layers: decoder layers of the stage.
        text_only: leave out image and audio towers.
        copied_tower: towers are copied to every rank instead of being cut.

    Raises:
        NotModelled: the architecture is not in the registry.

    """
    name = model.architecture or ""
    whole = WHOLE.get(name)
    if whole is not None:
        whole(build, model)
        return
    traits = traits_of(model)
    if traits.transformers_since is not None and build.release.since(traits.transformers_since):
        traits = through_transformers(traits)
    if name in WRAPPERS and not text_only and model.outer.has("vision_config"):
        add_tower(build, model, WRAPPERS[name][1], copied=copied_tower)
    elif name not in WRAPPERS and not text_only and name not in TRAITS and has_tower(model):
        plain_towers(build, model)
    decoder(build, model, traits, layers, layer=layer_builder(model))
    if text_architecture(model) == "Gemma3nForCausalLM":
        gemma3n_streams(build, model)
