"""VL205: the weights are in float32."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import DeviceWorkers, worth
from vlogcheck.records import EngineConfig
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.units import format_gib


@check("the weights are in float32", Severity.WARNING)
def loaded_in_float32(workers: DeviceWorkers, config: EngineConfig) -> Iterator[Finding]:
    """Flag a model served in float32 on an accelerator."""
    if config.dtype not in ("float32", "float") or config.quantization:
        return
    worker = workers[0]
    seen = worker.ledger["weights"].interval
    half = f": the weights take {format_gib(seen.mid // 2)} instead of {format_gib(seen.mid)} per rank" if seen else ""
    gain = f", the KV cache gets {format_gib(seen.mid // 2)} more{worth(worker, seen.mid // 2)}" if seen else ""
    yield Finding(
        "the model is served in float32: weights and KV cache take twice what 16 bits do",
        line=config.line,
        expected="bfloat16 or float16",
        observed="float32 in the engine's banner",
        remedy=f"--dtype bfloat16{half}{gain}, and each token takes half the KV cache",
        fix={"dtype": "bfloat16"},
    )
