"""VL603: the KV cache is stored in another type than asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked
from vlogcheck.records import KVCacheDtype
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_ALIASES = {"fp8_e4m3": "fp8", "fp8_inc": "fp8", "half": "float16"}


@check("the KV cache is stored in another type than asked for", Severity.WARNING)
def kv_cache_dtype_changed(startup: Startup) -> Iterator[Finding]:
    """Compare `--kv-cache-dtype` with the banner and with the line about quantised KV caches."""
    stated = asked(startup, "kv_cache_dtype")
    config = startup.config
    line = startup.last(KVCacheDtype)
    used = line.kv_cache_dtype if line is not None else (config.kv_cache_dtype if config is not None else None)
    at = line.line if line is not None else (config.line if config is not None else None)
    if used is None:
        return
    if isinstance(stated, str) and stated != "auto":
        if _plain(stated) == _plain(used):
            return
        yield Finding(
            f"a KV cache of type {stated} was asked for, {used} is used",
            line=at,
            expected=f"{stated} ({_bytes(stated)} bytes per element)",
            observed=f"{used} ({_bytes(used)} bytes per element)",
            remedy=f"multiply the planned bytes per token by {_ratio(stated, used)}, or choose an attention back"
            " end that stores"
            f" {stated}",
            fix={"kv_cache_dtype": used},
        )
    elif used != "auto" and startup.args and _bytes(used) == "1":
        yield Finding(
            f"the KV cache is stored as {used}, which nobody asked for",
            line=at,
            expected="auto: the type of the model",
            observed=f"{used} (the checkpoint or the platform chose it)",
            remedy="half the bytes per token of a 16-bit plan; check the answers where the checkpoint has no scales",
            fix={"kv_cache_dtype": used},
            severity=Severity.NOTE,
        )


def _plain(name: str) -> str:
    name = name.removeprefix("torch.")
    return _ALIASES.get(name, name)


def _bytes(name: str) -> str:
    if "8" in name and "16" not in name:
        return "1"
    return "4" if "32" in name else "2"


def _ratio(stated: str, used: str) -> str:
    return f"{int(_bytes(used)) / int(_bytes(stated)):g}"
