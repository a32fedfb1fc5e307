"""VL606: chunked prefill is off although it was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked, resolved
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("chunked prefill is off although it was asked for", Severity.WARNING)
def chunked_prefill_off(startup: Startup) -> Iterator[Finding]:
    """Compare `--enable-chunked-prefill` with the banner."""
    used = resolved(startup, "chunked_prefill_enabled")
    config = startup.config
    if asked(startup, "enable_chunked_prefill") is not True or used is not False or config is None:
        return
    length = config.max_model_len
    whole = f"{length:,} tokens" if length else "the longest prompt"
    yield Finding(
        "chunked prefill was asked for and is off",
        line=config.line,
        expected="on (--enable-chunked-prefill)",
        observed="off",
        remedy="state what is used, --no-enable-chunked-prefill"
        + (f" --max-num-batched-tokens {length}" if length else "")
        + f": the activations are those of a whole prompt ({whole}) in one step, and a shorter --max-model-len is what"
        " lowers them",
        fix={"enable_chunked_prefill": "false", **({"max_num_batched_tokens": length} if length else {})},
    )
