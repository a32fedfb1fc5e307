"""State-space models and their hybrids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._traits import Traits

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

__all__ = ["STATE"]


def _mamba(model: ModelConfig) -> Traits:
    return Traits(tied=True, embedding="all", final_everywhere=True, head_all=True)


def _zamba2(model: ModelConfig) -> Traits:
    return Traits(head="never")


def _falcon_h1(model: ModelConfig) -> Traits:
    return Traits(embedding="first")


def _jamba(model: ModelConfig) -> Traits:
    return Traits(embedding="all", final_everywhere=True, head="always", head_all=True)


def _bamba(model: ModelConfig) -> Traits:
    bias = model.values.flag("attention_bias")
    return Traits(
        qkv_bias=bias, o_bias=bias, mlp_bias=model.values.flag("mlp_bias"), embedding="all", final_everywhere=True
    )


def _nemotron_h(model: ModelConfig) -> Traits:
    values = model.values
    bias = values.flag("attention_bias")
    return Traits(
        qkv_bias=bias,
        o_bias=bias,
        gated=False,
        mlp_bias=values.flag("mlp_bias"),
        correction_item=4,
        embedding="all",
        final_everywhere=True,
        head="always",
        head_all=True,
    )


def _kimi_linear(model: ModelConfig) -> Traits:
    return Traits(embedding="first")


def _olmo_hybrid(model: ModelConfig) -> Traits:
    return Traits(qk_norm="whole", embedding="all", final_everywhere=True, head_all=True)


def _lfm2(model: ModelConfig) -> Traits:
    return Traits(
        qk_norm="head",
        head="never",  # tied whatever the configuration says
        embedding="all",
        correction_item=4 if model.values.flag("use_expert_bias") else 0,
    )


#: Architecture as vLLM's registry spells it -> the traits of its decoder.
STATE: dict[str, Callable[[ModelConfig], Traits]] = {
    "BambaForCausalLM": _bamba,
    "FalconH1ForCausalLM": _falcon_h1,
    "FalconMambaForCausalLM": _mamba,
    "GraniteMoeHybridForCausalLM": _bamba,
    "JambaForCausalLM": _jamba,
    "KimiLinearForCausalLM": _kimi_linear,
    "Lfm2ForCausalLM": _lfm2,
    "Lfm2MoeForCausalLM": _lfm2,
    "Mamba2ForCausalLM": _mamba,
    "MambaForCausalLM": _mamba,
    "NemotronHForCausalLM": _nemotron_h,
    "NemotronHPuzzleForCausalLM": _nemotron_h,
    "OlmoHybridForCausalLM": _olmo_hybrid,
    "Zamba2ForCausalLM": _zamba2,
}
