"""One module per kind of cache: from a layer's index to what the layer keeps.

A kind registers a builder under the name :mod:`vlogcheck.budget._pattern` gives it; a builder turns a
:class:`Context` and a layer index into the specs the layer registers, in vLLM's order.
"""

from __future__ import annotations

from vlogcheck.budget.kinds import attention, compressed, latent, state
from vlogcheck.budget.kinds._base import BUILDERS, Context

__all__ = ["BUILDERS", "Context", "attention", "compressed", "latent", "state"]
