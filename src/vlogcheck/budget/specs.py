"""From a model's configuration and the flags to what every layer keeps in the KV cache, rank by rank."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vlogcheck.budget import _blocksize, _drafts
from vlogcheck.budget._layer import SLIDING, LayerSpec
from vlogcheck.budget._partition import stages
from vlogcheck.budget._pattern import STATE_KINDS, layer_kinds
from vlogcheck.budget.kinds import BUILDERS, Context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig

__all__ = ["Layer", "LayerSpec", "ModelLayers", "SpecCount", "build_layers"]


@dataclass(frozen=True)
class Layer:
    """One cache a rank registers.

    Attributes:
        number: position in vLLM's order over the whole model; what groups refer to.
        stage: the pipeline stage that holds it.
        spec: what it keeps.
        draft: whether it belongs to the drafter.

    """

    number: int
    stage: int
    spec: LayerSpec
    draft: bool = False


@dataclass(frozen=True)
class SpecCount:
    """How many layers of the whole model share one spec."""

    spec: LayerSpec
    count: int


@dataclass(frozen=True)
class ModelLayers:
    """Every cache of the model, in vLLM's order.

    Attributes:
        layers: all of them.
        stages: how many pipeline stages there are.
        assumptions: what was assumed on the way.

    """

    layers: tuple[Layer, ...]
    stages: int
    assumptions: tuple[str, ...] = ()

    def on_stage(self, stage: int) -> list[Layer]:
        """Return the caches of one pipeline stage."""
        return [layer for layer in self.layers if layer.stage == stage]

    def counted(self) -> list[SpecCount]:
        """Return the different specs with the number of layers that have them, in order of appearance."""
        counts = Counter(layer.spec for layer in self.layers)
        return [SpecCount(spec, count) for spec, count in counts.items()]


def build_layers(model: ModelConfig, settings: Settings) -> ModelLayers:
    """Return what every layer keeps.

    Raises:
        ModelConfigError: the configuration lacks something or cannot be split as asked.

    """
    sizes = _blocksize.choose(model, settings)
    context = Context(model, settings, sizes.attention, sizes.state, sizes.state_page, sizes.shared_page)
    notes = [sizes.assumption] if sizes.assumption else []
    kinds = layer_kinds(model)
    if settings.options.disable_sliding_window:
        kinds = tuple(tuple("full" if kind == "sliding" else kind for kind in layer) for layer in kinds)
    counts = stages(len(kinds), settings.pp, settings.release, settings.env)
    found: list[tuple[int, bool, LayerSpec]] = []
    first = 0
    for stage, count in enumerate(counts):
        held = [kind for index in range(first, first + count) for kind in kinds[index]]
        local = _without_attention(context) if _states_only(held, settings) else context
        if held and not STATE_KINDS & {*held} and settings.release.since("0.33.0"):
            local = replace(context, block_size=_blocksize.choose(model, settings, states=False).attention)
        for index in range(first, first + count):
            for kind in _registered(kinds[index], settings):
                spec = BUILDERS[kind](local, index)
                found.append((stage, kind in STATE_KINDS, spec))
        first += count
    if settings.release.before("0.11.1") or model.text_model_type == "zamba2":
        # attention layers were collected before states (Zamba2 makes its shared attention blocks first)
        found.sort(key=lambda entry: entry[1] if model.text_model_type == "zamba2" else (entry[0], entry[1]))
    layers = [Layer(number, stage, spec) for number, (stage, _, spec) in enumerate(found)]
    drafted = _drafts.draft_specs(context)
    notes.extend(drafted.assumptions)
    if drafted.retained:
        layers = [replace(layer, spec=_retaining(layer.spec, drafted.retained)) for layer in layers]
    last = settings.pp - 1
    layers.extend(Layer(len(layers) + offset, last, spec, draft=True) for offset, spec in enumerate(drafted.specs))
    return ModelLayers(tuple(layers), settings.pp, tuple(notes))


def _states_only(kinds: Sequence[str], settings: Settings) -> bool:
    """Whether a stage of a pipeline holds states and no attention.

    From 0.18.1 on every worker aligns its own block size to its attention layers (``update_block_size_for_backend``);
    one without any leaves the default.
    """
    return settings.release.since("0.18.1") and bool(kinds) and all(kind in STATE_KINDS for kind in kinds)


def _without_attention(context: Context) -> Context:
    settings = context.settings
    size = settings.options.block_size or _blocksize.DEFAULT
    state = size if settings.mamba_mode == "align" else context.state_block_size
    return replace(context, block_size=size, state_block_size=state, state_page=None)


def _retaining(spec: LayerSpec, tokens: int) -> LayerSpec:
    return replace(spec, retained=tokens) if spec.kind == SLIDING else spec


def _registered(kinds: tuple[str, ...], settings: Settings) -> list[str]:
    """Return one layer's caches in the order they are registered: a sparse layer's index before its latent.

    Until 0.23.0 layers that follow another layer's choice made an index of their own all the same. The V0 engine counts a
    decoder layer once, as what it attends to across lies in the same blocks, and keeps states outside of them.
    """
    if settings.is_v0:
        kinds = tuple(kind for kind in kinds if kind != "cross" and kind not in STATE_KINDS)
    indexed = {"sparse", "sparse_shared"} if settings.release.before("0.24.0") else {"sparse"}
    return [name for kind in kinds for name in (("indexer", kind) if kind in indexed else (kind,))]
