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
    """Flag a length that was fitted, clamped, overridden, or differs from the arguments."""
    fitted = next((r for r in reversed(startup.all(AutoFit)) if r.max_model_len is not None), None)
    clamp = startup.last(DraftLengthClamp)
    beyond = next((r for r in startup.all(MaxModelLenTooLarge) if r.level == "WARNING"), None)
    if fitted is not None and fitted.max_model_len is not None:
        kept = 100 * fitted.max_model_len / fitted.original_max_model_len
        yield Finding(
            f"the context was fitted to the KV cache: {fitted.max_model_len:,} of {fitted.original_max_model_len:,}"
            " tokens",
            line=fitted.line,
            expected=f"{fitted.original_max_model_len:,} tokens: the model's own length",
            observed=f"{fitted.max_model_len:,} tokens ({kept:.0f} %)"
            + (f", with {fitted.available_gib} GiB for the KV cache" if fitted.available_gib is not None else ""),
            remedy=f"one request of that length fits; for N at once state --max-model-len {fitted.max_model_len} ÷"
            " N, such as"
            f" {max(fitted.max_model_len // 4, 1)} for 4",
            fix={"max_model_len": fitted.max_model_len},
        )
    if clamp is not None:
        yield Finding(
            f"the drafter's context limits requests to {clamp.draft_max_model_len:,} tokens",
            line=clamp.line,
            expected=f"{clamp.target_max_model_len:,} tokens",
            observed=f"{clamp.draft_max_model_len:,} tokens",
            remedy=f"a drafter with a context of {clamp.target_max_model_len:,} tokens, or requests within"
            f" {clamp.draft_max_model_len:,}",
        )
    if beyond is not None:
        yield Finding(
            f"{beyond.max_model_len:,} tokens were forced on a model made for {beyond.derived_max_model_len}",
            line=beyond.line,
            expected=f"at most {beyond.derived_max_model_len} tokens ({beyond.derived_from})",
            observed=f"{beyond.max_model_len:,} tokens",
            remedy=f"--max-model-len {beyond.derived_max_model_len}: beyond it the model's answers are undefined",
        )
    if fitted is None and clamp is None:
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
