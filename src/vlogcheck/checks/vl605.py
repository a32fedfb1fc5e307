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
    if asked(startup, "enable_prefix_caching") is False or asked(startup, "no_enable_prefix_caching") is True:
        return  # nobody counts on it
    line = record.line if record is not None else (config.line if config is not None else None)
    yield Finding(
        "prefix caching is off" + (f": {record.reason}" if record is not None else ", although it was asked for"),
        line=line,
        expected="on (--enable-prefix-caching)" if wanted else "on, as usual",
        observed="off",
        remedy=_remedy(startup),
        fix={"enable_prefix_caching": "false"},
        severity=Severity.WARNING if wanted else None,
    )


def _remedy(startup: Startup) -> str:
    """Return what two requests hold that share all of a prompt, and how to say that this is known."""
    length = startup.config.max_model_len if startup.config is not None else None
    prompt = length if length else 1024
    return (
        f"count every request with its whole prompt: 2 requests that share {prompt:,} tokens hold {2 * prompt:,}, not"
        f" {prompt:,}; --no-enable-prefix-caching says that the plan does"
    )
