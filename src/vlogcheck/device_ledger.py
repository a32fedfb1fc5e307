"""One rank's device memory: total × utilization − weights − non-torch − activation − graph estimate = KV cache.

Which terms vLLM subtracts differs by release (`device_rule`), and so does which of them it prints; every term here says
whether it was printed, derived from the others, given by the user or is unknown. Terms are intervals of their printed
rounding; what remains when all of them are known is a term of its own, `unexplained`, and what the log leaves unprinted
together is the term `rest`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeVar

from vlogcheck._host_blocks import host_blocks
from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.device_rule import DeviceRule, device_rule
from vlogcheck.ledger import Ledger, Number
from vlogcheck.records import (
    BlocksOverride,
    ExternalWeights,
    FreeMemoryTooLow,
    GraphCapture,
    GraphCaptureSkipped,
    GraphEstimate,
    GraphPool,
    GraphUtilization,
    KVCacheMemory,
    KVCachePinned,
    MemoryProfile,
    MemorySnapshot,
    MemoryUse,
    OutOfMemory,
    ProfilingResult,
    RequestedMemory,
    StartupPlanApplied,
    WeightsLoaded,
    XPUMemory,
)
from vlogcheck.template import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.expect import Expectation
    from vlogcheck.startup import Engine, Rank, Startup

__all__ = ["observe_rank", "printed_range"]

R = TypeVar("R", bound=Record)


def _decimal(value: float) -> Fraction:
    """Return the decimal a float was printed as, exactly."""
    return Fraction(str(value))


def printed_range(value: float, decimals: int = 2) -> tuple[Fraction, Fraction]:
    """Return the bounds of the numbers printed as `value` with that many decimals."""
    middle = _decimal(value)
    half = Fraction(1, 2 * 10**decimals)
    return middle - half, middle + half


class _Lines:
    """The records one rank printed, also those that start-ups do not sort by rank."""

    def __init__(self, engine: Engine, rank: Rank, ranks: Sequence[Rank]) -> None:
        self._engine = engine
        self._rank = rank
        key = (rank.process, rank.pid)
        self._twins = [other for other in ranks if (other.process, other.pid) == key]
        self._alone = len(ranks) == 1

    def last(self, kind: type[R]) -> R | None:
        """Return the rank's last record of a kind, or None where the log does not say whose it is."""
        own = self._rank.last(kind)
        if own is not None:
            return own
        records = [r for r in self._engine.records if isinstance(r, kind)]
        tagged = [r for r in records if (r.process, r.pid) == (self._rank.process, self._rank.pid)]
        if self._alone:
            return (tagged or records)[-1] if records else None
        if len(self._twins) > 1:  # several ranks without a tag: told apart by order, where each printed one
            return tagged[self._twins.index(self._rank)] if len(tagged) == len(self._twins) else None
        return tagged[-1] if tagged else None


def observe_rank(
    startup: Startup, engine: Engine, rank: Rank, ranks: Sequence[Rank], expectation: Expectation | None = None
) -> tuple[Ledger, DeviceRule]:
    """Return one rank's ledger and the rule by which its terms add up."""
    ledger = Ledger(rank.name)
    lines = _Lines(engine, rank, ranks)
    use, profile = lines.last(MemoryUse), lines.last(MemoryProfile)
    result = lines.last(ProfilingResult)
    refusal = lines.last(FreeMemoryTooLow)
    rule = _rule(startup, engine, lines, use, profile, result)
    _add_card(ledger, lines, use or profile or refusal, use or refusal, expectation)
    _add_utilization(startup, ledger, use or profile or refusal)
    _add_requested(ledger, lines, use, profile, refusal)
    _add_weights(ledger, lines, use, profile, result)
    _add_peak(ledger, use, profile, result)
    _add_graphs(ledger, lines, use, rule)
    _add_pool(ledger, lines, use, profile)
    if len(ranks) == 1 and ledger["requested"].known and not ledger["kv_cache"].known:
        _add_blocks(ledger, startup, engine)
    _close(ledger, rule)
    return ledger, _without_estimate(ledger, rule)


