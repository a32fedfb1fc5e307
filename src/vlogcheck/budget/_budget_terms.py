"""The terms of a ledger that is computed before any server exists."""

from __future__ import annotations

import math
from fractions import Fraction

from vlogcheck._pool_blocks import add_block_terms
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.plan import KVPlan
from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.budget.weights import WeightEstimate
from vlogcheck.ledger import Ledger
from vlogcheck.units import Interval

__all__ = ["add_cache", "add_device"]


def add_device(
    ledger: Ledger, weights: tuple[WeightEstimate, ...], total: Interval, other: Interval | None, options: ServeOptions,
    release: str | None,
) -> Interval | None:  # fmt: skip
    """Add the device's terms to the ledger; return what they leave for the KV cache on the tightest rank."""
    found = parse_release(release)
    share = options.gpu_memory_utilization
    given = share is not None
    share = share if share is not None else default_utilization(found)
    ledger.between("total", "device memory", "bytes", total, "given", origin="--total-memory")
    ratio = Fraction(str(share))
    ledger.exact(
        "utilization", "utilization", "ratio", ratio, "given" if given else "assumed",
        origin="--gpu-memory-utilization" if given else f"default of {found.version}",
    )  # fmt: skip
    requested = Interval(math.floor(total.lo * ratio), math.floor(total.hi * ratio))
    ledger.between("requested", "requested", "bytes", requested, "derived", formula="total × utilization")
    if not weights or any(w.unknown for w in weights):
        why = next((w.tolerance_reason for w in weights if w.unknown), "unknown")
        ledger.missing("weights", "weights", "bytes", why)
        return None
    heaviest = max(weights, key=lambda w: w.allocated_bytes)
    size = Interval(heaviest.low_bytes, heaviest.high_bytes)
    ledger.between(
        "weights", "weights", "bytes", size, "derived",
        formula=f"from the configuration, ±{heaviest.tolerance:.2%}: {heaviest.tolerance_reason}",
    )  # fmt: skip
    if other is None:
        ledger.exact(
            "other", "activation, non-torch, graphs", "bytes", 0, "assumed", origin="not given: --other-memory"
        )
        ledger.assumptions.append(
            "activation peak, non-torch memory and graphs are not in a configuration file and were taken as 0:"
            " the pool is an upper bound (give --other-memory)"
        )
        other = Interval(0, 0)
    else:
        ledger.between("other", "activation, non-torch, graphs", "bytes", other, "given", origin="--other-memory")
    return requested.minus(size).minus(other)


def add_cache(ledger: Ledger, made: KVPlan, available: Interval | None) -> None:
    """Add the KV cache, what it is divided into and what it holds."""
    if available is not None:
        status = "derived" if "requested" in ledger else "given"
        ledger.between(
            "kv_cache", "KV cache", "bytes", available, "derived" if status == "derived" else "given",
            formula="requested − the terms above" if status == "derived" else "",
        )  # fmt: skip
    add_block_terms(ledger, made)
    if made.blocks_interval is not None:
        ledger.between(
            "blocks", "KV cache blocks", "blocks", made.blocks_interval, "derived", formula="KV cache ÷ bytes per block"
        )
    if made.tokens_interval is not None:
        ledger.between(
            "tokens", "KV cache size", "tokens", made.tokens_interval, "derived", formula="as vLLM prints it"
        )
    if made.max_concurrency is not None:
        ledger.exact(
            "concurrency", f"concurrency at {made.max_model_len:,} tokens", "requests",
            Fraction(str(made.max_concurrency_text)), "derived", formula="blocks ÷ blocks per request",
        )  # fmt: skip
