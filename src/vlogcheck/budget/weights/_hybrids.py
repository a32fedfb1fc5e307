"""Layers of models that mix attention with state layers, by how their configuration says which layer is which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.weights._attention import gqa
from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._dimensions import NotModelled
from vlogcheck.budget.weights._kinds import STATE_KINDS, layer_kind, two_norms
from vlogcheck.budget.weights._mixers import Ssm, mamba1, mamba2
from vlogcheck.budget.weights._mlp import Mixture, dense, is_sparse, mixture, moe, width

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["bamba_layer", "falcon_h1_layer", "granite_hybrid_layer", "jamba_layer", "nemotron_h_layer"]


def _ssm2(model: ModelConfig) -> Ssm:
    """Mamba-2 sizes in the spelling of Bamba, Granite and Falcon-H1."""
    values = model.values
    hidden = model.hidden_size
    inner = values.integer("mamba_d_ssm") or (values.integer("mamba_expand") or 2) * hidden
    return Ssm(
        hidden,
        inner,
        values.need("mamba_d_state", minimum=1),
        values.integer("mamba_d_conv", minimum=1) or 4,
        values.flag("mamba_conv_bias", default=True),
        values.flag("mamba_proj_bias"),
        heads=values.need("mamba_n_heads", minimum=1),
        groups=values.integer("mamba_n_groups", minimum=1) or 1,
        norms=True,
    )


def jamba_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Jamba: Mamba-1 or attention, then a dense layer or a mixture."""
    values = model.values
    if layer_kind(model, index) in STATE_KINDS:
        rank = values.integer("mamba_dt_rank") if values.data.get("mamba_dt_rank") != "auto" else None
        sizes = Ssm(
            model.hidden_size,
            (values.integer("mamba_expand", minimum=1) or 2) * model.hidden_size,
            values.integer("mamba_d_state", minimum=1) or 16,
            values.integer("mamba_d_conv", minimum=1) or 4,
            values.flag("mamba_conv_bias", default=True),
            values.flag("mamba_proj_bias"),
            rank=rank or -(-model.hidden_size // 16),
            norms=True,
        )
        mamba1(build, sizes)
    else:
        gqa(build, model, traits, index, rope=False)
    sparse = mixture(model)
    if sparse is not None and sparse.count > 1 and is_sparse(model, index):
        moe(build, model, traits, sparse, name="feed_forward")
    else:
        dense(build, model, traits, width(model, index), name="feed_forward")
    two_norms(build, model, traits)


def falcon_h1_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Falcon-H1: attention and Mamba-2 side by side in every layer."""
    gqa(build, model, traits, index)
    sizes = replace(_ssm2(model), norms=model.values.flag("mamba_rms_norm"))
    mamba2(build, sizes)
    groups = sizes.groups if sizes.groups % build.share.tp == 0 else build.share.tp
    multipliers = 2 * sizes.inner + 2 * groups * sizes.state + sizes.heads
    build.buffer("mamba", build.cut(multipliers, "Mamba projection") * build.item)
    dense(build, model, traits, width(model, index), name="feed_forward")
    two_norms(build, model, traits)


def bamba_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Bamba: Mamba-2 or attention, then a dense layer."""
    if _attends(model, index):
        gqa(build, model, traits, index)
    else:
        mamba2(build, _ssm2(model))
    dense(build, model, traits, width(model, index), name="feed_forward")
    two_norms(build, model, traits)


def _attends(model: ModelConfig, index: int) -> bool:
    return layer_kind(model, index) not in STATE_KINDS


def granite_hybrid_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Granite 4: Mamba-2 or attention, then a mixture with a shared expert, or the shared expert alone."""
    if _attends(model, index):
        gqa(build, model, traits, index, rope=model.values.text("position_embedding_type") == "rope")
    else:
        mamba2(build, _ssm2(model))
    shared = model.values.integer("shared_intermediate_size") or 0
    count = model.num_experts
    if count > 0:
        inner = model.intermediate_size
        if inner is None:
            raise ModelConfigError("config lacks 'intermediate_size'")
        moe(build, model, traits, Mixture(count, inner, 0), name="block_sparse_moe")
    if shared:
        dense(build, model, traits, shared, part="shared_experts", name="shared_mlp")
    two_norms(build, model, traits)


def nemotron_h_layer(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Nemotron-H: one sublayer per layer, named by a letter of ``hybrid_override_pattern``."""
    values = model.values
    pattern = values.text("hybrid_override_pattern")
    names = {
        "mamba": "M", "mamba2": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "mlp": "-",
        "moe": "E",
    }  # fmt: skip
    if pattern is None:
        kinds = model.layer_types
        if kinds is None:
            raise ModelConfigError("config lacks 'hybrid_override_pattern'")
        pattern = "".join(names.get(kind, "?") for kind in kinds)
    letter = pattern[index] if index < len(pattern) else "?"
    if letter == "M":
        sizes = Ssm(
            model.hidden_size,
            values.need("mamba_num_heads", minimum=1) * values.need("mamba_head_dim", minimum=1),
            values.need("ssm_state_size", minimum=1),
            values.integer("conv_kernel", minimum=1) or 4,
            values.flag("use_conv_bias", default=True),
            values.flag("use_bias"),
            heads=values.need("mamba_num_heads", minimum=1),
            groups=values.integer("n_groups", minimum=1) or 1,
            norms=True,
        )
        mamba2(build, sizes, name="mixer")
    elif letter == "*":
        gqa(build, model, traits, index, rope=False)
    elif letter == "-":
        dense(build, model, traits, _nemotron_width(model, pattern, index), name="mixer")
    elif letter == "E":
        _nemotron_moe(build, model, traits)
    else:
        raise NotModelled(f"layer {index} of the pattern is {letter!r}")
    build.norm(model.hidden_size)


def _nemotron_width(model: ModelConfig, pattern: str, index: int) -> int:
    listed = model.text.get("intermediate_size")
    if isinstance(listed, list):
        sizes = model.values.integers("intermediate_size") or [0]
        return sizes[0] if len(sizes) == 1 else sizes[min(pattern[:index].count("-"), len(sizes) - 1)]
    return width(model, index)


def _nemotron_moe(build: Builder, model: ModelConfig, traits: Traits) -> None:
    sizes = mixture(model)
    if sizes is None:
        raise ModelConfigError("config lacks 'n_routed_experts'")
    small = model.values.integer("moe_latent_size")
    shared = model.num_shared_experts * (model.values.integer("moe_shared_expert_intermediate_size") or sizes.inner)
    if build.release.since("0.11.1") and build.release.before("0.17.0"):
        traits = replace(traits, router_item=4)
    moe(build, model, traits, replace(sizes, shared=shared), name="mixer", order=("router", "shared"))
    if small is not None:
        for name, n_in, n_out in (
            ("fc1_latent_proj", model.hidden_size, small),
            ("fc2_latent_proj", small, model.hidden_size),
        ):
            build.linear("mlp", f"mixer.{name}", n_in, [n_out], bias=traits.mlp_bias)
    build.experts(sizes.count, small or model.hidden_size, sizes.inner, gated=False, name="mixer.experts")