def _rule(
    startup: Startup, engine: Engine, lines: _Lines, use: MemoryUse | None, profile: MemoryProfile | None,
    result: ProfilingResult | None,
) -> DeviceRule:  # fmt: skip
    config = engine.config or startup.config
    release = parse_release(startup.version)
    generation = config.engine_generation if config is not None else None
    v0 = generation == "V0" or profile is not None or release.before("0.7.0")
    eager = bool(config is not None and config.enforce_eager) or startup.args.get("enforce_eager") is True
    eager = eager or startup.last(GraphCaptureSkipped) is not None
    said = startup.last(GraphUtilization)
    consumed = (use is not None and use.consumed_gib is not None) or (
        result is not None and result.consumed_gib is not None
    )
    pinned = lines.last(KVCachePinned) is not None or startup.last(StartupPlanApplied) is not None
    counted = said.enabled if said is not None else None
    return device_rule(release, v0=v0, eager=eager, counted=counted, consumed=consumed, pinned=pinned)


def _add_card(
    ledger: Ledger, lines: _Lines, summary: MemoryUse | MemoryProfile | FreeMemoryTooLow | None,
    start: MemoryUse | FreeMemoryTooLow | None, expectation: Expectation | None,
) -> None:  # fmt: skip
    """Add the card's total and what was free of it when the worker started."""
    snapshot, pool, xpu = lines.last(MemorySnapshot), lines.last(KVCacheMemory), lines.last(XPUMemory)
    told = [r for r in (summary, snapshot, pool, xpu) if r is not None]
    totals = [(r.total_gib, r.line) for r in told if r.total_gib is not None and r.total_gib > 0]
    failed = lines.last(OutOfMemory)
    if not totals and failed is not None and failed.total_gib is not None and failed.total_gib > 0:
        totals = [(failed.total_gib, failed.line)]
    if totals:
        ledger.printed("total", "device memory", *totals[0])
    elif expectation is not None and (given := expectation.size("total_memory")) is not None:
        ledger.between("total", "device memory", "bytes", given, "given", origin="--total-memory")
    asked, pinned = lines.last(RequestedMemory), lines.last(KVCachePinned)
    plan = lines.last(StartupPlanApplied)
    for record in (start, asked, snapshot, pinned, plan):
        if record is not None and record.free_gib is not None:
            ledger.printed("free", "free at start", record.free_gib, record.line)
            break
    if profile_initial := getattr(summary, "initial_gib", None):
        ledger.printed("initial", "in use before profiling", profile_initial, getattr(summary, "line", 0))


def _add_utilization(
    startup: Startup, ledger: Ledger, summary: MemoryUse | MemoryProfile | FreeMemoryTooLow | None
) -> None:
    stated = startup.args.get("gpu_memory_utilization")
    if isinstance(stated, (int, float)) and not isinstance(stated, bool) and 0 < stated <= 1:
        ledger.exact("utilization", "utilization", "ratio", _decimal(stated), "printed", origin="server arguments")
    elif (said := startup.last(GraphUtilization)) is not None:
        ledger.between("utilization", "utilization", "ratio", printed_range(said.current, 4), "printed", line=said.line)
    elif summary is not None:
        ledger.between(
            "utilization", "utilization", "ratio", printed_range(summary.gpu_memory_utilization), "printed",
            line=summary.line,
        )  # fmt: skip
    elif startup.version is not None or startup.args:
        default = default_utilization(parse_release(startup.version))
        ledger.exact(
            "utilization", "utilization", "ratio", _decimal(default), "assumed", origin="the release's default"
        )


def _add_requested(
    ledger: Ledger,
    lines: _Lines,
    use: MemoryUse | None,
    profile: MemoryProfile | None,
    refusal: FreeMemoryTooLow | None,
) -> None:
    formula = "total × utilization"
    external = lines.last(ExternalWeights)
    if external is not None:
        ledger.printed("external", "weights held elsewhere", external.external_gib, external.line)
        ledger.printed(
            "requested", "requested", external.engine_gib, external.line, formula=f"{formula} − weights held elsewhere"
        )
        return
    for record in (use, profile, refusal, lines.last(RequestedMemory)):
        if record is not None and record.requested_gib is not None:
            ledger.printed("requested", "requested", record.requested_gib, record.line, formula=formula)
            return
    total, share = ledger["total"], ledger["utilization"]
    if total.lo is None or total.hi is None or share.lo is None or share.hi is None:
        return
    status: Literal["derived", "assumed"] = "assumed" if share.status == "assumed" else "derived"
    ledger.between(
        "requested", "requested", "bytes", (total.lo * share.lo, total.hi * share.hi), status, formula=formula
    )


