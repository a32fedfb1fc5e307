"""What a diagnosis starts from: the layers of the expected ledger, and how a changed ledger is computed again.

Long because every way to change the ledger (scaled, remodelled, planned anew) is a method of `Case`: a mistake is then one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget._group import CannotGroupError
from vlogcheck.budget._layer import MAMBA, LayerSpec
from vlogcheck.budget.model import ModelConfigError, overridden
from vlogcheck.budget.pool import Pool
from vlogcheck.budget.specs import build_layers
from vlogcheck.ledger import Number
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.specs import ModelLayers
    from vlogcheck.expected import ExpectedEngine, Setup

__all__ = ["Case", "Variant", "case_of"]

Bounds = tuple[Number, Number]


class Variant(NamedTuple):
    """A ledger with one term changed."""

    text: str
    """What was changed, in words, with its numbers."""
    layers: ModelLayers
    settings: Settings
    memory: Fraction = Fraction(1)
    """What the available memory is multiplied by."""
    times: Fraction = Fraction(1)
    """What the resulting tokens or requests are multiplied by."""
    unit: Fraction = Fraction(1)
    """What the resulting bytes are multiplied by."""


@dataclass(frozen=True)
class Case:
    """The expected ledger as far as it can be computed again."""

    setup: Setup
    model: ModelConfig
    settings: Settings
    layers: ModelLayers
    memory: tuple[Interval, ...]
    """Available memory per pipeline stage; empty where it is not known."""

    @property
    def tp(self) -> int:
        """Tensor-parallel size."""
        return self.settings.tp

    @property
    def pp(self) -> int:
        """Pipeline-parallel size."""
        return self.settings.pp

    @property
    def heads(self) -> int:
        """Query heads in all."""
        return self.model.num_attention_heads

    @property
    def kv_heads(self) -> int:
        """KV heads in all."""
        return self.model.num_kv_heads

    @property
    def has_states(self) -> bool:
        """Whether some layers keep a state instead of tokens."""
        return any(layer.spec.kind == MAMBA for layer in self.layers.layers)

    @property
    def keeps_tokens(self) -> bool:
        """Whether some layer keeps tokens, rather than states only."""
        return any(layer.spec.kind != MAMBA for layer in self.layers.layers)

    @property
    def latent(self) -> bool:
        """Whether attention keeps one latent per token."""
        return self.settings.use_mla

    @property
    def unchanged(self) -> Variant:
        """The ledger as it is."""
        return Variant("", self.layers, self.settings)

    def variant(self, text: str, change: Callable[[LayerSpec], LayerSpec | None] | None = None) -> Variant | None:
        """Return the ledger with every attention layer's cache changed; None where a change is not possible."""
        if change is None:
            return Variant(text, self.layers, self.settings)
        changed = []
        for layer in self.layers.layers:
            spec = change(layer.spec) if layer.spec.kind != MAMBA else layer.spec
            if spec is None:
                return None
            changed.append(replace(layer, spec=spec))
        return Variant(text, replace(self.layers, layers=tuple(changed)), self.settings)

    def scaled(self, text: str, factor: Fraction) -> Variant:
        """Return the ledger with the bytes of every attention layer multiplied."""

        def change(spec: LayerSpec) -> LayerSpec | None:
            content = spec.content_bytes * factor
            return replace(spec, content_bytes=int(content)) if content.denominator == 1 and content else None

        whole = self._thinner(text, factor) if self.has_states else self.variant(text, change)
        if whole is not None:
            return whole
        # Not a whole number of bytes per layer: the sum over layers is divided, which is the same for the pool.
        return Variant(text, self.layers, self.settings, memory=1 / factor, unit=factor)

    def _thinner(self, text: str, factor: Fraction) -> Variant | None:
        """Return the ledger with heads, or latents, of another size: the block of a hybrid model follows from it."""
        names = ("kv_lora_rank", "qk_rope_head_dim") if self.latent else ("head_dim",)
        sizes = {name: getattr(self.model, name) * factor for name in names}
        if any(size.denominator > 1 for size in sizes.values()):
            return None
        return self.remodelled(text, **{name: int(size) for name, size in sizes.items()})

    def remodelled(self, text: str, **sizes: int) -> Variant | None:
        """Return the ledger of another configuration; None where the keys are not what its sizes are read from."""
        model = self.model
        inner = {name: sizes for name, part in model.raw.items() if _is_part(part, model.text)}
        try:
            changed = overridden(model, sizes if model.text is model.raw else inner)
            read = {"num_key_value_heads": changed.num_kv_heads, "head_dim": changed.head_dim}
            if any(read.get(name, size) != size for name, size in sizes.items()):
                return None
        except ModelConfigError:
            return None
        return self.planned(text, config=changed)

    def planned(self, text: str, **changed: Any) -> Variant | None:
        """Return the ledger planned again with options or arguments of the plan changed; None where that is no plan."""
        try:
            if self.setup.options.block_size is not None and self.has_states:
                # The block size a log prints follows from the states: it is not asked for, and changes with them.
                free = self.setup.plan(available=None, block_size=None)
                if free.pool is not None and free.pool.layers.layers == self.layers.layers:
                    changed.setdefault("block_size", None)
            plan = self.setup.plan(available=None, **changed)
            if plan.settings is None:
                return None
            if plan.pool is not None:
                return Variant(text, plan.pool.layers, plan.settings)
            # vLLM would refuse to group them: a hand ledger still counts their bytes.
            return Variant(text, build_layers(changed.get("config", self.model), plan.settings), plan.settings)
        except ModelConfigError:
            return None

    def bytes_per_token(self, variant: Variant) -> Fraction:
        """Return the bytes one token takes on the rank that holds most, every attention layer counted in full."""
        stages = [
            sum((_token(layer.spec) for layer in variant.layers.on_stage(stage)), Fraction(0))
            for stage in range(variant.layers.stages)
        ]
        return max(stages, default=Fraction(0)) * variant.unit

    def tokens(self, variant: Variant, length: int) -> Bounds | None:
        """Return the tokens the release would print, for the bounds of the available memory."""
        found = self._blocks(variant)
        if found is None:
            return None
        pool, low, high = found
        least, most = pool.printed(low, length)[0], pool.printed(high, length)[0]
        return least * variant.times, most * variant.times

    def concurrency(self, variant: Variant, length: int) -> Bounds | None:
        """Return the requests of a length that fit."""
        found = self._blocks(variant)
        if found is None:
            return None
        pool, low, high = found
        needed = pool.blocks_per_request(length)
        if not needed:
            return None
        return Fraction(low, needed) * variant.times, Fraction(high, needed) * variant.times

    def _blocks(self, variant: Variant) -> tuple[Pool, int, int] | None:
        if not self.memory or variant.settings.options.num_gpu_blocks_override is not None:
            return None
        try:
            pool = Pool(variant.layers, variant.settings)
        except CannotGroupError:
            return None
        stages = [stage for stage in range(variant.layers.stages) if pool.ranks[stage]]
        memory = _per_stage(self.memory, variant.layers.stages)
        sizes = {stage: pool.bytes_per_block(stage) for stage in stages}
        if not sizes or any(size <= 0 for size in sizes.values()):
            return None
        low = min(int(memory[stage].lo * variant.memory) // sizes[stage] for stage in stages)
        high = min(int(memory[stage].hi * variant.memory) // sizes[stage] for stage in stages)
        return pool, max(low, 0), max(high, 0)


def _token(spec: LayerSpec) -> Fraction:
    return Fraction(0) if spec.kind == MAMBA else Fraction(spec.content_bytes, spec.tokens_per_state)


def _is_part(part: object, text: Mapping[str, Any]) -> bool:
    """Whether an object of a wrapper's configuration is what its language model was read from (defaults are filled in)."""
    return isinstance(part, Mapping) and bool(part) and all(text.get(key) == value for key, value in part.items())


def _per_stage(memory: Sequence[Interval], stages: int) -> list[Interval]:
    if len(memory) == stages:
        return list(memory)
    return [min(memory, key=lambda interval: interval.hi)] * stages


def case_of(expected: ExpectedEngine) -> Case | None:
    """Return what a diagnosis of an engine starts from, or None where the plan has no layers."""
    plan, setup = expected.plan, expected.setup
    if plan.pool is None or plan.settings is None:
        return None
    memory = setup.available
    stages = (memory,) if isinstance(memory, Interval) else tuple(memory or ())
    return Case(setup, setup.config, plan.settings, plan.pool.layers, stages)
