"""Checkpoints written by AMD Quark and by torchao: their own spelling of the usual layouts.

Sources: ``quantization/quark/quark.py`` and ``quantization/torchao.py`` of vllm/model_executor/layers (0.32).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget._values import Values
from vlogcheck.budget.weights._quant import BlockFp8, Grouped, PerTensor, Scheme, Unknown

if TYPE_CHECKING:
    from typing import Any

__all__ = ["quark", "torchao"]

_QUARK = "Quark names formats per module; the global one is followed, modules with another are not"
_TORCHAO = "torchao keeps weights as tensor subclasses whose inner layout depends on its release and kernels"


def quark(values: Values) -> Scheme:
    """Return the scheme of ``global_quant_config``: fp8, int8, 4-bit integers or floats of the OCP formats."""
    excluded = tuple(name for name in values.items("exclude") or [] if isinstance(name, str))
    config = values.object("global_quant_config")
    stated = config.data.get("weight")
    if isinstance(stated, list):  # two-step formats (fp4 with fp8 scales) list both
        stated = stated[0] if stated else None
    if not isinstance(stated, Mapping):
        return Unknown(method="quark", reason="quark: no weight format in 'global_quant_config'")
    weight = Values(stated, "weight")
    kind, spread = weight.text("dtype") or "", weight.text("qscheme") or ""
    common: dict[str, Any] = {"method": "quark", "skipped": excluded, "tolerance": 0.05, "reason": _QUARK}
    inputs = config.data.get("input_tensors")
    static = isinstance(inputs, Mapping) and inputs.get("is_dynamic") is False
    if kind in {"fp8_e4m3", "int8"} and spread in {"per_tensor", "per_channel"}:
        return PerTensor(**common, channel=spread == "per_channel", static_input=static)
    if kind == "fp8_e4m3" and spread == "per_block":
        return BlockFp8(**common)
    group = weight.integer("group_size", minimum=1) or 32
    if kind in {"fp4", "mxfp4"}:
        return Grouped(**common, bits=4, group=group, zeros=False, scale_item=1)
    if kind.startswith(("fp6", "mxfp6")):
        return Grouped(**common, bits=6, group=group, zeros=False, scale_item=1)
    if kind in {"int4", "uint4"}:
        return Grouped(**common, bits=4, group=group, zeros=kind == "uint4")
    return Unknown(method="quark", reason=f"quark format {(kind or '?')[:40]!r} is not modelled")


def torchao(values: Values) -> Scheme:
    """Return the scheme of ``quant_type``: 8-bit floats or integers per row, 4-bit integers in groups."""
    skipped = tuple(name for name in values.items("modules_to_not_convert") or [] if isinstance(name, str))
    kind = values.object("quant_type").data.get("default")
    if not isinstance(kind, Mapping):
        return Unknown(method="torchao", reason="torchao: no format in 'quant_type'")
    name = str(kind.get("_type") or "")
    data = kind.get("_data")
    inner = Values(data if isinstance(data, Mapping) else {}, "quant_type")
    common: dict[str, Any] = {"method": "torchao", "skipped": skipped, "tolerance": 0.05, "reason": _TORCHAO}
    if "Int4" in name:
        return Grouped(**common, bits=4, group=inner.integer("group_size", minimum=1) or 128, zeros=True)
    if "Float8" in name or "Int8" in name:
        return PerTensor(**common, channel=True)
    return Unknown(method="torchao", reason=f"torchao format {(name or '?')[:60]!r} is not modelled")