def _add_weights(
    ledger: Ledger, lines: _Lines, use: MemoryUse | None, profile: MemoryProfile | None, result: ProfilingResult | None
) -> None:
    for record in (use, profile, result):
        if record is not None and record.weights_gib is not None:
            ledger.printed("weights", "weights", record.weights_gib, record.line)
            break
    weights = lines.last(WeightsLoaded)
    if weights is not None and ("weights" not in ledger or len(weights.gib.text.partition(".")[2]) >= 4):
        ledger.printed("weights", "weights", weights.gib, weights.line)  # four decimals beat two
    for said in (use, result):
        if said is not None and said.consumed_gib is not None:
            ledger.printed("consumed", "weights and non-torch", said.consumed_gib, said.line)
            break


def _add_peak(
    ledger: Ledger, use: MemoryUse | None, profile: MemoryProfile | None, result: ProfilingResult | None
) -> None:
    """Add non-torch and activation memory."""
    for record in (use, profile, result):
        if record is None:
            continue
        ledger.printed("non_torch", "non-torch memory", record.non_torch_gib, record.line)
        if isinstance(record, MemoryProfile) and record.initial_gib is not None:
            # 0.6.4 prints the peak of torch's allocator, which holds the weights too.
            peak, weights = record.activation_gib.bytes, ledger["weights"].interval
            ledger.printed("torch_peak", "torch peak with weights", record.activation_gib, record.line)
            if weights is not None:
                ledger.between(
                    "activation", "peak activation", "bytes", peak.minus(weights), "derived",
                    formula="torch peak − weights",
                )  # fmt: skip
            return
        ledger.printed("activation", "peak activation", record.activation_gib, record.line)
        return


def _add_graphs(ledger: Ledger, lines: _Lines, use: MemoryUse | None, rule: DeviceRule) -> None:
    """Add what the graphs were estimated to take, and what they took."""
    pool, capture = lines.last(GraphPool), lines.last(GraphCapture)
    if pool is not None:
        ledger.printed("graphs", "captured graphs", pool.actual_gib, pool.line)
    elif use is not None:
        ledger.printed("graphs", "captured graphs", use.graphs_gib, use.line)
    elif capture is not None:
        ledger.printed("graphs", "captured graphs", capture.gib, capture.line)
    if rule.graphs == "none":
        ledger.exact("graph_estimate", "graph estimate", "bytes", 0, "derived", formula="no graphs are captured")
        return
    bounds: list[tuple[Number, Number, int | None, str]] = []
    if (estimate := lines.last(GraphEstimate)) is not None:
        bounds.append((*estimate.gib.bytes, estimate.line, ""))
    if pool is not None:
        bounds.append((*pool.estimated_gib.bytes, pool.line, ""))
    said, total = lines.last(GraphUtilization), ledger["total"]
    if said is not None and total.lo is not None and total.hi is not None:
        if said.equivalent is not None:
            low, high = _difference(said.current, said.equivalent)
        else:
            low, high = _difference(said.suggested, said.current)
        bounds.append(
            (min(low * total.lo, low * total.hi), high * total.hi, said.line, "(utilization − equivalent) × total")
        )
    if not bounds:
        return
    lo, hi = max(b[0] for b in bounds), min(b[1] for b in bounds)
    best = min(bounds, key=lambda b: b[1] - b[0])
    if lo > hi:  # lines of two profile runs: the sharpest one counts
        lo, hi = best[0], best[1]
    ledger.between(
        "graph_estimate", "graph estimate", "bytes", (lo, hi), "derived" if best[3] else "printed", formula=best[3],
        line=best[2],
    )  # fmt: skip


def _difference(high: float, low: float) -> tuple[Fraction, Fraction]:
    """Return the bounds of the difference of two utilizations printed with four decimals."""
    above, below = printed_range(high, 4), printed_range(low, 4)
    return above[0] - below[1], above[1] - below[0]


def _add_pool(ledger: Ledger, lines: _Lines, use: MemoryUse | None, profile: MemoryProfile | None) -> None:
    memory, pinned, plan = lines.last(KVCacheMemory), lines.last(KVCachePinned), lines.last(StartupPlanApplied)
    formula = "requested − the terms above"
    if memory is not None:
        ledger.printed("kv_cache", "KV cache", memory.gib, memory.line, formula=formula)
    elif profile is not None:
        ledger.printed("kv_cache", "KV cache", profile.kv_cache_gib, profile.line, formula=formula)
    elif use is not None and use.kv_cache_bytes is None:
        ledger.printed("kv_cache", "KV cache", use.kv_cache_gib, use.line, formula=formula)
    elif pinned is not None:
        ledger.printed("kv_cache", "KV cache", pinned.kv_cache_gib, pinned.line, formula="--kv-cache-memory-bytes")
    if use is not None and use.kv_cache_bytes is not None:
        ledger.exact("kv_cache", "KV cache", "bytes", use.kv_cache_bytes, "printed", line=use.line, formula=formula)
    elif plan is not None:
        ledger.exact(
            "kv_cache", "KV cache", "bytes", plan.kv_cache_bytes, "printed", line=plan.line, formula="a stored plan"
        )
    if use is not None and use.suggested_bytes is not None:
        ledger.exact("suggested", "suggested --kv-cache-memory", "bytes", use.suggested_bytes, "printed", line=use.line)
    if use is not None and use.full_bytes is not None:
        ledger.exact("full", "--kv-cache-memory of the whole card", "bytes", use.full_bytes, "printed", line=use.line)


