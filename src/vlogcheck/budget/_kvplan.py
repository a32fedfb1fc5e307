"""The KV cache vLLM makes of a deployment, as the plan computed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vlogcheck.budget._errors import PlanError
from vlogcheck.budget._group import Group
from vlogcheck.budget.pool import Pool
from vlogcheck.budget.specs import SpecCount
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings

__all__ = ["KVPlan", "UnknownArchitecture"]


@dataclass(frozen=True)
class UnknownArchitecture:
    """The configuration describes caches that are not modelled here; nothing is guessed.

    Attributes:
        architecture: the name the configuration gives.
        reason: what is not known about it.
        checkable: what can still be checked without knowing the layers.

    """

    architecture: str | None
    reason: str
    checkable: tuple[str, ...] = (
        "the printed token count against blocks and block size",
        "the printed concurrency against the printed tokens and max_model_len, for models with one kind of layer",
        "printed memory terms against each other",
    )


@dataclass(frozen=True)
class KVPlan:
    """The KV cache vLLM makes of a model, its flags and the bytes that are available.

    Where the bytes are an interval (a log prints ``X.XX GiB``), ``blocks_interval`` and ``tokens_interval`` are wide too, and
    ``num_blocks`` and the rest are those of the lower end. Without bytes only specs, groups and blocks per request are known.

    Attributes:
        num_blocks: blocks each rank uses, ``None`` where unknown or refused.
        kv_cache_tokens: tokens as printed.
        max_concurrency: concurrency as the float vLLM computes.
        max_concurrency_text: the same as printed (``17.82``).
        max_model_len: context length used, in tokens.
        specs: what the layers keep, with how many layers keep it.
        groups: the groups of the first pipeline rank.
        error: vLLM's refusal.
        cpu_blocks: blocks of host memory for swapping (V0 engine only).
        blocks_interval: blocks for the whole interval of available bytes.
        tokens_interval: tokens for it.
        assumptions: everything that was assumed rather than given.
        unknown: set where the architecture is not modelled; then everything else is empty.

    """

    num_blocks: int | None = None
    kv_cache_tokens: int | None = None
    max_concurrency: float | None = None
    max_model_len: int | None = None
    specs: tuple[SpecCount, ...] = ()
    groups: tuple[Group, ...] = ()
    error: PlanError | None = None
    cpu_blocks: int | None = None
    blocks_interval: Interval | None = None
    tokens_interval: Interval | None = None
    assumptions: tuple[str, ...] = ()
    unknown: UnknownArchitecture | None = None
    settings: Settings | None = field(default=None, repr=False)
    pool: Pool | None = field(default=None, repr=False)

    @property
    def max_concurrency_text(self) -> str | None:
        """The concurrency as vLLM prints it, without the ``x``."""
        return None if self.max_concurrency is None else f"{self.max_concurrency:.2f}"

    def blocks_per_request(self, length: int | None = None) -> int | None:
        """Blocks one request of ``length`` tokens (default: the whole context) takes at most."""
        if self.pool is None or self.max_model_len is None:
            return None
        return self.pool.blocks_per_request(self.max_model_len if length is None else length) or None

    def concurrency_at(self, length: int, blocks: int | None = None) -> float | None:
        """How many requests of ``length`` tokens the pool holds at once; ``blocks`` overrides the planned number.

        One block is the pool's null block and never holds tokens.
        """
        count = self.num_blocks if blocks is None else blocks
        per_request = self.blocks_per_request(length)
        if count is None or not per_request:
            return None
        return max(0, count - 1) / per_request

    def bytes_per_block(self, rank: int = 0) -> int | None:
        """Bytes one block takes on a pipeline rank."""
        return None if self.pool is None else self.pool.bytes_per_block(rank)
