"""VL605: prefix caching is off."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked
from vlogcheck.records import PrefixCachingOff
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("vLLM switched prefix caching off", Severity.NOTE)
def prefix_caching_off(startup: Startup) -> Iterator[Finding]:
    """Flag prefix caching that vLLM switched off, or that was asked for and is off in the banner."""
    record = startup.last(PrefixCachingOff)
    config = startup.config
    wanted = asked(startup, "enable_prefix_caching") is True
    used = config.enable_prefix_caching if config is not None else None
    if record is None and not (wanted and used is False):
        return
    line = record.line if record is not None else (config.line if config is not None else None)
    yield Finding(
        "prefix caching is off" + (f": {record.reason}" if record is not None else ", although it was asked for"),
        line=line,
        expected="on (--enable-prefix-caching)" if wanted else "on, as usual",
        observed="off",
        remedy="count every request with its whole prompt: N requests that share a prompt of L tokens hold N × L"
        " tokens, not L",
        severity=Severity.WARNING if wanted else None,
    )
