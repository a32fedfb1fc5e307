"""VL206: low-bit weights on a back end where they are reported to compute wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import Workers, backend
from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.ledger import Term
from vlogcheck.records import EngineConfig
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import format_gib

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
        remedy=f"answer 20 fixed prompts at temperature 0 with this server and with the 16-bit model{_sixteen(seen, startup)},"
        " and compare the first 100 tokens of each; where they differ early, use another kernel (--quantization gptq instead of"
        " gptq_marlin), 8 bits, or serve the 16-bit model",
        explanation="dequantisation kernels of this back end are reported to give wrong numbers for some layouts",
    )


def _sixteen(seen: Term | None, startup: Startup) -> str:
    """Return what the same parameters take in 16 bits: at most four times the weights of 4 bits."""
    if seen is None or seen.interval is None:
        return ""
    tp, pp = parallel_sizes(startup)
    most = 4 * seen.interval.mid
    return (
        f" (at most {format_gib(most)} on each of {tp * pp} ranks, or {format_gib(seen.interval.mid)} on {4 * tp * pp})"
    )
