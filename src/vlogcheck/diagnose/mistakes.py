"""The registry: one entry per single mistake of a hand ledger, the commonest first.

Each entry takes the ledger by the configuration and yields it with one term changed. An entry that cannot apply (no tensor
parallelism, no latent attention) yields nothing. A table: it is long because a hand ledger can go wrong in that many ways.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget._blocksize import DEFAULT
from vlogcheck.budget._layer import CHUNKED, FULL_KINDS, MAMBA, SLIDING, SLIDING_MLA, LayerSpec
from vlogcheck.budget.kinds._base import share
from vlogcheck.budget.specs import ModelLayers
from vlogcheck.diagnose._case import Case, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MISTAKES", "Mistake"]

_LOCAL = frozenset({SLIDING, SLIDING_MLA, CHUNKED})
_PLAIN = frozenset({"bfloat16", "float16", "float32", "half", "float", "auto", "fp8", "fp8_e4m3", "fp8_e5m2"})


class Mistake(NamedTuple):
    """One entry of the registry."""

    key: str
    summary: str
    changes: Callable[[Case], Iterator[Variant | None]]

    def variants(self, case: Case) -> Iterator[Variant]:
        """Yield the ledgers with this mistake in them."""
        for variant in self.changes(case):
            if variant is not None:
                yield variant


MISTAKES: dict[str, Mistake] = {}


def _mistake(summary: str) -> Callable[[Callable[[Case], Iterator[Variant | None]]], Callable[..., object]]:
    def register(function: Callable[[Case], Iterator[Variant | None]]) -> Callable[..., object]:
        key = function.__name__
        MISTAKES[key] = Mistake(key, summary, function)
        return function

    return register


@_mistake("the tensor-parallel share is not taken: the figure of all ranks together")
def tp_share_not_taken(case: Case) -> Iterator[Variant | None]:
    if case.tp > 1 and not case.latent:
        if case.has_states:  # the states are split as well: plan all of it for one rank
            text = f"the TP share is not taken (TP={case.tp}): all ranks' KV heads and states on one"
            yield case.planned(text, tensor_parallel_size=1)
            return
        whole = Fraction(case.kv_heads, share(case.kv_heads, case.tp))
        if whole != 1:
            yield case.scaled(f"the TP share is not taken (TP={case.tp}): all ranks' KV heads on one", whole)


@_mistake("bytes per element: 1, 2 or 4")
def bytes_per_element(case: Case) -> Iterator[Variant | None]:
    if case.settings.cache_dtype not in _PLAIN:
        return
    now = case.settings.cache_bytes
    names = {1: "1 byte per element (fp8, int8)", 2: "2 bytes per element (16 bit)", 4: "4 bytes per element (float32)"}
    for size, name in names.items():
        if size == now:
            continue
        text = f"{name} instead of {now}"
        if not case.has_states:
            yield case.scaled(text, Fraction(size, now))
        # The block size follows from the state's page, or from the kernel for this type.
        yield case.planned(text, kv_cache_dtype={1: "fp8", 2: "bfloat16", 4: "float32"}[size])


@_mistake("attention heads counted instead of KV heads")
def attention_heads(case: Case) -> Iterator[Variant | None]:
    if case.latent or case.heads <= case.kv_heads:
        return
    text = f"attention heads ({case.heads}) counted instead of KV heads ({case.kv_heads})"
    factor = Fraction(share(case.heads, case.tp), share(case.kv_heads, case.tp))
    if case.has_states:
        yield case.remodelled(text, num_key_value_heads=case.heads)
    elif factor != 1:
        yield case.scaled(text, factor)


@_mistake("K or V counted once instead of both")
def kv_counted_once(case: Case) -> Iterator[Variant | None]:
    if not case.latent and case.keeps_tokens:
        yield case.scaled("K or V counted once instead of both", Fraction(1, 2))


@_mistake("head_dim taken as hidden size ÷ attention heads instead of the explicit key")
def head_dim_from_hidden(case: Case) -> Iterator[Variant | None]:
    explicit = case.model.explicit_head_dim
    if case.latent or explicit is None or not case.heads:
        return
    derived = max(1, case.model.hidden_size // case.heads)
    if derived != explicit:
        text = f"head_dim = hidden size ÷ heads = {derived} instead of the configuration's head_dim {explicit}"
        yield (
            case.remodelled(text, head_dim=derived)
            if case.has_states
            else case.scaled(text, Fraction(derived, explicit))
        )


@_mistake("the layers of all pipeline stages counted instead of one stage's")
def all_pipeline_stages(case: Case) -> Iterator[Variant | None]:
    if case.pp > 1:
        text = f"the layers of all {case.pp} pipeline stages counted on one rank"
        yield _one_stage(case, text)
        yield case.planned(text, pipeline_parallel_size=1)  # with the batches one stage has in flight


@_mistake("the whole model's figure: neither the tensor-parallel nor the pipeline share taken")
def whole_model(case: Case) -> Iterator[Variant | None]:
    if case.pp > 1 and case.tp > 1 and not case.latent:
        text = f"the whole model's figure: neither TP={case.tp} nor PP={case.pp} taken into account"
        if not case.has_states:
            scaled = case.scaled("", Fraction(case.kv_heads, share(case.kv_heads, case.tp)))
            yield _one_stage(replace(case, layers=scaled.layers), text)
        yield case.planned(text, tensor_parallel_size=1, pipeline_parallel_size=1)


@_mistake("the tensor-parallel share taken twice, or one rank's figure taken for the total")
def tp_share_taken_twice(case: Case) -> Iterator[Variant | None]:
    if case.tp > 1 and not case.latent and case.keeps_tokens:
        text = f"the TP share taken twice (TP={case.tp}): a rank's figure was taken for the total and divided again"
        yield case.scaled(text, Fraction(1, case.tp))


@_mistake("one pipeline stage's layers divided by the stages once more")
def pp_share_taken_twice(case: Case) -> Iterator[Variant | None]:
    if case.pp > 1 and case.keeps_tokens:
        text = f"the PP share taken twice (PP={case.pp}): a stage's figure was divided by the stages again"
        yield case.scaled(text, Fraction(1, case.pp))


@_mistake("KV heads divided further although there are fewer of them than ranks, which hold copies")
def replication_forgotten(case: Case) -> Iterator[Variant | None]:
    if case.tp > case.kv_heads and not case.latent and case.keeps_tokens:
        text = f"KV heads are copied, not split, over TP={case.tp} ranks: there are only {case.kv_heads}"
        yield case.scaled(text, Fraction(case.kv_heads, case.tp))


@_mistake("sliding-window and chunked layers counted as full attention")
def local_layers_as_full(case: Case) -> Iterator[Variant | None]:
    local = sum(layer.spec.kind in _LOCAL for layer in case.layers.layers)
    if not local or case.settings.hybrid_disabled:
        return
    sizes = [layer.spec.block_size for layer in case.layers.layers if layer.spec.kind in FULL_KINDS]
    size = sizes[0] if sizes else None

    def full(spec: LayerSpec) -> LayerSpec:
        return replace(spec.promoted(size), window=None) if spec.kind in _LOCAL else spec

    yield case.variant(f"{local} of {len(case.layers.layers)} layers with a window counted as full attention", full)


@_mistake("only the layers with full attention counted")
def local_layers_left_out(case: Case) -> Iterator[Variant | None]:
    kept = [layer for layer in case.layers.layers if layer.spec.kind in FULL_KINDS]
    left = len(case.layers.layers) - len(kept)
    if kept and any(layer.spec.kind in _LOCAL for layer in case.layers.layers) and left:
        text = f"only the {len(kept)} full-attention layers counted, {left} with a window left out"
        yield _with_layers(case, text, replace(case.layers, layers=tuple(kept)))


@_mistake("latent attention (MLA) counted as K and V")
def latent_as_k_and_v(case: Case) -> Iterator[Variant | None]:
    if case.latent:
        yield case.scaled("the latent (MLA) counted as K and V: twice instead of once", Fraction(2))


@_mistake("latent attention (MLA) counted as full attention with all heads")
def latent_as_full_attention(case: Case) -> Iterator[Variant | None]:
    if not case.latent:
        return
    width = case.model.qk_nope_head_dim + case.model.qk_rope_head_dim
    text = f"latent attention counted as {case.heads} heads of {width} with K and V"
    yield case.planned(text, env={**case.setup.env, "VLLM_MLA_DISABLE": "1"})


@_mistake("the latent (MLA) divided by the tensor-parallel size, though every rank holds it whole")
def latent_divided(case: Case) -> Iterator[Variant | None]:
    if case.latent and case.tp > 1:
        text = f"the latent (MLA) divided by TP={case.tp}, though every rank holds it whole"
        yield case.scaled(text, Fraction(1, case.tp))


@_mistake("state layers (Mamba, linear attention) counted as full attention")
def states_as_full_attention(case: Case) -> Iterator[Variant | None]:
    attention = next((layer.spec for layer in case.layers.layers if layer.spec.kind in FULL_KINDS), None)
    if attention is None or not case.has_states:
        return
    states = sum(layer.spec.kind == MAMBA for layer in case.layers.layers)
    text = f"{states} of {len(case.layers.layers)} layers keep a state but are counted as full attention"
    for size in dict.fromkeys((attention.block_size, case.settings.options.block_size or DEFAULT, DEFAULT)):
        plain = attention.with_block_size(size)  # nothing has to hold a state any more
        layers = tuple(
            replace(layer, spec=plain) if layer.spec in (attention, plain) or layer.spec.kind == MAMBA else layer
            for layer in case.layers.layers
        )
        yield _with_layers(case, text, replace(case.layers, layers=layers))


@_mistake("the drafter's layers forgotten")
def drafter_forgotten(case: Case) -> Iterator[Variant | None]:
    kept = tuple(layer for layer in case.layers.layers if not layer.draft)
    drafted = len(case.layers.layers) - len(kept)
    if drafted:
        text = f"the drafter's {drafted} layer{'s' if drafted > 1 else ''} forgotten"
        yield _with_layers(case, text, replace(case.layers, layers=kept))
        yield case.planned(text, speculative_config=None)  # with the states and slots speculation takes


@_mistake("GB (10^9 bytes) and GiB (2^30) taken for each other")
def gb_for_gib(case: Case) -> Iterator[Variant | None]:
    base = case.variant("GB (10^9 bytes) taken where GiB (2^30) is meant")
    if base is not None:
        yield base._replace(memory=Fraction(10**9, 1 << 30), unit=Fraction(1000, 1024))
        text = "GiB (2^30 bytes) taken where GB (10^9) is meant"
        yield base._replace(text=text, memory=Fraction(1 << 30, 10**9), unit=Fraction(1024, 1000))


@_mistake("blocks not rounded: memory divided by bytes per token")
def block_rounding(case: Case) -> Iterator[Variant | None]:
    if case.has_states or any(layer.spec.kind in _LOCAL for layer in case.layers.layers):
        return
    size = max((layer.spec.block_size for layer in case.layers.layers), default=1)
    if size > 1:
        text = f"whole blocks of {size} tokens left out of account"
        yield case.variant(text, lambda spec: spec.with_block_size(1))


@_mistake("all data-parallel engines together")
def all_engines(case: Case) -> Iterator[Variant | None]:
    engines = case.settings.options.data_parallel_size
    base = case.variant(f"the figure of all {engines} data-parallel engines together, each has its own pool")
    if engines > 1 and base is not None:
        yield base._replace(times=Fraction(engines))


def _one_stage(case: Case, text: str) -> Variant | None:
    layers = tuple(replace(layer, stage=0) for layer in case.layers.layers)
    settings = replace(case.settings, options=replace(case.settings.options, pipeline_parallel_size=1))
    return Variant(text, ModelLayers(layers, 1, case.layers.assumptions), settings)


def _with_layers(case: Case, text: str, layers: ModelLayers) -> Variant:
    return Variant(text, layers, case.settings)
