"""From a configuration's quantisation to the scheme its weights follow: long, as every method has keys of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._values import Values
from vlogcheck.budget.weights._exporters import quark, torchao
from vlogcheck.budget.weights._quant import PLAIN, BlockFp8, Grouped, Mxfp4, PerTensor, Scheme, Unknown

if TYPE_CHECKING:
    from vlogcheck.budget._device import Device
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.releases import Release

__all__ = ["scheme_of"]

_TWO = "8-bit and 4-bit layouts are exact as loaded; what kernels repack or pad afterwards is not known from the config"
_MIXED = "mixed-precision checkpoints name per-module formats that are followed only in outline"
_PADDED = "4-bit expert kernels pad widths by GPU and release; the padding of the usual kernel is assumed"

#: Names vLLM uses for one layout.
_AWQ = frozenset({"awq", "awq_marlin", "auto_awq"})
_GPTQ = frozenset({"gptq", "gptq_marlin", "auto_gptq", "gptq_marlin_24", "gptq_bitblas"})
_SKIP_KEYS = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")


def scheme_of(model: ModelConfig, options: ServeOptions, release: Release, device: Device | None) -> Scheme:
    """Return the scheme of a model's linear layers, an :class:`Unknown` one where the layout is not modelled."""
    config = model.quantization_config
    method = model.quantization_method
    asked = (options.quantization or "").lower() or None
    if asked in {"none", "null"}:
        asked = None
    if config is None or method is None:
        return _online(asked)
    values = Values(config, "quantization_config")
    skipped = tuple(_names(values))
    if method == "fp8" or method == "fbgemm_fp8":
        return _fp8(values, skipped, release, channel=method == "fbgemm_fp8")
    if method in _AWQ or asked in _AWQ:
        bits = values.integer("bits", "w_bit", minimum=1) or 4
        group = _group(values, "group_size", "q_group_size")
        return Grouped(
            method="awq",
            skipped=skipped,
            substring=True,
            bits=bits,
            group=group,
            zeros=values.flag("zero_point", default=True),
            tolerance=0.02,
            reason=_TWO,
        )
    if method in _GPTQ:
        bits = values.integer("bits", minimum=1) or 4
        return Grouped(
            method="gptq",
            skipped=skipped,
            substring=True,
            bits=bits,
            group=_group(values, "group_size"),
            zeros=True,
            g_idx=release.before("0.30.0"),
            tolerance=0.02,
            reason=_TWO,
        )
    if method == "mxfp4" or method == "gpt_oss_mxfp4":
        return _mxfp4(skipped, release, device)
    if method in {"compressed-tensors", "compressed_tensors"}:
        return _compressed(values, skipped)
    if method in {"modelopt", "modelopt_fp4", "modelopt_mixed"}:
        return _modelopt(values, skipped, method)
    if method == "bitsandbytes":
        if values.flag("load_in_8bit"):
            return PerTensor(method="bitsandbytes", skipped=skipped, channel=True, tolerance=0.05, reason=_MIXED)
        return Grouped(
            method="bitsandbytes",
            skipped=skipped,
            bits=4,
            group=64,
            zeros=False,
            scale_item=4,
            tolerance=0.05,
            reason=_MIXED,
        )
    if method == "quark":
        return quark(values)
    if method == "torchao":
        return torchao(values)
    return Unknown(method=method, reason=f"quantisation {method!r} is not modelled")


def _online(asked: str | None) -> Scheme:
    """Quantisation while loading, asked for by a flag on a 16-bit checkpoint."""
    if asked is None or asked in {"auto"}:
        return PLAIN
    if asked in {"fp8", "fp8_per_tensor", "ptpc_fp8"}:
        return PerTensor(
            method="fp8",
            cache_scales=True,
            channel=asked == "ptpc_fp8",
            tolerance=0.02,
            reason="weights are quantised while loading: one byte a weight and a scale per tensor afterwards",
        )
    if asked in {"fp8_per_block"}:
        return BlockFp8(method="fp8", cache_scales=True, tolerance=0.02, reason=_TWO)
    if asked == "bitsandbytes":
        return Grouped(method=asked, bits=4, group=64, zeros=False, scale_item=4, tolerance=0.05, reason=_MIXED)
    return Unknown(method=asked, reason=f"quantisation {asked!r} is not modelled")


def _names(values: Values) -> list[str]:
    for key in _SKIP_KEYS:
        found = values.items(key)
        if found:
            return [name for name in found if isinstance(name, str)]
    return []


def _group(values: Values, *keys: str) -> int:
    found = values.first(*keys)
    if found is None:
        return 128
    if isinstance(found[1], int) and not isinstance(found[1], bool) and found[1] <= 0:
        return -1
    return values.integer(*keys, minimum=1) or 128


