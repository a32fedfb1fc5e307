"""VL601: the longest request is not the one asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, whole
from vlogcheck.records import (
    AutoFit,
    DraftLengthClamp,
    EngineConfig,
    KVCacheCapacity,
    MaxConcurrency,
    MaxModelLenTooLarge,
    ServerArgs,
)
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("the longest request is not the one asked for", Severity.WARNING)
def max_model_len_changed(startup: Startup) -> Iterator[Finding]:
    """Flag a length that was forced beyond the model's, or that differs from the arguments."""
    beyond = next((r for r in startup.all(MaxModelLenTooLarge) if r.level == "WARNING"), None)
    if beyond is not None:
        yield Finding(
            f"{beyond.max_model_len:,} tokens were forced on a model made for {beyond.derived_max_model_len}",
            line=beyond.line,
            expected=f"at most {beyond.derived_max_model_len} tokens ({beyond.derived_from})",
            observed=f"{beyond.max_model_len:,} tokens",
            remedy=f"--max-model-len {beyond.derived_max_model_len}: beyond it the model's answers are undefined",
            fix={"max_model_len": beyond.derived_max_model_len} if beyond.derived_max_model_len else {},
        )
    if startup.last(AutoFit) is None and startup.last(DraftLengthClamp) is None:  # what VL311 is about
        yield from _differs(startup)


def _differs(startup: Startup) -> Iterator[Finding]:
    """Compare the arguments with the banner or the concurrency line."""
    stated = whole(asked(startup, "max_model_len"))
    used, line = _used(startup)
    if stated is None or used is None or stated == used:
        return
    yield Finding(
        f"the server was started for {stated:,} tokens and uses {used:,}",
        line=line,
        expected=f"{stated:,} tokens (server arguments, line {_line(startup)})",
        observed=f"{used:,} tokens",
        remedy=f"check that the two lines belong to one server; if so, plan with requests of {used:,} tokens",
        fix={"max_model_len": used},
    )


def _line(startup: Startup) -> int | None:
    record = startup.last(ServerArgs)
    return record.line if record is not None else None


def _used(startup: Startup) -> tuple[int | None, int | None]:
    for capacity in reversed(startup.all(KVCacheCapacity)):
        if capacity.max_model_len:
            return capacity.max_model_len, capacity.line
    printed = startup.last(MaxConcurrency)
    if printed is not None:
        return printed.max_model_len, printed.line
    banner = startup.last(EngineConfig)
    return (banner.max_model_len, banner.line) if banner is not None else (None, None)
