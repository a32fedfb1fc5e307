"""Expected weights per rank from a model's configuration."""

from __future__ import annotations

from vlogcheck.budget.weights._allocator import allocated_bytes
from vlogcheck.budget.weights._estimate import WeightEstimate, estimate_weights

__all__ = ["WeightEstimate", "allocated_bytes", "estimate_weights"]