def _fp8(values: Values, skipped: tuple[str, ...], release: Release, *, channel: bool) -> Scheme:
    block = values.integers("weight_block_size")
    if block is not None and len(block) == 2 and min(block) > 0:
        scale = 1 if values.text("scale_fmt") == "ue8m0" and values.text("scale_dtype") == "e8m0" else 4
        return BlockFp8(
            method="fp8",
            skipped=skipped,
            cache_scales=True,
            rows=block[0],
            columns=block[1],
            scale_item=scale,
            refined=release.since("0.29.0"),
            tolerance=0.02,
            reason=_TWO,
        )
    static = (values.text("activation_scheme") or "dynamic") == "static"
    return PerTensor(
        method="fp8",
        skipped=skipped,
        cache_scales=True,
        channel=channel,
        static_input=static,
        tolerance=0.02,
        reason=_TWO,
    )


def _mxfp4(skipped: tuple[str, ...], release: Release, device: Device | None) -> Scheme:
    # data-centre Hopper and Blackwell run the Triton kernel where vLLM ships it (0.12 on), everything else Marlin
    marlin = release.before("0.12.0") or (device is not None and not 90 <= device.capability < 110)
    return Mxfp4(
        method="mxfp4",
        skipped=skipped,
        width_multiple=128 if marlin else 64,
        hidden_multiple=256 if marlin else 32,
        tolerance=0.07,
        reason=_PADDED,
    )


def _compressed(values: Values, skipped: tuple[str, ...]) -> Scheme:
    groups = values.object("config_groups").data
    weights = [
        Values(entry["weights"], "weights")
        for entry in groups.values()
        if isinstance(entry, Mapping) and isinstance(entry.get("weights"), Mapping)
    ]
    if not weights:
        return Unknown(method="compressed-tensors", reason="no weight format in 'config_groups'")
    spread = len({_shape(w) for w in weights}) > 1
    kind = weights[0]
    common: dict[str, Any] = {
        "method": "compressed-tensors",
        "skipped": skipped,
        "cache_scales": True,
        "tolerance": 0.05 if spread else 0.02,
        "reason": _MIXED if spread else _TWO,
    }
    bits = kind.integer("num_bits", minimum=1) or 8
    strategy = kind.text("strategy") or "channel"
    style = kind.text("type") or "int"
    if bits == 4 and style == "float":
        common.update(tolerance=0.05, reason=_PADDED)
        return Grouped(**common, bits=4, group=_group(kind, "group_size"), zeros=False, scale_item=1, global_scale=8)
    if bits == 8 and strategy == "block":
        block = kind.integers("block_structure") or [128, 128]
        return BlockFp8(**common, rows=block[0] or 128, columns=(block[1] if len(block) > 1 else 128) or 128)
    inputs = next((e.get("input_activations") for e in groups.values() if isinstance(e, Mapping)), None)
    if bits == 8 and (style == "float" or isinstance(inputs, Mapping)):
        static = isinstance(inputs, Mapping) and not inputs.get("dynamic", False)
        return PerTensor(**common, channel=strategy == "channel", static_input=static)
    if style != "int" or bits not in {2, 3, 4, 8}:
        return Unknown(method="compressed-tensors", reason=f"{bits}-bit {style} weights are not modelled")
    group = _group(kind, "group_size") if strategy in {"group", "tensor_group"} else -1
    return Grouped(**common, bits=bits, group=group, zeros=not kind.flag("symmetric", default=True), shape=16)


def _shape(weights: Values) -> tuple[Any, ...]:
    return weights.integer("num_bits"), weights.text("type"), weights.text("strategy"), weights.data.get("group_size")


def _modelopt(values: Values, skipped: tuple[str, ...], method: str) -> Scheme:
    inner = values.object("quantization") if values.has("quantization") else values
    algorithm = (inner.text("quant_algo") or "").upper()
    names = skipped or tuple(_names(inner))
    if algorithm in {"FP8", ""} and method == "modelopt":
        return PerTensor(
            method="modelopt", skipped=names, cache_scales=True, static_input=True, tolerance=0.02, reason=_TWO
        )
    if algorithm == "NVFP4" or method == "modelopt_fp4":
        return Grouped(
            method="modelopt_fp4",
            skipped=names,
            cache_scales=True,
            bits=4,
            group=_group(inner, "group_size") if inner.has("group_size") else 16,
            zeros=False,
            scale_item=1,
            global_scale=8,
            tolerance=0.05,
            reason=_PADDED,
        )
    return Unknown(method=method, reason=f"modelopt format {algorithm or '?'} is not modelled")
