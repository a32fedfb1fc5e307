"""VL520: the log and `/metrics` disagree about the KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._memory import release_of
from vlogcheck.checks._metrics import engine_pairs
from vlogcheck.context import Context
from vlogcheck.ledger import Term
from vlogcheck.metrics_page import EngineMetrics, MetricsPage
from vlogcheck.observed import EngineLedger
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the log and /metrics disagree about the KV cache", Severity.ERROR)
def metrics_contradict_log(page: MetricsPage, context: Context) -> Iterator[Finding]:
    """Hold blocks, tokens and concurrency of `--metrics` against the log's."""
    compared = False
    for engine, metrics in engine_pairs(context, page):
        for said, logged, line, what in _pairs(engine, metrics, context):
            compared = True
            low, high = logged
            if said is None or low <= said <= high:
                continue
            middle = Fraction(low + high) / 2
            ratio = max(middle, Fraction(said)) / min(middle, Fraction(said)) if said and middle else None
            least = min(Fraction(said), middle)
            yield Finding(
                f"the log says {float(middle):,.10g} {what}, /metrics {float(said):,.10g}"
                + (f": {float(ratio):.2f} times apart" if ratio is not None else ""),
                line=line,
                expected=f"{float(middle):,.10g} {what} as logged",
                observed=f"{float(said):,.10g} in {page.path} (engine {metrics.engine})",
                remedy=_remedy(what, least, engine, context),
                explanation="one of the two was computed before the block size was final, or they are of two servers",
            )
            return
    if not compared:
        raise Missing("the metrics page and the log have no figure of the KV cache in common")


def _pairs(
    engine: EngineLedger, metrics: EngineMetrics, context: Context
) -> Iterator[tuple[int | float | None, tuple[Fraction, Fraction], int | None, str]]:
    ledger = engine.ledger
    tokens, blocks, concurrency = ledger["tokens"], ledger["blocks"], ledger["concurrency"]

    if metrics.kv_cache_size_tokens is not None and tokens.known:
        yield metrics.kv_cache_size_tokens, _bounds(tokens), tokens.line, "tokens of KV cache"
    if metrics.kv_cache_max_concurrency is not None and concurrency.known:
        said = round(metrics.kv_cache_max_concurrency, 2)
        yield said, _bounds(concurrency), concurrency.line, "requests at once"
    if metrics.num_gpu_blocks is not None and blocks.known and blocks.status == "printed":
        yield metrics.num_gpu_blocks, _bounds(blocks), blocks.line, "KV cache blocks"
    # Before 0.20.2 tokens = blocks ÷ groups × block size; later ones follow from the concurrency instead.
    old = context.startup.version is not None and release_of(context.startup).before("0.20.2")
    interval = tokens.interval
    if old and interval is not None and metrics.num_gpu_blocks and metrics.block_size and not blocks.known:
        whole = metrics.num_gpu_blocks * metrics.block_size
        groups = max(round(whole / interval.lo), 1) if interval.lo else 1
        said_tokens = metrics.num_gpu_blocks // groups * metrics.block_size
        yield said_tokens, _bounds(tokens), tokens.line, "tokens of KV cache"


def _bounds(term: Term) -> tuple[Fraction, Fraction]:
    return Fraction(term.lo or 0), Fraction(term.hi or 0)


def _remedy(what: str, least: Fraction, engine: EngineLedger, context: Context) -> str:
    length = engine.ledger["max_model_len"].interval
    advice = "check that the page is of the server that wrote this log (same start, same engine)"
    smaller = f"{advice}; until then plan with the smaller figure, {float(least):,.10g} {what}"
    if length is None:
        return smaller
    requests = least / length.lo if "tokens" in what else least if "requests" in what else None
    if requests is None:
        return smaller
    text = f"{advice}; if it is, plan with the smaller figure: {float(requests):.2f} requests of {length.lo:,} tokens"
    if requests < 1:
        fits = int(requests * length.lo)
        text += f", which is below one: nothing longer than {fits:,} tokens can finish, so lower --max-model-len to at most that"
    return text
