"""From layer specs and available bytes to blocks, tokens and concurrency, or vLLM's refusal.

Rules by release: ``vllm/v1/core/kv_cache_utils.py``; the V0 engine's: ``determine_num_available_blocks`` and
``raise_if_cache_size_invalid`` of vllm/worker/worker.py. All bytes, blocks and tokens are integers; only the
concurrency is the float vLLM computes and prints. Long because the rules of all releases stand side by side: from one to
the next they differ by a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlogcheck.budget._admission import check_layers, largest_length, layers_need, same_on_all
from vlogcheck.budget._blocksize import DEFAULT
from vlogcheck.budget._errors import PlanError, no_memory, too_long, too_long_v0
from vlogcheck.budget._group import Group
from vlogcheck.budget._grouping import make_groups
from vlogcheck.budget._layer import MAMBA, cdiv
from vlogcheck.budget._values import ModelConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.specs import Layer, ModelLayers

__all__ = ["Pool", "PoolResult", "largest_length"]


@dataclass(frozen=True)
class PoolResult:
    """What a given number of bytes per rank makes.

    Attributes:
        num_blocks: blocks every rank uses, ``None`` with an error.
        tokens: the printed token count.
        concurrency: the printed maximum concurrency.
        length: the context length used (fitted where ``--max-model-len -1`` asked for it).
        error: vLLM's refusal.

    """

    num_blocks: int | None
    tokens: int | None
    concurrency: float | None
    length: int
    error: PlanError | None = None


class Pool:
    """The pool of one model and its settings, before the number of bytes is known.

    Raises:
        CannotGroupError: vLLM would refuse the layers whatever the bytes.
        ModelConfigError: a layer would keep nothing at all.

    """

    def __init__(self, layers: ModelLayers, settings: Settings) -> None:
        if any(layer.spec.page_size_bytes <= 0 for layer in layers.layers):
            raise ModelConfigError("by this configuration a layer keeps no byte in the KV cache")
        self.layers = layers
        self.settings = settings
        self.ranks: list[list[Layer]] = [layers.on_stage(stage) for stage in range(layers.stages)]
        release = settings.release
        if settings.is_v0:
            self.groups: list[Group] = []
            self.per_rank: list[list[Group]] = []
        elif release.before("0.11.0"):
            self.per_rank = [make_groups(rank, settings) for rank in self.ranks]
            self.groups = self.per_rank[0]
            same_on_all(self.per_rank)
        else:
            self.groups = make_groups(layers.layers, settings)
            present = [frozenset(layer.number for layer in rank) for rank in self.ranks]
            self.per_rank = [[group.on(held, release) for group in self.groups] for held in present]

    # One block
    # ---------------------------------------------------------------------------------------------------------

    def bytes_per_block(self, rank: int) -> int:
        """Bytes one block takes on a rank, over all its layers; 0 where it has none."""
        if self.settings.is_v0:
            return sum(layer.spec.page_size_bytes for layer in self.ranks[rank])
        groups = self.per_rank[rank]
        if not groups:
            return 0
        if len(groups) == 1 and groups[0].uniform_type:
            return groups[0].page_sum
        if self.settings.release.since("0.29.0"):
            return max(group.page_sum for group in groups)
        return max(len(group.layers) for group in groups) * groups[0].spec.page_size_bytes

    def blocks_per_request(self, length: int, rank: int = 0) -> int:
        """Blocks one request of ``length`` tokens takes at most, over all groups."""
        if self.settings.is_v0:  # one block table for all stages, those without attention too
            sizes = (layer.spec.block_size for layers in self.ranks for layer in layers)
            return max((cdiv(length, size) for size in sizes), default=0)
        return sum(group.blocks(length, self.settings) for group in self.per_rank[rank])

    # The check
    # ---------------------------------------------------------------------------------------------------------

    def needed(self, length: int, rank: int) -> int:
        """Bytes vLLM's admission check asks for on a rank, for a request of ``length`` tokens."""
        settings, release = self.settings, self.settings.release
        if release.before("0.14.1"):
            return layers_need(self.ranks[rank], settings, length)
        groups = self.groups if release.before("0.17.1") else self.per_rank[rank]
        if not groups:
            return 0
        if release.since("0.29.0"):
            return self.bytes_per_block(rank) * sum(group.blocks(length, settings) for group in groups)
        if len(groups) == 1 and groups[0].uniform_type:
            return sum(s.blocks(length, settings) * s.page_size_bytes for s in groups[0].specs)
        counted = groups if release.since("0.19.1") else groups[:1]
        width = max(len(group.layers) for group in groups) * groups[0].spec.page_size_bytes
        return width * sum(group.blocks(length, settings) for group in counted)

    def _check(self, available: Sequence[int], length: int) -> PlanError | None:
        release = self.settings.release
        if release.before("0.14.1"):
            return check_layers(self.ranks, self.settings, available)
        checked = list(available)
        if release.since("0.29.0"):
            checked = [bytes_ - self.bytes_per_block(rank) for rank, bytes_ in enumerate(available)]
        elif release.before("0.17.1"):
            checked = [min(available)] * len(available)
        for rank, bytes_ in enumerate(checked):
            if not self.ranks[rank]:
                continue
            if bytes_ <= 0:
                return no_memory(release, bytes_)
            needed = self.needed(length, rank)
            if needed > bytes_:
                estimate = largest_length(length, lambda n, r=rank, b=bytes_: self.needed(n, r) <= b)  # type: ignore[misc]
                return too_long(release, length, needed, bytes_, estimate)
        return None

    def _fit(self, available: Sequence[int], length: int) -> int:
        release = self.settings.release
        best = length
        for rank, bytes_ in enumerate(available):
            if not self.ranks[rank]:
                continue
            if release.before("0.17.1"):
                bytes_ = min(available)
            if release.since("0.29.0"):
                bytes_ -= self.bytes_per_block(rank)
            best = min(best, largest_length(length, lambda n, r=rank, b=bytes_: self.needed(n, r) <= b))  # type: ignore[misc]
        return best

    # The result
    # --------------------------------------------------------------------------------------------------------

    def size(self, available: Sequence[int], *, check: bool = True) -> PoolResult:
        """Size the pool for the bytes each pipeline rank has for it (one number per rank).

        Without ``check`` vLLM's admission check is skipped: what would be there if it let the request pass.
        """
        if self.settings.is_v0:
            return self._size_v0(available)
        settings, release = self.settings, self.settings.release
        length = settings.max_model_len
        if not any(self.ranks):
            return PoolResult(1, None, None, length)
        override = settings.options.num_gpu_blocks_override
        if override is not None and release.since("0.20.2"):
            available = [override * self.bytes_per_block(rank) or given for rank, given in enumerate(available)]
        if settings.options.max_model_len == -1 and release.since("0.14.1"):
            length = self._fit(available, length)
            if length <= 0:
                return PoolResult(None, None, None, 0, no_memory(release, min(available), auto=True))
        error = self._check(available, length) if check else None
        if error is not None:
            return PoolResult(None, None, None, length, error)
        counts = [
            max(0, bytes_ // self.bytes_per_block(rank)) if self.ranks[rank] else None
            for rank, bytes_ in enumerate(available)
        ]
        if override is not None and release.before("0.20.2") and (release.before("0.9.1") or release.since("0.9.2")):
            counts = [None if count is None else override for count in counts]
        known = [count for count in counts if count is not None]
        blocks = min(known)
        printed = [
            self._printed(count if release.before("0.11.1") else blocks, length, rank)
            for rank, count in enumerate(counts)
            if count is not None
        ]
        tokens = min(token for token, _ in printed)
        concurrency = min(value for _, value in printed)
        return PoolResult(blocks, tokens, concurrency, length)

    def printed(self, blocks: int, length: int) -> tuple[int, float]:
        """Return the tokens and the concurrency a release prints for ``blocks`` blocks and requests of ``length`` tokens."""
        rank = next((number for number, layers in enumerate(self.ranks) if layers), None)
        if rank is None or not self.blocks_per_request(length, rank):
            return 0, 0.0
        if self.settings.is_v0:
            tokens = blocks * self.ranks[rank][0].spec.block_size
            return tokens, tokens / length
        return self._printed(blocks, length, rank)

    def _printed(self, blocks: int, length: int, rank: int) -> tuple[int, float]:
        """Return the token count and concurrency vLLM prints for ``blocks`` blocks."""
        settings, release = self.settings, self.settings.release
        groups = self.per_rank[rank]
        attention = [g.block_size for g in groups if g.spec.kind != MAMBA]
        smallest = min(group.block_size for group in groups)
        if release.before("0.9.1"):
            tokens = blocks * smallest
            return tokens, tokens / length
        concurrency = blocks / self.blocks_per_request(length, rank)
        if release.since("0.20.2"):
            return int(concurrency * length), concurrency
        if len(groups) > 1 and release.before("0.9.2"):
            smallest = min(attention or [smallest])
        if len(groups) == 1 and not attention and release.before("0.11.0"):
            smallest = settings.options.block_size or DEFAULT  # the flag's size, not the states' own
        tokens = blocks // len(groups) * smallest
        if release.since("0.10.2") and (len(groups) == 1 or release.since("0.11.0")):
            tokens *= settings.options.decode_context_parallel_size
        if release.since("0.12.0"):
            tokens *= settings.options.prefill_context_parallel_size
        return tokens, concurrency

    def _size_v0(self, available: Sequence[int]) -> PoolResult:
        settings = self.settings
        length, pp = settings.max_model_len, settings.pp
        counts = [self._blocks_v0(bytes_, rank) for rank, bytes_ in enumerate(available) if self.ranks[rank]]
        if not counts:
            return PoolResult(0, None, None, length)
        blocks = min(counts)
        if settings.options.num_gpu_blocks_override is not None:
            blocks = settings.options.num_gpu_blocks_override
        size = next(rank for rank in self.ranks if rank)[0].spec.block_size
        if blocks <= 0:
            return PoolResult(None, None, None, length, no_memory(settings.release, min(available)))
        usable = size * (blocks // pp)
        if length > usable:
            return PoolResult(None, None, None, length, too_long_v0(length, usable))
        return PoolResult(blocks, blocks * size, blocks * size / length, length)

    def _blocks_v0(self, bytes_: int, rank: int) -> int:
        """Blocks on a rank: the target's, then shared with the drafter (``split_num_cache_blocks_evenly``, a float)."""
        target = self._target_bytes(rank)
        blocks = max(0, bytes_ // target)
        both = self.bytes_per_block(rank)
        return blocks if both == target else int(blocks * target / both)

    def _target_bytes(self, rank: int) -> int:
        return sum(layer.spec.page_size_bytes for layer in self.ranks[rank] if not layer.draft) or 1

    def cpu_blocks(self) -> int | None:
        """Blocks of host memory the V0 engine sets aside for swapping (``--swap-space``, 4 GiB by default)."""
        if not self.settings.is_v0:
            return None
        gib = self.settings.options.swap_space_gib
        swap = int((4.0 if gib is None else gib) * (1 << 30))
        return min((swap // self._target_bytes(r) for r, rank in enumerate(self.ranks) if rank), default=0)
