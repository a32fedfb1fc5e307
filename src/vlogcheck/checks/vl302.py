"""VL302: the two capacity lines contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck._pool_blocks import observed_blocks
from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._kv import Capacities, same_for_all
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.observed import EngineLedger
from vlogcheck.records import HybridBlockSize, MambaCacheMode, MambaPagePadding
from vlogcheck.registry import Finding, Missing, Severity, check


@check("tokens ÷ length is not the printed concurrency", Severity.WARNING)
def tokens_and_concurrency(capacities: Capacities, context: Context) -> Iterator[Finding]:
    """Flag two capacity lines that cannot both be true of one pool, by the rule of the release."""
    judged = False
    for engine in capacities:
        ledger = engine.ledger
        tokens, printed, length = ledger["tokens"], ledger["concurrency"], ledger["max_model_len"].interval
        if tokens.interval is None or printed.lo is None or printed.hi is None or length is None or length.lo <= 0:
            continue
        judged = True
        uniform = _uniform(context, engine)
        if _states(context):
            continue  # a request holds state pages besides its tokens, so the lines state two quantities: VL303
        low, high, rule = _bounds(context, engine, tokens.interval.lo, length.lo, uniform=uniform)
        if low <= printed.hi and (high is None or printed.lo <= high):
            continue
        if uniform is False and _by_layers(context, engine):
            continue
        quotient, said = Fraction(tokens.interval.lo, length.lo), f"{float(printed.lo + printed.hi) / 2:.2f}x"
        due = f"{float(low):.2f}x" + (f" to {float(high):.2f}x" if high is not None and high != low else "")
        maybe = uniform is None and high is None  # layers may be of kinds that the log does not show
        told = context.model is not None and context.model.stated and uniform
        yield Finding(
            f"{tokens.interval.lo:,} tokens ÷ {length.lo:,} is {float(quotient):.2f}, but {said} is printed",
            line=printed.line,
            expected=f"{due} ({rule})",
            observed=f"{said} on line {printed.line}",
            remedy=f"promise no more than {int(min(Fraction(printed.lo), quotient)):,} requests of {length.lo:,} tokens, the"
            " smaller of the two, until the lines are known to come from one server",
            explanation=_why(maybe=maybe, uniform=bool(uniform)),
            severity=Severity.ERROR if told else Severity.NOTE if maybe else None,
        )
    if not judged:
        raise Missing("the log does not print both tokens and concurrency")


def _why(*, maybe: bool, uniform: bool) -> str:
    if maybe:
        return "a decoder that looks at an encoder's output (Whisper) takes more than its length: --model-config says"
    same = "the configuration says that every layer costs the same per token, so the two lines state one quantity"
    return same if uniform else ""


def _states(context: Context) -> bool:
    startup = context.startup
    if startup.version is None or parse_release(startup.version).since("0.20.2"):
        return False
    return bool(startup.last(HybridBlockSize) or startup.last(MambaPagePadding) or startup.last(MambaCacheMode))


def _uniform(context: Context, engine: EngineLedger) -> bool | None:
    """Whether all layers cost the same per token; None where no configuration says it."""
    if context.model is None:
        return None
    try:
        return same_for_all(context.model.expected(context, engine))
    except Missing:
        return None


def _by_layers(context: Context, engine: EngineLedger) -> bool:
    """Whether some number of blocks gives both figures with the layers of the configuration."""
    return context.model is not None and observed_blocks(context.model.expected(context, engine)) is not None


def _bounds(
    context: Context, engine: EngineLedger, tokens: int, length: int, *, uniform: bool | None
) -> tuple[Fraction, Fraction | None, str]:
    """Return the least and most concurrency that goes with the tokens, and the rule."""
    release = parse_release(context.startup.version)
    if context.startup.version is None:  # any release's rule may hold
        return Fraction(tokens, length) * Fraction(1, 4), None, "tokens ÷ length, at least a part of it"
    if release.since("0.20.2"):
        return Fraction(tokens, length), Fraction(tokens + 1, length), "tokens are concurrency × length, rounded down"
    if release.before("0.9.1"):
        exact = Fraction(tokens, length)
        return exact, exact, "tokens ÷ length"
    size = engine.ledger["block_size"].interval
    step = size.hi if size else 128
    if uniform and context.model is not None:
        step = context.model.expected(context, engine).plan.specs[0].spec.block_size
    shards = stated(context.startup, "decode_context_parallel_size")
    step *= shards if isinstance(shards, int) and shards > 0 else 1
    rounded = Fraction(tokens, -(-length // step) * step)
    if uniform:
        return rounded, Fraction(tokens, length), "tokens ÷ length, the length rounded up to whole blocks"
    # Layers with a window or a state hold less than the whole request; a window takes one block more at most.
    return Fraction(tokens, (-(-length // step) + 1) * step), None, "at least tokens ÷ length in whole blocks"
