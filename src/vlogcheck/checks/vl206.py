"""VL206: low-bit weights on a back end where they are reported to compute wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers, backend
from vlogcheck.records import EngineConfig
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

LOW_BIT = ("gptq", "awq", "fp8", "int4", "int8", "compressed-tensors", "mxfp4", "fp4", "bitsandbytes", "quark", "gguf")


@check("low-bit weights fit, which does not say that they compute correctly here", Severity.NOTE)
def verify_numerics(config: EngineConfig, startup: Startup, workers: Workers | None) -> Iterator[Finding]:
    """Point out quantised weights on ROCm and DCU cards, where dequantisation kernels are reported to be wrong."""
    method = (config.quantization or "").lower()
    if not any(name in method for name in LOW_BIT) or backend(startup) != "rocm":
        return
    seen = workers[0].ledger["weights"] if workers else None
    size = f" ({seen.text()} per rank)" if seen is not None and seen.known else ""
    yield Finding(
        f"{config.quantization} weights fit{size}: that is not yet a sign that they compute correctly on this back end",
        line=config.line,
        expected="the same answers as the 16-bit model",
        observed=f"quantization={config.quantization} on ROCm (AMD, Hygon DCU)",
        remedy="answer 20 fixed prompts at temperature 0 with this server and with the 16-bit model, and compare the first"
        " 100 tokens of each; where they differ early, use another kernel (--quantization gptq instead of gptq_marlin),"
        " 8 bits, or 16 bits on more cards",
        explanation="dequantisation kernels of this back end are reported to give wrong numbers for some layouts",
    )
