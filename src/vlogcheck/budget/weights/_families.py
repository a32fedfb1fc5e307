"""Which structure an architecture has: one registry, keyed by the name vLLM's own registry uses."""

from __future__ import annotations

from vlogcheck.budget.model import ModelConfig
from vlogcheck.budget.weights._build import Builder, NotModelled
from vlogcheck.budget.weights._decoder import LayerBuilder, decoder, standard_layer
from vlogcheck.budget.weights._hybrids import (
    bamba_layer,
    falcon_h1_layer,
    granite_hybrid_layer,
    jamba_layer,
    kimi_linear_layer,
    lfm2_layer,
    mamba1_layer,
    mamba2_layer,
    nemotron_h_layer,
    qwen_gdn_layer,
)
from vlogcheck.budget.weights._traits import TRAITS

__all__ = ["build_model"]

#: Architectures whose layers are not one attention and one feed-forward part.
LAYERS: dict[str, LayerBuilder] = {
    "BambaForCausalLM": bamba_layer,
    "FalconH1ForCausalLM": falcon_h1_layer,
    "FalconMambaForCausalLM": mamba1_layer,
    "GraniteMoeHybridForCausalLM": granite_hybrid_layer,
    "JambaForCausalLM": jamba_layer,
    "KimiLinearForCausalLM": kimi_linear_layer,
    "Lfm2ForCausalLM": lfm2_layer,
    "Lfm2MoeForCausalLM": lfm2_layer,
    "Mamba2ForCausalLM": mamba2_layer,
    "MambaForCausalLM": mamba1_layer,
    "NemotronHForCausalLM": nemotron_h_layer,
    "NemotronHPuzzleForCausalLM": nemotron_h_layer,
    "Qwen3NextForCausalLM": qwen_gdn_layer,
    "Qwen3_5ForCausalLM": qwen_gdn_layer,
    "Qwen3_5MoeForCausalLM": qwen_gdn_layer,
}


def build_model(build: Builder, model: ModelConfig, layers: range) -> None:
    """Add the tensors of the stage that holds ``layers``.

    Raises:
        NotModelled: the architecture is not in the registry.

    """
    name = model.architecture or ""
    factory = TRAITS.get(name)
    if factory is None:
        raise NotModelled(f"architecture {name or '(none named)'} is not modelled")
    decoder(build, model, factory(model), layers, layer=LAYERS.get(name, standard_layer))
