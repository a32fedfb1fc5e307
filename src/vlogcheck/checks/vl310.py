"""VL310: more than a twentieth of the KV cache is padding."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Worker, request_bytes
from vlogcheck.context import Context
from vlogcheck.records import HiddenStateBlockSize, LayerPadding, MambaPagePadding
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib

LIMIT_PERCENT = 5.0
"""Padding below this is the price of whole pages."""


@check("more than 5 % of the KV cache is padding", Severity.WARNING)
def padding_waste(
    layers: LayerPadding | None, states: MambaPagePadding | None, hidden: HiddenStateBlockSize | None, context: Context
) -> Iterator[Finding]:
    """Flag padding layers, padded state pages and misaligned blocks that waste more than 5 %."""
    if layers is None and states is None and (hidden is None or hidden.waste_percent is None):
        raise Missing("the log prints no padding")
    if layers is not None and layers.waste_percent > LIMIT_PERCENT:
        yield Finding(
            f"{layers.padding_layers} padding layer{'s' if layers.padding_layers != 1 else ''} may waste"
            f" {layers.waste_percent:g} % of the KV cache",
            line=layers.line,
            expected=f"at most {LIMIT_PERCENT:g} % of padding",
            observed=f"{layers.waste_percent:g} %: groups of layers are filled up to equal length",
            remedy=_remedy(context, layers.waste_percent, "plan with what the log prints; nothing but another split of the layers"
                           " (pipeline size, drafter) changes it"),
            explanation="all groups take blocks of the same size, so the smaller ones hold empty layers",
        )  # fmt: skip
    if states is not None and states.padding_percent > LIMIT_PERCENT:
        share = states.padding_percent / (100 + states.padding_percent) * 100
        yield Finding(
            f"state pages are {states.padding_percent:g} % larger than their content",
            line=states.line,
            expected=f"at most {LIMIT_PERCENT:g} % of padding",
            observed=f"{share:.1f} % of every state page is padding: it is as large as an attention block",
            remedy=f"count each request's state as {100 + states.padding_percent:g} % of its size; a parallel size or block size"
            f" (--block-size, --mamba-ssm-cache-dtype) whose pages fit better brings it below {LIMIT_PERCENT:g} %",
            explanation="an attention block is a whole multiple of the kernel's block, so its page is larger than the state's",
        )
    if hidden is not None and hidden.waste_percent is not None and hidden.waste_percent > LIMIT_PERCENT:
        yield Finding(
            f"blocks of hidden states are {hidden.waste_percent:g} % padding",
            line=hidden.line,
            expected=f"at most {LIMIT_PERCENT:g} % of padding",
            observed=f"{hidden.waste_percent:g} % of each block of {hidden.block_size_tokens} tokens",
            remedy=f"plan with {hidden.waste_percent:g} % more for the drafter's cache, or serve without it",
        )


def _remedy(context: Context, percent: float, otherwise: str) -> str:
    for engine in context.observation.engines:
        memory = engine.available.tightest if engine.available is not None else None
        if memory is None or memory.hi <= 0:
            continue
        waste = int(memory.hi * percent / 100)
        said = f"up to {format_gib(waste)} per rank hold nothing"
        one = request_bytes(Worker(engine, engine.ranks[0])) if engine.ranks else None
        if one is not None:
            said += f" ({float(waste / one[0]):,.2f} requests of {one[1]:,} tokens)"
        return f"{said}: {otherwise}"
    return otherwise
