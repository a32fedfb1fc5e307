"""VL312: the hybrid KV cache manager is off, so layers with a window hold whole requests."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._kv import Plans
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.expected import ExpectedEngine
from vlogcheck.records import HybridManagerOff
from vlogcheck.registry import Finding, Severity, check


@check("the hybrid KV cache manager is off", Severity.WARNING)
def hybrid_manager_off(record: HybridManagerOff, plans: Plans | None, context: Context) -> Iterator[Finding]:
    """Flag a model whose layers with a window are kept like full attention, and what that costs."""
    plan = plans[0] if plans else None
    windows = _windows(plan)
    if plan is not None and not windows:
        return  # all layers are alike: there is nothing to lose
    connector = _connector(stated(context.startup, "kv_transfer_config"))
    asked = stated(context.startup, "disable_hybrid_kv_cache_manager") is True
    cause = record.reason or (f"the KV connector {connector}" if connector else "")
    if not cause and asked:
        cause = "--disable-hybrid-kv-cache-manager"
    gain = _gain(plan) if plan is not None else None
    engine = context.observation.engines[0] if context.observation.engines else None
    tokens = engine.ledger["tokens"].interval if engine is not None else None
    if gain is not None and tokens is not None:
        factor, concurrency = gain
        remedy = (
            f"with the manager on {concurrency:,.2f} requests would fit in this memory, {factor:.2f} times as many: leave out"
            f" {cause or 'the option that turns it off'}, or plan with what the log prints"
        )
    else:
        remedy = (
            f"plan with {tokens.lo if tokens else 0:,} tokens, as printed; what the manager would give needs --model-config"
            " and the memory in the log"
        )
    yield Finding(
        "capacity is that of full attention in all layers"
        + (f": {windows} layers with a window hold whole requests" if windows else ""),
        line=record.line,
        expected="layers with a sliding window hold the window only",
        observed="the hybrid KV cache manager is off" + (f" because of {cause}" if cause else ""),
        remedy=remedy,
        explanation="any KV connector without support for several groups turns it off" if connector else "",
        fix={"disable_hybrid_kv_cache_manager": "false"} if asked else {},
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
