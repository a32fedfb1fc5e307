"""Expected weights per rank from a model's configuration.

:func:`estimate_weights` lists the tensors each pipeline stage holds, layer kind by layer kind, and adds what the allocator
makes of them; :func:`weight_readings` puts the figures people confuse side by side.
"""

from __future__ import annotations

from vlogcheck.budget.weights._allocator import allocated_bytes
from vlogcheck.budget.weights._estimate import WeightEstimate, estimate_weights
from vlogcheck.budget.weights._readings import WeightReadings, weight_readings

__all__ = ["WeightEstimate", "WeightReadings", "allocated_bytes", "estimate_weights", "weight_readings"]
