"""VL603: the KV cache is quantised, and nobody asked for it."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked
from vlogcheck.records import KVCacheDtype
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("the KV cache is stored in 8 bits or less, and nobody asked for it", Severity.NOTE)
def kv_cache_quantised_unasked(startup: Startup) -> Iterator[Finding]:
    """Flag a quantised KV cache that the checkpoint or the platform chose."""
    stated, config, said = asked(startup, "kv_cache_dtype"), startup.config, startup.last(KVCacheDtype)
    if not startup.args or (isinstance(stated, str) and stated != "auto") or config is None:
        return
    used, line = config.kv_cache_dtype, config.line
    if used in (None, "auto") and said is not None:
        used, line = said.kv_cache_dtype, said.line
    if used is None or not any(word in used for word in ("fp8", "int8", "fp4", "int4")):
        return
    bits = 4 if "4_" in used or used.endswith("4") else 8
    bits = 8 if used.startswith("fp8") else bits
    yield Finding(
        f"the KV cache is stored as {used}, which nobody asked for",
        line=line,
        expected="auto: the type of the model",
        observed=f"{used}, chosen by the checkpoint or the platform",
        remedy=f"divide the bytes per token of a 16-bit plan by {16 // bits} and say so with --kv-cache-dtype {used}, or undo it"
        " with --kv-cache-dtype bfloat16 (auto cannot); check the answers where the checkpoint has no scales",
        fix={"kv_cache_dtype": used},
    )
