"""VL412: expected requests are longer than the server accepts."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, Missing, Severity, check


@check("expected requests are longer than max_model_len", Severity.ERROR)
def context_too_long(expected: Expectation, context: Context) -> Iterator[Finding]:
    """Flag a `--context` beyond the length the server serves: such requests are refused."""
    if expected.context is None:
        raise Missing("no length was given: give --context")
    lengths = [
        (i.lo, e.ledger["max_model_len"].line)
        for e in context.observation.engines
        if (i := e.ledger["max_model_len"].interval)
    ]
    if not lengths:
        raise Missing("the log does not print max_model_len")
    longest, line = min(lengths)
    if expected.context <= longest:
        return
    yield Finding(
        f"requests of {expected.context:,} tokens are refused: max_model_len is {longest:,}",
        line=line,
        expected=f"requests of {expected.context:,} tokens",
        observed=f"{longest:,} tokens at most, prompt and answer together",
        remedy=f"--max-model-len {expected.context} serves them, if the model was made for it; the KV cache"
        " then holds fewer at once",
        fix={"max_model_len": expected.context},
    )
