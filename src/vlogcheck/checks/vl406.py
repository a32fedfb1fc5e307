"""VL406: the encoder budget admits fewer items at once than requests are expected."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._load import per_engine
from vlogcheck.context import Context
from vlogcheck.expect import Expectation
from vlogcheck.records import EncoderCacheBudget
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the encoder budget admits fewer items at once than requests are expected", Severity.NOTE)
def capped_by_encoder_budget(record: EncoderCacheBudget, expected: Expectation, context: Context) -> Iterator[Finding]:
    """Say that requests with images, video or audio start one after the other."""
    if expected.concurrency is None:
        raise Missing("no concurrency was expected: give --expect-concurrency")
    wanted = per_engine(expected.concurrency, len(context.observation.engines))
    if record.items >= wanted or record.items <= 0:
        return
    each = record.budget_tokens // record.items
    yield Finding(
        f"only {record.items} {record.modality} item{'s' if record.items != 1 else ''} of the largest size"
        " can be encoded at once",
        line=record.line,
        expected=f"{wanted} requests with {record.modality} input at once",
        observed=f"a budget of {record.budget_tokens:,} tokens, {each:,} for the largest item",
        remedy=f"--max-num-batched-tokens {each * wanted} admits {wanted} of the largest items in one step;"
        " smaller items"
        f" (--mm-processor-kwargs) of {record.budget_tokens // wanted:,} tokens fit as they are",
        explanation="a request with an item waits until the encoder's budget has room, whatever the KV cache holds",
        fix={"max_num_batched_tokens": each * wanted},
    )
