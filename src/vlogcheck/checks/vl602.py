"""VL602: the engine computes in another type than the checkpoint or the arguments say."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, resolved
from vlogcheck.records import DtypeCast
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


@check("the engine computes in another type than the checkpoint or the arguments say", Severity.NOTE)
def dtype_changed(startup: Startup) -> Iterator[Finding]:
    """Flag casts, with what they do to weights and KV cache."""
    cast = startup.last(DtypeCast)
    if cast is not None:
        before, after = _BYTES.get(cast.from_dtype), _BYTES.get(cast.to_dtype)
        if before and after and after > before:
            return  # served in float32: VL205
        same = before == after
        stated = asked(startup, "dtype")
        known = isinstance(stated, str) and _same(stated.removeprefix("torch."), cast.to_dtype)
        if known:
            return  # the plan knows
        yield Finding(
            f"the checkpoint is {cast.from_dtype}, the engine computes in {cast.to_dtype}",
            line=cast.line,
            expected=cast.from_dtype,
            observed=cast.to_dtype,
            remedy=(
                f"nothing for the memory: {after or '?'} bytes per element either way"
                if same
                else f"plan with {after or '?'} bytes per element, not the {before or '?'} of the files on disk"
            )
            + f"; --dtype {cast.to_dtype} says that the plan knows",
            fix={"dtype": cast.to_dtype},
            explanation=_why(cast.to_dtype),
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


def _why(used: str) -> str:
    return "cards below compute capability 8.0 have no bfloat16" if used == "float16" else ""


def _same(one: str, other: str) -> bool:
    names = {"half": "float16", "float": "float32"}
    return names.get(one, one) == names.get(other, other)
