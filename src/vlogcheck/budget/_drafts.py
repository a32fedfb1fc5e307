"""The layers a drafter adds: MTP modules, EAGLE heads and draft models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vlogcheck.budget._pattern import ATTENTION_KINDS, layer_kinds
from vlogcheck.budget._values import ModelConfigError, as_int
from vlogcheck.budget.kinds import BUILDERS, Context
from vlogcheck.budget.model import ModelConfig, load_model_config

if TYPE_CHECKING:
    from vlogcheck.budget._layer import LayerSpec
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.flags import ServeOptions

_NO_CACHE = frozenset({"ngram", "ngram_gpu", "[ngram]", "medusa", "mlp_speculator", "suffix", "custom_class"})


@dataclass(frozen=True)
class Drafted:
    """The drafter's caches, in order, with what was assumed about them."""

    specs: tuple[LayerSpec, ...] = ()
    assumptions: tuple[str, ...] = ()
    retained: int = 0
    """Tokens sliding layers keep below their window because several MTP modules read ahead (0.28.0 on)."""


def draft_specs(context: Context) -> Drafted:
    """Return the caches the drafter of ``--speculative-config`` adds on the last pipeline stage.

    Raises:
        ModelConfigError: the speculative config or the drafter's configuration cannot be meant.

    """
    spec = context.settings.options.speculative_config
    if not spec or context.settings.release.before("0.8.0"):
        return Drafted()
    method = _method(spec, context.model)
    if method in _NO_CACHE:
        return Drafted()
    if method.endswith("mtp"):
        return _mtp(context)
    drafter = find_drafter(spec.get("model"), context.model)
    if drafter is None:
        said = "drafter's configuration not found: one layer shaped like the target's assumed, as EAGLE heads have"
        return Drafted((_last_attention(context),), (said,))
    if method.startswith("eagle") or method in {"dflash", "dspark"}:
        drafter = _as_decoder(drafter)
    inner = replace(context, model=drafter, settings=_drafter_settings(context, spec, drafter))
    specs = [
        BUILDERS[kind](inner, index)
        for index, kinds in enumerate(layer_kinds(drafter))
        for kind in kinds
        if kind in ATTENTION_KINDS
    ]
    return Drafted(tuple(specs))


def _method(spec: Mapping[str, object], model: ModelConfig) -> str:
    stated = spec.get("method")
    if isinstance(stated, str) and stated:
        return stated.lower()
    name = spec.get("model")
    if isinstance(name, str):
        lowered = name.lower()
        for part in ("eagle3", "eagle", "ngram", "medusa", "mtp"):
            if part in lowered:
                return part
        return "draft_model"
    return "mtp" if model.num_nextn_layers else "draft_model"


def _mtp(context: Context) -> Drafted:
    model = context.model
    stated = model.num_nextn_layers
    one = _mtp_layer(context)
    notes = () if stated else ("number of MTP modules not stated: 1 assumed",)
    modules = stated or 1
    settings = context.settings
    ahead = min(modules, settings.num_speculative_tokens) > 1 and settings.release.since("0.28.0")
    return Drafted(one * modules, notes, settings.num_speculative_tokens - 1 if ahead else 0)


def unknown_drafter(model: ModelConfig, options: ServeOptions) -> str | None:
    """Return why a drafter's caches cannot be known: a whole draft model without its configuration."""
    spec = options.speculative_config
    if not spec:
        return None
    method = _method(spec, model)
    if method in _NO_CACHE or method.endswith("mtp") or method.startswith("eagle"):
        return None
    if find_drafter(spec.get("model"), model) is None:
        return f"the configuration of the drafter ({method}) was not found"
    return None


def _mtp_layer(context: Context) -> tuple[LayerSpec, ...]:
    kinds = layer_kinds(context.model)
    if any(kind.startswith("sparse") for layer in kinds for kind in layer):
        return (BUILDERS["indexer"](context, 0), BUILDERS["sparse"](context, 0))
    return (_last_attention(context),)


def _last_attention(context: Context) -> LayerSpec:
    """Return the spec of the target's last full-attention layer."""
    kinds = layer_kinds(context.model)
    for wanted in (frozenset({"full", "mla", "sparse", "sparse_shared"}), ATTENTION_KINDS):
        for index in range(len(kinds) - 1, -1, -1):
            for kind in kinds[index]:
                if kind in wanted:
                    return BUILDERS[kind](context, index)
    raise ModelConfigError("the model has no attention layer to shape a drafter after")


def find_drafter(name: object, target: ModelConfig) -> ModelConfig | None:
    """Find the drafter's configuration: given as an object, a path, or a name beside the target's own file."""
    if isinstance(name, Mapping):
        return load_model_config(name)
    if not isinstance(name, str) or not name or "\0" in name:
        return None
    places = [Path(name)]
    if target.directory is not None:
        base = Path(name).name
        places += [target.directory / name, target.directory / f"{base}.json", target.directory.parent / base,
                   target.directory.parent / f"{base}.json"]  # fmt: skip
    for place in places:
        if place.is_file() or (place / "config.json").is_file():
            return load_model_config(place)
    return None


def _as_decoder(drafter: ModelConfig) -> ModelConfig:
    """EAGLE configs wrap or repeat the drafter's decoder; a nested ``model`` object is the decoder."""
    inner = drafter.raw.get("model")
    return load_model_config(inner) if isinstance(inner, Mapping) and inner else drafter


def _drafter_settings(context: Context, spec: Mapping[str, object], drafter: ModelConfig) -> Settings:
    settings = context.settings
    tp = spec.get("draft_tensor_parallel_size")
    if tp is not None:
        options = replace(settings.options, tensor_parallel_size=as_int(tp, "draft_tensor_parallel_size", minimum=1))
        settings = replace(settings, options=options)
    return replace(settings, use_mla=settings.use_mla and drafter.is_mla)
