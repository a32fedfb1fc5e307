"""What the checks about concurrency share: which limit held at run time, and what requests really took."""

from __future__ import annotations

import math
from fractions import Fraction

from vlogcheck._ceiling import is_uniform
from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._tuples import NamedTuple
from vlogcheck.checks._kv import same_for_all
from vlogcheck.context import Context
from vlogcheck.expected import ExpectedEngine
from vlogcheck.observed import EngineLedger
from vlogcheck.records import HybridBlockSize
from vlogcheck.registry import Missing
from vlogcheck.runtime import Sample


class Average(NamedTuple):
    """Tokens an average running request took."""

    tokens: int
    exact: bool
    """Whether they follow from the model's layers, or from layers proven alike; else they are tokens × usage ÷ running."""

    @property
    def text(self) -> str:
        """The figure for people."""
        said = f"about {self.tokens:,} tokens per request"
        return said if self.exact else f"{said} if all layers are alike (--model-config computes it)"


def counted(requests: int) -> str:
    """Return a number of requests for people: `1 request`, `1,204 requests`."""
    return f"{requests:,} request{'s' if requests != 1 else ''}"


def engine_of(context: Context) -> EngineLedger | None:
    """Return the first engine with a capacity."""
    return next((e for e in context.observation.engines if e.ledger["tokens"].known or e.capacity.concurrency), None)


def plan_of(context: Context, engine: EngineLedger | None) -> ExpectedEngine | None:
    """Return the engine's plan, or None where there is none."""
    if context.model is None or engine is None:
        return None
    try:
        return context.model.expected(context, engine)
    except Missing:
        return None


def average_tokens(context: Context, running: Fraction | int, usage_percent: float) -> Average | None:
    """Return the tokens an average request took when `running` of them filled so much of the KV cache."""
    engine = engine_of(context)
    if engine is None or not running:
        return None
    # Where a line sums several engines up, requests are a sum and the usage is a mean.
    share = Fraction(str(usage_percent)) / 100 / running * context.startup.runtime.summed
    plan = plan_of(context, engine)
    blocks = observed_blocks(plan) if plan is not None else None
    if plan is not None and blocks is not None and plan.plan.pool is not None and plan.plan.max_model_len:
        if same_for_all(plan):
            return Average(max(int(blocks.lo * share * plan.plan.specs[0].spec.block_size), 1), True)
        from vlogcheck.budget.pool import largest_length

        each = math.floor(blocks.lo * share)
        layout, longest = plan.plan.pool, plan.plan.max_model_len
        length = largest_length(longest, lambda n: layout.blocks_per_request(n) <= each)
        return Average(max(length, 1), True)
    tokens = engine.ledger["tokens"].interval
    if tokens is None or context.startup.last(HybridBlockSize) is not None:
        return None  # states and large blocks: tokens × usage says nothing about a request
    return Average(max(int(tokens.lo * share), 1), is_uniform(context, engine))


def seqs_reached(context: Context, sample: Sample) -> int | None:
    """Return `max_num_seqs` where a line shows as many requests running as it allows, else None."""
    engine = engine_of(context)
    cap = engine.ledger["max_num_seqs"].interval if engine is not None else None
    return cap.lo if cap is not None and sample.running >= cap.lo * context.startup.runtime.summed else None


def per_engine(wanted: float, engines: int) -> int:
    """Return the requests one of several engines has to run."""
    return math.ceil(Fraction(str(wanted)) / max(engines, 1))
