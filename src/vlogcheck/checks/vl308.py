"""VL308: another KV cache type is used than was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.observed import EngineLedger
from vlogcheck.records import EngineConfig, KVCacheDtype, KVCacheDtypeChanged
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup

_BYTES = {"fp8": 1, "int8": 1, "float16": 2, "half": 2, "bfloat16": 2, "float32": 4, "float": 4}


@check("the KV cache type is not the one asked for", Severity.WARNING)
def kv_cache_dtype_not_used(context: Context, config: EngineConfig) -> Iterator[Finding]:
    """Flag a `--kv-cache-dtype` that the engine's banner or a later line says is not used."""
    startup = context.startup
    asked = startup.args.get("kv_cache_dtype")
    changed = startup.last(KVCacheDtypeChanged)
    if not isinstance(asked, str) and changed is None:
        raise Missing("no KV cache type was asked for")
    used, line = _used(startup, config)
    if changed is not None:
        used, line = changed.kv_cache_dtype, changed.line
        asked = asked if isinstance(asked, str) else "another type"
    if used is None or not isinstance(asked, str) or asked == "auto" or _family(asked) == _family(used):
        return
    asked_bytes, used_bytes = _size(asked, config), _size(used, config)
    worth, fix = "", {}
    if asked_bytes and used_bytes and asked_bytes != used_bytes:
        worth = _worth(context.observation.engines, asked_bytes, used_bytes)
        fix = {"kv_cache_dtype": used}
    yield Finding(
        f"--kv-cache-dtype {asked} was asked for, {used} is used",
        line=line,
        expected=f"KV cache in {asked}" + (f" ({asked_bytes} B per element)" if asked_bytes else ""),
        observed=f"KV cache in {used}" + (f" ({used_bytes} B per element)" if used_bytes else ""),
        remedy=(worth or f"plan the KV cache with {used}")
        + f" and say so with --kv-cache-dtype {used}; a device and back end that support {asked} are needed to get it",
        fix=fix,
    )


def _used(startup: Startup, config: EngineConfig) -> tuple[str | None, int]:
    said = startup.last(KVCacheDtype)
    if said is not None and config.kv_cache_dtype in (None, "auto"):
        return said.kv_cache_dtype, said.line
    used = config.kv_cache_dtype or stated(startup, "kv_cache_dtype")
    return (used if isinstance(used, str) else None), config.line


def _family(name: str) -> str:
    name = name.removeprefix("torch.").lower()
    for family in ("fp8_e5m2", "fp8_ds_mla", "fp8_per_token_head"):
        if name.startswith(family):
            return family
    return "fp8" if name.startswith("fp8") else name


def _size(name: str, config: EngineConfig) -> int | None:
    if name == "auto":
        name = config.dtype or ""
    name = name.removeprefix("torch.").lower()
    return next((size for key, size in _BYTES.items() if name.startswith(key)), None)


def _worth(engines: list[EngineLedger], asked: int, used: int) -> str:
    tokens = next((i for e in engines if (i := e.ledger["tokens"].interval) is not None), None)
    if tokens is None:
        return f"plan with {used / asked:g} times the memory per token"
    other = tokens.lo * used // asked
    return f"plan with the {tokens.lo:,} tokens there are, not the {other:,} that {asked} B elements would make"
