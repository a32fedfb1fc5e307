"""VL610: the hybrid KV cache manager is off."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._options import asked
from vlogcheck.records import HybridManagerOff
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("layers with a window or a state are allocated as full attention", Severity.WARNING)
def hybrid_manager_off(startup: Startup) -> Iterator[Finding]:
    """Flag a hybrid model whose KV cache is allocated as if every layer kept the whole context."""
    record = startup.last(HybridManagerOff)
    if record is None:
        return
    by_hand = asked(startup, "disable_hybrid_kv_cache_manager") is True
    connector = asked(startup, "kv_transfer_config") is not None
    if by_hand:
        remedy = "leave --disable-hybrid-kv-cache-manager out"
    elif connector:
        remedy = (
            "a KV connector that supports the hybrid manager, or none: with half of the layers on a window, long"
            " contexts"
        )
        remedy += " hold nearly twice as many requests"
    else:
        remedy = "compare with `vlogcheck diff` against a start without the option the line names"
    yield Finding(
        "the KV cache of this hybrid model is allocated as if all layers were full attention"
        + (f": {record.reason}" if record.reason else ""),
        line=record.line,
        expected="layers with a window keep the window, layers with a state keep one state",
        observed="every layer keeps the whole context",
        remedy=remedy,
        explanation="tokens and concurrency are those of a full-attention model of as many layers",
        severity=Severity.NOTE if by_hand else None,
    )
