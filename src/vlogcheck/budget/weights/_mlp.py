"""Tensors of feed-forward layers: dense ones and mixtures of experts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.weights._attention import per_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._build import Builder
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["Mixture", "dense", "feed_forward", "is_sparse", "mixture", "moe", "width"]


def dense(
    build: Builder,
    model: ModelConfig,
    traits: Traits,
    inner: int,
    *,
    hidden: int | None = None,
    part: str = "mlp",
    name: str = "mlp",
) -> None:
    """Add a dense feed-forward layer: gate and up fused where gated, then down."""
    hidden = model.hidden_size if hidden is None else hidden
    if traits.gated:
        build.column(
            part, f"{name}.gate_up_proj", hidden, [inner, inner], bias=traits.mlp_bias, pieces=("gate_proj", "up_proj")
        )
    else:
        build.column(part, f"{name}.up_proj", hidden, [inner], bias=traits.mlp_bias)
    build.row(part, f"{name}.down_proj", inner, hidden, bias=traits.mlp_bias)
    for _ in range(traits.activation_scalars):
        build.add(part, 1)
        build.buffer(part, build.item)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Sizes of a mixture-of-experts layer.

    Attributes:
        count: routed experts.
        inner: width of one routed expert.
        shared: width of the shared experts together, 0 without.

    """

    count: int
    inner: int
    shared: int


def mixture(model: ModelConfig) -> Mixture | None:
    """Return the mixture a model's sparse layers hold, ``None`` for dense models."""
    count = model.num_experts
    if count <= 0:
        return None
    values = model.values
    inner = model.moe_intermediate_size or model.intermediate_size
    if inner is None:
        found = values.integers("moe_intermediate_size")
        if not found:
            raise ModelConfigError("config lacks 'moe_intermediate_size'")
        inner = found[0]
    stated = values.integer(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    )
    shared = stated if stated is not None else model.num_shared_experts * inner
    return Mixture(count, inner, shared)


def is_sparse(model: ModelConfig, layer: int) -> bool:
    """Whether a layer is a mixture, by the keys families use to say so."""
    if model.num_experts <= 0:
        return False
    values = model.values
    kinds = values.strings("mlp_layer_types")
    if kinds is not None and layer < len(kinds):
        return kinds[layer] == "sparse"
    flags = (
        values.items("is_moe_layer", "moe_layer_freq") if isinstance(model.text.get("moe_layer_freq"), list) else None
    )
    if flags is not None and layer < len(flags):
        return bool(flags[layer])
    if isinstance(model.text.get("moe_layers"), list):
        return layer in (values.integers("moe_layers") or [])
    if layer in (values.integers("mlp_only_layers") or []):
        return False
    if values.has("moe_layer_start_index", "moe_layer_end_index"):
        last = values.integer("moe_layer_end_index")
        last = model.num_layers - 1 if last is None else last
        interval = values.integer("moe_layer_interval", minimum=1) or 1
        return (values.integer("moe_layer_start_index") or 0) <= layer <= last and (layer + 1) % interval == 0
    step = values.integer("interleave_moe_layer_step")
    if step is not None:
        return step > 0 and (layer + 1) % step == 0
    if values.has("expert_layer_period"):
        return layer % values.need("expert_layer_period", minimum=1) == (values.integer("expert_layer_offset") or 0)
    if layer < (values.integer("first_k_dense_replace", "num_dense_layers") or 0):
        return False
    if values.has("decoder_sparse_step"):
        return (layer + 1) % values.need("decoder_sparse_step", minimum=1) == 0
    return layer % (values.integer("moe_layer_freq", minimum=1) or 1) == 0


def moe(
    build: Builder,
    model: ModelConfig,
    traits: Traits,
    sizes: Mixture,
    *,
    hidden: int | None = None,
    name: str = "mlp",
    order: Sequence[str] = ("router", "shared", "experts"),
) -> None:
    """Add a mixture: router on every rank, shared expert cut over ranks, routed experts cut or dealt out."""
    hidden = model.hidden_size if hidden is None else hidden
    for what in order:
        if what == "router":
            if traits.router_quantised:
                build.linear("router", f"{name}.gate", hidden, [sizes.count], bias=traits.router_bias)
            else:
                build.plain("router", hidden, sizes.count, bias=traits.router_bias, item=traits.router_item)
            if traits.correction_item:
                build.add("router", sizes.count, traits.correction_item)
        elif what == "shared" and sizes.shared:
            if traits.shared_gate:
                build.plain("mlp", hidden, 1)
            inner = traits if traits.shared_bias is None else replace(traits, mlp_bias=traits.shared_bias)
            dense(
                build, model, inner, sizes.shared, hidden=hidden, part="shared_experts", name=f"{name}.shared_experts"
            )
        elif what == "experts":
            build.experts(
                sizes.count, hidden, sizes.inner, gated=traits.gated, bias=traits.expert_bias, name=f"{name}.experts"
            )


def feed_forward(build: Builder, model: ModelConfig, traits: Traits, index: int) -> None:
    """Add a mixture of experts where the model has one in this layer, else a dense layer."""
    sizes = mixture(model)
    if sizes is not None and is_sparse(model, index):
        moe(build, model, traits, sizes)
    else:
        dense(build, model, traits, width(model, index))


def width(model: ModelConfig, layer: int) -> int:
    """Width of a layer's dense feed-forward part."""
    found = model.intermediate_size
    if found is None and isinstance(model.text.get("intermediate_size"), list):
        return per_layer(model, "intermediate_size", layer, 0)
    if not found:
        return 4 * model.hidden_size
    return found
