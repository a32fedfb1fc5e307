"""One model's ledger before any server exists, and the answers that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vlogcheck.budget.plan import KVPlan
from vlogcheck.budget.weights import WeightEstimate
from vlogcheck.ledger import Ledger
from vlogcheck.units import GIB

__all__ = ["Budget"]

_ERRORS = {
    "kv_cache_too_small": "KVCacheTooSmall",
    "no_kv_cache_memory": "NoKVCacheMemory",
    "not_supported": "NotSupported",
}
"""Names of refusals, those of the records that a log would have."""


@dataclass(frozen=True)
class Budget:
    """One model's ledger and the answers that follow from it."""

    name: str
    plan: KVPlan
    weights: tuple[WeightEstimate, ...]
    ledger: Ledger
    """Terms of the tightest rank, then of the KV cache."""
    concurrency: float | None
    """Requests asked for."""
    context: int | None
    """Tokens per request asked for; the longest context where none was."""
    concurrency_at_context: Fraction | None
    """Requests of that length that fit."""
    largest_context: int | None
    """Longest request of which `concurrency` fit."""
    smallest_utilization: Fraction | None
    """Utilization, rounded up to two decimals, at which what was asked for fits; None where none up to 1 does."""
    smallest_tensor_parallel: int | None
    """Fewest ranks per layer (1, 2, 4, 8, 16 or the given number) at which it fits, keeping the utilization."""
    needed_bytes: int | None
    """KV cache memory per rank that what was asked for takes."""
    advice: tuple[str, ...] = ()
    """What to make of the utilization on this card; nothing where no card was given or the utilization plays no part."""

    @property
    def too_long(self) -> bool:
        """Whether requests of `context` tokens are refused, whatever the memory: they exceed max_model_len."""
        longest = self.plan.max_model_len
        return self.context is not None and longest is not None and self.context > longest

    @property
    def fits(self) -> bool | None:
        """Whether what was asked for fits; None where it cannot be said."""
        if self.plan.unknown is not None:
            return None
        if self.plan.error is not None:
            return False
        if self.too_long:
            return False
        if self.plan.num_blocks is None:
            return None
        if self.concurrency is None or not self.plan.specs:  # without a KV cache there is nothing to run out of
            return True
        return self.concurrency_at_context is not None and self.concurrency_at_context >= self.concurrency

    def to_dict(self) -> dict[str, Any]:
        """Return the budget for JSON."""
        found = self.plan
        error = found.error
        return {
            "model": self.name,
            "fits": self.fits,
            "num_blocks": found.num_blocks,
            "num_blocks_high": found.blocks_interval.hi if found.blocks_interval else None,
            "kv_cache_tokens": found.kv_cache_tokens,
            "kv_cache_tokens_high": found.tokens_interval.hi if found.tokens_interval else None,
            "max_concurrency": None if found.max_concurrency_text is None else float(found.max_concurrency_text),
            "max_model_len": found.max_model_len,
            "cpu_blocks": found.cpu_blocks,
            "layer_specs": [
                {
                    "kind": item.spec.kind,
                    "count": item.count,
                    "block_size": item.spec.block_size,
                    "page_size_bytes": item.spec.page_size_bytes,
                    "num_kv_heads": item.spec.num_kv_heads,
                    "head_size": item.spec.head_size,
                    "dtype": item.spec.dtype,
                    "sliding_window": item.spec.window,
                }
                for item in found.specs
            ],
            "groups": [
                {
                    "kind": group.kind,
                    "n_layers": len(group.layers),
                    "block_size": group.block_size,
                    "page_size_bytes": group.page_size_bytes,
                }
                for group in found.groups
            ],
            "blocks_per_request": found.blocks_per_request(),
            "bytes_per_block": found.bytes_per_block(),
            "weights_gib_per_rank": [None if w.unknown else round(w.allocated_bytes / GIB, 4) for w in self.weights],
            "weights_bytes_per_rank": [None if w.unknown else w.param_bytes for w in self.weights],
            "weights_tolerance": [None if w.unknown else w.tolerance for w in self.weights],
            "error": None
            if error is None
            else {
                "kind": _ERRORS.get(error.kind, error.kind),
                "needed_gib": None if error.needed_gib is None else float(error.needed_gib),
                "available_gib": None if error.available_gib is None else float(error.available_gib),
                "estimated_max_model_len": error.estimated_max_model_len,
                "message": error.message,
            },
            "concurrency": self.concurrency,
            "context": self.context,
            "concurrency_at_context": None
            if self.concurrency_at_context is None
            else round(float(self.concurrency_at_context), 4),
            "largest_context": self.largest_context,
            "smallest_utilization": None if self.smallest_utilization is None else float(self.smallest_utilization),
            "smallest_tensor_parallel_size": self.smallest_tensor_parallel,
            "needed_kv_cache_bytes": self.needed_bytes,
            "advice": list(self.advice),
            "unknown": None if found.unknown is None else found.unknown.reason,
            "ledger": self.ledger.to_dict(),
            "assumptions": _unique([*found.assumptions, *(a for w in self.weights for a in w.assumptions)]),
        }


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))
