"""VL312: the hybrid KV cache manager is off, so layers with a window hold whole requests."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import Plans
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.expected import ExpectedEngine
from vlogcheck.records import HybridManagerOff, KVCacheTooSmall
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.units import format_gib


@check("the hybrid KV cache manager is off", Severity.WARNING)
def hybrid_manager_off(record: HybridManagerOff | None, plans: Plans | None, context: Context) -> Iterator[Finding]:
    """Flag a model whose layers with a window are kept like full attention, and what that costs."""
    refused = context.startup.last(KVCacheTooSmall)
    plan = plans[0] if plans else _planned(context) if refused is not None else None
    windows = _windows(plan)
    if plan is not None and not windows:
        return  # all layers are alike: there is nothing to lose
    connector = _connector(stated(context.startup, "kv_transfer_config"))
    asked = stated(context.startup, "disable_hybrid_kv_cache_manager") is True
    if record is None and not _silent(plan, connector=connector, asked=asked):
        raise Missing(
            "no line says that the hybrid KV cache manager is off, and no option turns it off for layers known"
        )
    cause = _cause(record, connector, asked=asked)
    yield Finding(
        "capacity is that of full attention in all layers"
        + (f": {windows} layers with a window hold whole requests" if windows else ""),
        line=record.line if record is not None else _line(context),
        expected="layers with a sliding window hold the window only",
        observed="the hybrid KV cache manager is off" + (f" because of {cause}" if cause else ""),
        remedy=_remedy(context, plan, refused, cause or "the option that turns it off"),
        explanation="any KV connector without support for several groups turns it off" if connector else "",
        fix={"disable_hybrid_kv_cache_manager": "false"} if asked else {},
    )


def _silent(plan: ExpectedEngine | None, *, connector: str | None, asked: bool) -> bool:
    """Whether the options turn the manager off in this release though no line says so."""
    settings = plan.plan.settings if plan is not None else None
    return settings is not None and settings.hybrid_disabled and (asked or connector is not None)


def _cause(record: HybridManagerOff | None, connector: str | None, *, asked: bool) -> str:
    if connector and (record is None or not record.reason or "kv-transfer" in record.reason):
        return f"the KV connector {connector}"
    if record is not None and record.reason:
        return record.reason
    return "--disable-hybrid-kv-cache-manager" if asked else ""


def _line(context: Context) -> int | None:
    engine = context.observation.engines[0] if context.observation.engines else None
    return engine.ledger["tokens"].line if engine is not None else None


def _planned(context: Context) -> ExpectedEngine | None:
    """Return the plan of a start-up that was refused before it printed a capacity."""
    engines = context.observation.engines
    if context.model is None or not engines:
        return None
    try:
        return context.model.expected(context, engines[0])
    except Missing:
        return None


def _remedy(context: Context, plan: ExpectedEngine | None, refused: KVCacheTooSmall | None, cause: str) -> str:
    if refused is not None:
        return _refused(plan, refused, cause)
    engine = context.observation.engines[0] if context.observation.engines else None
    tokens = engine.ledger["tokens"].interval if engine is not None else None
    gain = _gain(plan) if plan is not None else None
    if gain is not None and tokens is not None:
        return (
            f"with the manager on {gain[1]:,.2f} requests would fit in this memory, {gain[0]:.2f} times as many: leave out"
            f" {cause}, or plan with what the log prints"
        )
    printed = f"plan with {tokens.lo:,} tokens, as printed" if tokens is not None else f"leave out {cause}"
    return f"{printed}; what the manager would give needs --model-config and the memory in the log"


def _refused(plan: ExpectedEngine | None, refused: KVCacheTooSmall, cause: str) -> str:
    """Return what the refused request would take with the manager on."""
    from vlogcheck.budget.model import ModelConfigError

    length, needs = refused.max_model_len, f"{refused.needed_gib} GiB for {refused.max_model_len:,} tokens"
    size = None
    if plan is not None:
        try:
            layout = plan.setup.plan(disable_hybrid_kv_cache_manager=False, kv_transfer_config=None).pool
        except ModelConfigError:
            layout = None
        if layout is not None:
            stages = [stage for stage in range(len(layout.ranks)) if layout.ranks[stage]]
            size = max(layout.bytes_per_block(stage) * layout.blocks_per_request(length, stage) for stage in stages)
    if size is None:
        return f"leave out {cause}: the refusal's {needs} count every layer as full attention"
    starts = "it starts then" if size <= refused.available_gib.bytes.lo else "which is still more than there is"
    return (
        f"leave out {cause}: with the manager on such a request takes {format_gib(size)} of {refused.available_gib} GiB"
        f" instead of {refused.needed_gib} GiB, {starts}"
    )


def _connector(config: object) -> str | None:
    if isinstance(config, dict):
        name = config.get("kv_connector")
        return name if isinstance(name, str) else "set by --kv-transfer-config"
    return "set by --kv-transfer-config" if isinstance(config, str) and config not in ("", "None") else None


def _windows(plan: ExpectedEngine | None) -> int:
    if plan is None:
        return 0
    kinds = ("SlidingWindowSpec", "ChunkedLocalAttentionSpec", "SlidingWindowMLASpec")
    return sum(item.count for item in plan.plan.specs if item.spec.kind in kinds)


def _gain(plan: ExpectedEngine) -> tuple[float, float] | None:
    """Return how many times as many requests would fit with the manager on, and how many."""
    from vlogcheck.budget.model import ModelConfigError

    try:
        other = plan.setup.plan(disable_hybrid_kv_cache_manager=False, kv_transfer_config=None)
    except ModelConfigError:
        return None
    if not other.max_concurrency or not plan.plan.max_concurrency:
        return None
    return other.max_concurrency / plan.plan.max_concurrency, other.max_concurrency
