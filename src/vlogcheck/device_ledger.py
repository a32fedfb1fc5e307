"""One rank's device memory: total × utilization − weights − non-torch − activation − graph estimate = KV cache.

Which terms vLLM subtracts differs by release (`device_rule`), and so does which of them it prints; every term here says
whether it was printed, derived from the others, given by the user or is unknown. Terms are intervals of their printed
rounding; what remains when all of them are known is a term of its own, `unexplained`, and what the log leaves unprinted
together is the term `rest`. The file is long as every term is added here, in the order of the formula, one function each; only
graphs (`_graph_terms`) and what closes the sum (`_closing`) stand apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vlogcheck._closing import close
from vlogcheck._graph_terms import add_graphs
from vlogcheck._host_blocks import host_blocks
from vlogcheck._rank_lines import RankLines, decimal, printed_range
from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.device_rule import DeviceRule, device_rule
from vlogcheck.ledger import Ledger
from vlogcheck.records import (
    BlocksOverride,
    ExternalWeights,
    FreeMemoryTooLow,
    GraphCaptureSkipped,
    GraphUtilization,
    HPUMemorySplit,
    KVCacheMemory,
    KVCachePinned,
    MemoryProfile,
    MemorySnapshot,
    MemoryUse,
    OutOfMemory,
    ProfilingResult,
    RequestedMemory,
    StartupPlanApplied,
    TPUMemory,
    WeightsLoaded,
    XPUMemory,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.expect import Expectation
    from vlogcheck.startup import Engine, Rank, Startup

__all__ = ["observe_rank"]


def observe_rank(
    startup: Startup, engine: Engine, rank: Rank, ranks: Sequence[Rank], expectation: Expectation | None = None
) -> tuple[Ledger, DeviceRule]:
    """Return one rank's ledger and the rule by which its terms add up."""
    ledger = Ledger(rank.name)
    lines = RankLines(engine, rank, ranks)
    use, profile = lines.last(MemoryUse), lines.last(MemoryProfile)
    result = lines.last(ProfilingResult)
    refusal = lines.last(FreeMemoryTooLow)
    rule = _rule(startup, engine, lines, use, profile, result)
    _add_card(ledger, lines, use or profile or refusal, use or refusal, expectation)
    _add_utilization(startup, ledger, use or profile or refusal)
    _add_requested(ledger, lines, use, profile, refusal)
    _add_weights(ledger, lines, use, profile, result)
    _add_peak(ledger, use, profile, result)
    _add_xpu_peak(ledger, lines)
    add_graphs(ledger, lines, use, rule)
    _add_pool(ledger, lines, use, profile)
    if len(ranks) == 1 and ledger["requested"].known and not ledger["kv_cache"].known:
        _add_blocks(ledger, startup, engine)
    return ledger, close(ledger, rule)


def _rule(
    startup: Startup, engine: Engine, lines: RankLines, use: MemoryUse | None, profile: MemoryProfile | None,
    result: ProfilingResult | None,
) -> DeviceRule:  # fmt: skip
    config = engine.config or startup.config
    release = parse_release(startup.version)
    generation = config.engine_generation if config is not None else None
    v0 = generation == "V0" or profile is not None or release.before("0.7.0")
    eager = bool(config is not None and config.enforce_eager) or startup.args.get("enforce_eager") is True
    eager = eager or startup.last(GraphCaptureSkipped) is not None
    said = startup.last(GraphUtilization)
    told = [record for record in (use, result) if record is not None]
    consumed = True if any(r.consumed_gib is not None for r in told) else None
    if consumed is None and any(r.weights_gib is not None and r.non_torch_gib is not None for r in told):
        consumed = False
    pinned = lines.last(KVCachePinned) is not None or startup.last(StartupPlanApplied) is not None
    counted = said.enabled if said is not None else None
    rule = device_rule(release, v0=v0, eager=eager, counted=counted, consumed=consumed, pinned=pinned)
    if lines.last(TPUMemory) is not None:  # nothing is run before the KV cache is sized, and no graphs are captured
        return rule._replace(subtracted=("consumed",), graphs="none")
    return rule


