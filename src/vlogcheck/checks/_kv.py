"""What the checks about the KV cache share: the plan of each engine, how sure it is, figures and remedies in numbers."""

from __future__ import annotations

import math
from fractions import Fraction

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck._tuples import NamedTuple
from vlogcheck.context import Context, provide
from vlogcheck.deployment import not_modelled, platform_of, stated
from vlogcheck.expect import Expectation
from vlogcheck.expected import ExpectedEngine
from vlogcheck.ledger import Number
from vlogcheck.observed import EngineLedger
from vlogcheck.records import BlocksOverride
from vlogcheck.registry import Missing, Severity
from vlogcheck.startup import Startup
from vlogcheck.units import Interval, format_bytes, format_gib

ROUNDING = "the rounding of the printed figures"


class Capacities(list[EngineLedger]):
    """The engines that print how much their KV cache holds; never empty, on platforms whose rules are known."""


class Plans(list[ExpectedEngine]):
    """The plan of every engine that prints a capacity; never empty."""


def _capacities(context: Context) -> Capacities:
    found = Capacities(e for e in context.observation.engines if e.ledger["tokens"].known or e.capacity.concurrency)
    if not found:
        raise Missing("the log prints no KV cache capacity")
    if (why := not_modelled(context.startup)) is not None:
        raise Missing(f"not checked: {why}")
    return found


def _plans(context: Context) -> Plans:
    if context.model is None:
        raise Missing("no model configuration: give --model-config")
    return Plans(context.model.expected(context, engine) for engine in context.get(Capacities))


provide(Capacities, _capacities)
provide(Plans, _plans)


class Contradiction(NamedTuple):
    """How much a figure that is not what the configuration gives weighs, and why not more."""

    severity: Severity
    doubt: str


def contradiction(context: Context, plan: ExpectedEngine) -> Contradiction:
    """Return the weight of a contradiction between log and configuration: an error, unless the rules are in doubt."""
    settings = plan.plan.settings
    doubt = settings.release.assumption if settings is not None else None
    if doubt is None and platform_of(context.startup) is None and not _on_gpu(context.startup):
        doubt = "the log does not name its platform: a CUDA or ROCm card assumed"
    return Contradiction(Severity.WARNING if doubt else Severity.ERROR, doubt or "")


def _on_gpu(startup: Startup) -> bool:
    from vlogcheck.records import KVCacheCapacity

    return any(r.device.lower() in ("gpu", "cuda", "rocm") for r in startup.all(KVCacheCapacity)) or bool(
        startup.config
    )


def same_for_all(plan: ExpectedEngine) -> bool:
    """Whether every layer of the plan costs the same per token, so that tokens ÷ length is a capacity."""
    groups = plan.plan.groups
    if plan.plan.pool is None or not plan.plan.specs:
        return False
    if plan.plan.settings is not None and plan.plan.settings.is_v0:
        return True
    return len(groups) == 1 and groups[0].kind not in ("MambaSpec", "SlidingWindowSpec", "ChunkedLocalAttentionSpec")


def override_of(startup: Startup) -> BlocksOverride | None:
    """Return the line that says blocks were set by hand; the one vLLM prints while it profiles graphs says nothing."""
    return next((r for r in reversed(startup.all(BlocksOverride)) if r.profiled_blocks > 0), None)


def overridden(startup: Startup) -> bool:
    """Whether the number of blocks was set by hand, so that memory does not explain it."""
    return override_of(startup) is not None or stated(startup, "num_gpu_blocks_override") is not None


class Cost(NamedTuple):
    """Bytes per token and rank as the log implies them under the plan's layout."""

    seen: tuple[Fraction, Fraction]
    expected: Fraction
    blocks: Interval
    block_size: int
    basis: str = ""
    """What it follows from, where that is not the memory ÷ the tokens."""

    @property
    def agrees(self) -> bool:
        """Whether the plan's figure lies within the printed rounding."""
        return self.seen[0] < self.expected <= self.seen[1]

    @property
    def more(self) -> bool:
        """Whether a token costs more than planned (fewer tokens fit)."""
        return self.seen[0] >= self.expected