def _add_blocks(ledger: Ledger, startup: Startup, engine: Engine) -> None:
    """Add the KV cache of a log that prints blocks and no memory: only one rank's, as others may have had more than they use."""
    host = host_blocks(startup, engine)
    if host is None or startup.last(BlocksOverride) is not None or startup.args.get("num_gpu_blocks_override"):
        return
    ledger.between(
        "kv_cache", "KV cache", "bytes", (host.blocks * host.lo, (host.blocks + 1) * host.hi), host.status,
        formula="blocks × swap space ÷ CPU blocks", line=host.line,
    )  # fmt: skip


_LABELS = {
    "weights": "weights",
    "consumed": "weights and non-torch",
    "non_torch": "non-torch memory",
    "activation": "peak activation",
    "graph_estimate": "graph estimate",
}


def _without_estimate(ledger: Ledger, rule: DeviceRule) -> DeviceRule:
    """Return the rule the terms themselves show: they add up without the estimate that the release would have subtracted.

    A derived estimate of nothing beside graphs that took something means that estimating was switched off
    (`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0`): the graphs are outside the budget.
    """
    estimate, graphs = ledger["graph_estimate"], ledger["graphs"]
    if rule.graphs != "separate" or estimate.origin != _REMAINDER or estimate.lo is None or estimate.hi is None:
        return rule
    if not estimate.lo <= 0 <= estimate.hi or graphs.lo is None or graphs.lo <= estimate.hi:
        return rule
    left = (estimate.lo, estimate.hi)
    ledger.exact("graph_estimate", "graph estimate", "bytes", 0, "derived", formula="the terms add up without one")
    formula = estimate.formula
    ledger.between("unexplained", "unexplained", "bytes", left, "derived", formula=formula)
    kept = tuple(key for key in rule.subtracted if key != "graph_estimate")
    return rule._replace(subtracted=kept, graphs="uncounted")


_REMAINDER = "what the other terms leave"


def _close(ledger: Ledger, rule: DeviceRule) -> None:
    """Derive the one term that is missing, or say what several missing ones add up to, or what is unexplained."""
    requested, pool = ledger["requested"], ledger["kv_cache"]
    if rule.pinned or requested.lo is None or requested.hi is None:
        return
    known = [ledger[key] for key in rule.subtracted if key in ledger]
    missing = [key for key in rule.subtracted if key not in ledger]
    low = requested.lo - sum((t.hi for t in known if t.hi is not None), Fraction(0))
    high = requested.hi - sum((t.lo for t in known if t.lo is not None), Fraction(0))
    said = " − ".join(["requested", *(_LABELS[key] for key in rule.subtracted if key in ledger)])
    if pool.lo is None or pool.hi is None:
        if not missing:
            ledger.between("kv_cache", "KV cache", "bytes", (low, high), "derived", formula=said)
        return
    bounds = (low - pool.hi, high - pool.lo)
    formula = f"{said} − KV cache"
    if not missing:
        ledger.between("unexplained", "unexplained", "bytes", bounds, "derived", formula=formula)
    elif len(missing) == 1:
        ledger.between(missing[0], _LABELS[missing[0]], "bytes", bounds, "derived", formula=formula, origin=_REMAINDER)
    else:
        names = " and ".join(_LABELS[key] for key in missing)
        if missing == ["non_torch", "activation"] and rule.graphs == "inside":
            names = "non-torch memory, activation and graph estimate"
        elif "graph_estimate" in missing:
            names = names.replace(" and ", ", ", len(missing) - 2)
        status: Literal["derived", "assumed"] = "assumed" if requested.status == "assumed" else "derived"
        ledger.between("rest", "the rest, not printed", "bytes", bounds, status, formula=formula, origin=names)