def _add_card(
    ledger: Ledger, lines: RankLines, summary: MemoryUse | MemoryProfile | FreeMemoryTooLow | None,
    start: MemoryUse | FreeMemoryTooLow | None, expectation: Expectation | None,
) -> None:  # fmt: skip
    """Add the card's total and what was free of it when the worker started."""
    snapshot, pool = lines.last(MemorySnapshot), lines.last(KVCacheMemory)
    xpu = lines.last(XPUMemory, having="total_gib")
    told = [r for r in (summary, snapshot, pool, xpu) if r is not None]
    totals = [(r.total_gib, r.line) for r in told if r.total_gib is not None and r.total_gib > 0]
    totals += [(tpu.limit_gib, tpu.line)] if (tpu := lines.last(TPUMemory)) is not None else []
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
        ledger.exact("utilization", "utilization", "ratio", decimal(stated), "printed", origin="server arguments")
    elif (said := startup.last(GraphUtilization)) is not None:
        ledger.between("utilization", "utilization", "ratio", printed_range(said.current, 4), "printed", line=said.line)
    elif summary is not None:
        ledger.between(
            "utilization", "utilization", "ratio", printed_range(summary.gpu_memory_utilization), "printed",
            line=summary.line,
        )  # fmt: skip
    elif startup.version is not None or startup.args:
        default = default_utilization(parse_release(startup.version))
        ledger.exact("utilization", "utilization", "ratio", decimal(default), "assumed", origin="the release's default")


def _add_requested(
    ledger: Ledger,
    lines: RankLines,
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
    if (tpu := lines.last(TPUMemory)) is not None:
        ledger.printed("requested", "requested", tpu.cap_gib, tpu.line, formula=formula)
        return
    total, share = ledger["total"], ledger["utilization"]
    if total.lo is None or total.hi is None or share.lo is None or share.hi is None:
        return
    status: Literal["derived", "assumed"] = "assumed" if share.status == "assumed" else "derived"
    ledger.between(
        "requested", "requested", "bytes", (total.lo * share.lo, total.hi * share.hi), status, formula=formula
    )


def _add_weights(
    ledger: Ledger,
    lines: RankLines,
    use: MemoryUse | None,
    profile: MemoryProfile | None,
    result: ProfilingResult | None,
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
    if (tpu := lines.last(TPUMemory)) is not None:
        if tpu.connector_reserve_gib is None:
            ledger.printed("consumed", "in use after loading", tpu.used_gib, tpu.line)
        else:
            both = tpu.used_gib.bytes.plus(tpu.connector_reserve_gib.bytes)
            label = "in use after loading, and kept for the KV connector"
            ledger.between("consumed", label, "bytes", both, "derived", formula="in use + reserve", line=tpu.line)


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


def _add_xpu_peak(ledger: Ledger, lines: RankLines) -> None:
    """Add what Intel's worker prints of the profile run: its peak is that of the whole device (xpu_worker.py, 0.9.2 to 0.15)."""
    record = lines.last(XPUMemory, having="peak_gib")
    if record is None or "non_torch" in ledger or record.non_torch_gib is None or record.torch_gib is None:
        return
    assert record.peak_gib is not None
    ledger.printed("non_torch", "non-torch memory", record.non_torch_gib, record.line)
    others = record.torch_gib.bytes.plus(record.non_torch_gib.bytes)
    ledger.between(
        "activation", "peak activation", "bytes", record.peak_gib.bytes.minus(others), "derived",
        formula="peak − torch memory − non-torch memory", line=record.line,
    )  # fmt: skip


def _add_pool(ledger: Ledger, lines: RankLines, use: MemoryUse | None, profile: MemoryProfile | None) -> None:
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
    elif (split := lines.last(HPUMemorySplit)) is not None:
        formula = "free after the profile run × utilization − graphs"
        ledger.printed("kv_cache", "KV cache", split.kv_cache_gib, split.line, formula=formula)
    elif (tpu := lines.last(TPUMemory)) is not None:
        ledger.printed("kv_cache", "KV cache", tpu.available_gib, tpu.line, formula="requested − in use")
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