def cost_of(plan: ExpectedEngine) -> Cost | None:
    """Return what a token costs by the log: memory ÷ blocks, up to one block of memory being left over."""
    layout, memory = plan.plan.pool, plan.available
    older = plan.plan.settings is not None and plan.plan.settings.is_v0
    if layout is None or (memory is None and not older) or (not plan.plan.groups and not older):
        return None
    stages = [stage for stage in range(layout.layers.stages) if layout.ranks[stage]]
    size = max((layout.bytes_per_block(stage) for stage in stages), default=0)
    tokens = plan.plan.specs[0].spec.block_size if plan.plan.specs else 0
    blocks = observed_blocks(plan)
    if blocks is None:
        ledger = plan.engine.ledger
        if (printed := ledger["tokens"].interval) is None or not tokens:
            return None
        blocks = Interval(max(printed.lo // tokens, 1), max(-(-printed.hi // tokens), 1))
    if not size or not tokens or not blocks.lo:
        return None
    if memory is None:  # the older engine's blocks of host memory say it, where it prints no memory of the device
        term = plan.engine.ledger["kv_bytes_per_token"]
        if term.lo is None or term.hi is None:
            return None
        return Cost((Fraction(term.lo), Fraction(term.hi)), Fraction(size, tokens), blocks, tokens, term.formula)
    seen = Fraction(memory.lo, (blocks.hi + 1) * tokens), Fraction(memory.hi, blocks.lo * tokens)
    return Cost(seen, Fraction(size, tokens), blocks, tokens)


def capacity_line(engine: EngineLedger) -> int | None:
    """Return the line that shows an engine's capacity, whatever the release prints."""
    capacity = engine.capacity
    return capacity.tokens_line or capacity.blocks_line or capacity.concurrency_line


def bytes_text(low: Number, high: Number | None = None) -> str:
    """Return bytes per token for people: `57,344 B (56 KiB)`, or bounds."""
    if high is None or round(low) == round(high):
        whole = round(low)
        said = format_bytes(whole)
        return f"{whole:,} B" + (f" ({said})" if not said.endswith(" B") else "")
    return f"{math.ceil(low):,} to {math.floor(high):,} B"


def tokens_text(interval: Interval) -> str:
    """Return tokens, or their bounds."""
    return f"{interval.lo:,}" if interval.exact else f"{interval.lo:,} to {interval.hi:,}"


def missing_memory(plan: ExpectedEngine | None, engine: EngineLedger, factor: Number) -> str:
    """Return how much more KV cache memory per rank `factor` times as much capacity takes; nothing where it is unknown."""
    memory = engine.available.tightest if engine.available is not None else None
    if memory is None or memory.hi <= 0 or factor <= 1:
        return ""
    more = Fraction(memory.hi) * (Fraction(factor) - 1)
    return f"{format_gib(int(more))} more KV cache memory per rank ({format_gib(int(memory.hi + more))} in all)"


def utilization_for(engine: EngineLedger, more: Number) -> float | None:
    """Return the utilization, rounded up to two decimals, that gives a rank `more` bytes; None where it is not known."""
    best = 0.0
    for rank in engine.ranks:
        total, share = rank.ledger["total"], rank.ledger["utilization"]
        if total.lo is None or share.hi is None or rank.rule.pinned or share.status == "assumed":
            return None
        best = max(best, math.ceil((Fraction(share.hi) + Fraction(more) / Fraction(total.lo)) * 100) / 100)
    return best or None


def diagnosed(
    plan: ExpectedEngine, seen: tuple[Number, Number], what: str = "bytes", *, length: int | None = None,
    wanted: Expectation | None = None,
) -> str:  # fmt: skip
    """Return the diagnosis of a figure in words: of the log's own, or of one that was `wanted` beside other expectations."""
    from vlogcheck.diagnose import Evidence, case_of, diagnose_bytes_per_token, diagnose_concurrency, diagnose_tokens

    case = case_of(plan)
    if case is None:
        return ""
    told = wanted.size("kv_bytes_per_token") if wanted is not None else None
    evidence = Evidence(printed=wanted is None, bytes_told=told)
    if what == "bytes":
        return diagnose_bytes_per_token(case, seen, evidence).text
    if length is None:
        return ""
    if what == "tokens":
        return diagnose_tokens(case, seen, length, evidence).text
    return diagnose_concurrency(case, seen, length, evidence).text
