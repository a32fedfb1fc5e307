"""Models whose layers hold different amounts per request, told by the configuration's layers or the architecture's name.

For logs whose capacity cannot be planned: without a configuration, or with one whose layers are not modelled.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vlogcheck.budget.releases import parse_release
from vlogcheck.records import HybridManagerOff, ModelArchitecture

if TYPE_CHECKING:
    from vlogcheck.context import Context

_STATES = (
    "Qwen3Next", "Qwen3_5", "KimiLinear", "Jamba", "Bamba", "FalconH1", "NemotronH", "Zamba2", "GraniteMoeHybrid",
    "Lfm2", "MiniMaxText01", "MiniMaxM1", "Plamo2", "BailingMoeV2_5", "Mamba", "FalconMamba",
)  # fmt: skip
"""Beginnings of class names whose models have layers that keep a state (vLLM, model_executor/models, 0.10 to 0.33)."""
_WINDOWS = ("Gemma2", "Gemma3", "Gemma4", "GptOss", "Cohere2", "Olmo3", "Exaone4", "Llama4", "Ministral3")
"""The same for layers with a sliding window or chunks beside full attention."""
_INDEXED = ("DeepseekV32", "DeepseekV4", "GlmMoeDsa")
"""The same for latent attention with an index, windows or compressed layers of their own."""

_WORDS = {
    "full": "full attention",
    "sliding": "sliding window",
    "chunked": "chunked attention",
    "mla": "latent attention",
    "sparse": "latent attention with an index",
    "cross": "cross attention",
}


def uneven_layers(context: Context) -> str | None:
    """Return in words why layers hold different amounts per request, None where nothing says so."""
    startup = context.startup
    # Before 0.9.1 every layer was kept alike; with the hybrid manager off windows are kept like full attention.
    if startup.version is None or parse_release(startup.version).before("0.9.1") or startup.last(HybridManagerOff):
        return None
    if context.model is not None:
        return _by_configuration(context)
    record = startup.last(ModelArchitecture)
    if record is None:
        return None
    for names, what in (
        (_STATES, "layers that keep a state"),
        (_WINDOWS, "layers with a window beside full attention"),
        (_INDEXED, "latent attention with an index or windows of its own"),
    ):
        if record.architecture.startswith(names):
            return f"{record.architecture} has {what}"
    return None


def _by_configuration(context: Context) -> str | None:
    from vlogcheck.budget._pattern import layer_kinds
    from vlogcheck.budget.model import ModelConfigError

    assert context.model is not None
    try:
        layers = layer_kinds(context.model.config)
    except ModelConfigError:
        return None
    counts = Counter(kind for kinds in layers for kind in kinds)
    if len(counts) < 2 and not counts.keys() & {"v4_window", "sparse"}:
        return None
    if "v4_window" in counts:
        return "the configuration has windows, compressed layers and an index beside each other"
    listed = ", ".join(f"{count} × {_WORDS.get(kind, 'state')}" for kind, count in counts.most_common())
    return f"the configuration has layers that hold different amounts ({listed})"
