"""Parameters a drafter adds to the last pipeline stage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._values import Values
from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._families import layer_builder, text_architecture, traits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights._traits import Traits

__all__ = ["Drafter", "build_drafter"]

#: Methods that guess from the text alone.
_WEIGHTLESS = frozenset({"ngram", "ngram_gpu", "suffix", "[ngram]"})

#: MTP modules that wrap a decoder layer of the target behind a projection of token and state (deepseek_mtp.py).
_DEEPSEEK = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "KimiK2ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
    }
)
#: MTP modules whose layers share one projection (qwen3_next_mtp.py, qwen3_5_mtp.py).
_QWEN = frozenset({"Qwen3NextForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"})


class Drafter:
    """What a drafter adds.

    Attributes:
        params: ``(part, bytes)`` of every parameter it is built with.
        kept: sizes of those it keeps: tables it shares with the target are freed after loading.
        buffers: ``(part, bytes)`` of its own buffers.
        after: ``(part, bytes)`` of what appears after loading.
        missing: why its weights are not known, ``None`` when they are.

    """

    def __init__(self, missing: str | None = None) -> None:
        self.params: list[tuple[str, int]] = []
        self.kept: list[int] = []
        self.buffers: list[tuple[str, int]] = []
        self.after: list[tuple[str, int]] = []
        self.missing = missing


def build_drafter(build: Builder, model: ModelConfig, options: ServeOptions) -> Drafter:
    """Build the drafter asked for by ``--speculative-config``; an empty one where there is none."""
    config: Mapping[str, Any] | None = options.speculative_config
    if not config:
        return Drafter()
    values = Values(config, "speculative_config")
    method = (values.text("method") or "").lower()
    if method in _WEIGHTLESS or (not method and values.text("model") in _WEIGHTLESS):
        return Drafter()
    name = text_architecture(model)
    if "mtp" not in method or name not in _DEEPSEEK | _QWEN:
        return Drafter(missing="the drafter's own configuration is needed to count its weights")
    inner = Builder(build.share, build.item, build.scheme, build.release, absorb=build.absorb, ropes=set(build.ropes))
    traits = traits_of(model)
    shared: set[int] = set()
    if name in _DEEPSEEK:
        _deepseek(inner, model, traits, shared)
    else:
        _qwen(inner, model, traits, shared)
    drafter = Drafter()
    drafter.params = inner.params
    drafter.kept = [size for index, (_, size) in enumerate(inner.params) if index not in shared]
    drafter.buffers, drafter.after = inner.buffers, inner.after
    return drafter


def _modules(model: ModelConfig) -> int:
    """Return the number of MTP modules."""
    return max(1, model.num_nextn_layers)


def _table(build: Builder, model: ModelConfig, shared: set[int]) -> None:
    shared.add(len(build.params))
    build.table("drafter", model.vocab_size, model.hidden_size)


def _deepseek(build: Builder, model: ModelConfig, traits: Traits, shared: set[int]) -> None:
    hidden = model.hidden_size
    layer = layer_builder(model)
    for index in range(model.num_layers, model.num_layers + _modules(model)):
        build.prefix = f"model.layers.{index}"
        for _ in range(3):
            build.norm(hidden)
        build.plain("drafter", 2 * hidden, hidden)
        _table(build, model, shared)
        layer(build, model, traits, index)
    _table(build, model, shared)


def _qwen(build: Builder, model: ModelConfig, traits: Traits, shared: set[int]) -> None:
    hidden = model.hidden_size
    layer = layer_builder(model)
    _table(build, model, shared)
    build.prefix = "mtp"
    build.column("drafter", "fc", 2 * hidden, [hidden])
    # an index the pattern calls full attention, whatever the target's own layers are
    attention = replace_kinds(model)
    for index in range(_modules(model)):
        build.prefix = f"mtp.layers.{index}"
        layer(build, attention, traits, index)
    for _ in range(3):
        build.norm(hidden)
    if not model.tie_word_embeddings:
        _table(build, model, shared)


def replace_kinds(model: ModelConfig) -> ModelConfig:
    """Return the model with every layer a full-attention one."""
    text = {**model.text, "layer_types": ["full_attention"] * _modules(model)}
    raw = text if model.text is model.raw else model.raw
    return replace(model, raw=raw, text=text)
