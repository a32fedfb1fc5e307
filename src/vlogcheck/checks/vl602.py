"""VL602: the engine computes in another type than the checkpoint or the arguments say."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, resolved
from vlogcheck.records import DtypeCast, WeightsLoaded
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


@check("the engine computes in another type than the checkpoint or the arguments say", Severity.NOTE)
def dtype_changed(startup: Startup) -> Iterator[Finding]:
    """Flag casts, with what they do to weights and KV cache."""
    cast = startup.last(DtypeCast)
    if cast is not None:
        before, after = _BYTES.get(cast.from_dtype), _BYTES.get(cast.to_dtype)
        grows = before is not None and after is not None and after > before
        factor = f"{after / before:g} times" if before and after and before != after else "the same as"
        loaded = sum(r.gib for r in startup.engines[0].all(WeightsLoaded)) if startup.engines else 0
        effect = f"weights and an automatic KV cache take {factor} the checkpoint's bytes"
        if grows and loaded and before and after:
            effect += f": {loaded * before / after:.2f} GiB of the {loaded:.2f} GiB loaded would do"
        yield Finding(
            f"the checkpoint is {cast.from_dtype}, the engine computes in {cast.to_dtype}",
            line=cast.line,
            expected=cast.from_dtype,
            observed=cast.to_dtype,
            remedy=f"--dtype {cast.from_dtype} if that was not meant"
            + ("" if grows else f"; {before or '?'} bytes per element become {after or '?'}"),
            explanation=effect,
            fix={"dtype": cast.from_dtype},
            severity=Severity.WARNING if grows else None,
        )
        return
    stated, used = asked(startup, "dtype"), resolved(startup, "dtype")
    if not isinstance(stated, str) or stated == "auto" or not isinstance(used, str):
        return
    used, stated = used.removeprefix("torch."), stated.removeprefix("torch.")
    if _same(stated, used):
        return
    yield Finding(
        f"{stated} was asked for, the engine computes in {used}",
        line=startup.config.line if startup.config is not None else None,
        expected=stated,
        observed=used,
        remedy=f"{_BYTES.get(stated, '?')} bytes per element were planned, {_BYTES.get(used, '?')} are used:"
        f" recompute with {used}"
        f" or find out why --dtype {stated} was not taken",
        severity=Severity.WARNING,
    )


def _same(one: str, other: str) -> bool:
    names = {"half": "float16", "float": "float32"}
    return names.get(one, one) == names.get(other, other)
