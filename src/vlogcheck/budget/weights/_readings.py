"""The readings of one set of weights that hand ledgers confuse: per rank, all ranks, on disk; GB and GiB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.budget.safetensors import CheckpointBytes
    from vlogcheck.budget.weights._estimate import WeightEstimate

__all__ = ["WeightReadings", "weight_readings"]


@dataclass(frozen=True)
class WeightReadings:
    """The same weights, read in different places; all sizes in bytes.

    Attributes:
        per_rank: what each rank of a pipeline stage prints as "Model loading took", by stage.
        all_ranks: the sum over all tensor-parallel ranks of all stages: replicated tensors count as often as they exist.
        checkpoint_tensors: tensors of the checkpoint, ``None`` without one.
        checkpoint_files: size of its files on disk, ``None`` without one.

    """

    per_rank: tuple[int, ...]
    all_ranks: int
    checkpoint_tensors: int | None = None
    checkpoint_files: int | None = None

    @property
    def largest_rank(self) -> int:
        """Bytes on the rank that holds most."""
        return max(self.per_rank, default=0)

    def labelled(self) -> dict[str, tuple[float, float]]:
        """Every reading as ``(GiB, GB)``, by name; the two differ by 7.4 %."""
        named = {f"stage {number} per rank": size for number, size in enumerate(self.per_rank)}
        named["all ranks"] = self.all_ranks
        if self.checkpoint_tensors is not None:
            named["checkpoint tensors"] = self.checkpoint_tensors
        if self.checkpoint_files is not None:
            named["checkpoint files"] = self.checkpoint_files
        return {name: (size / 2**30, size / 10**9) for name, size in named.items()}


def weight_readings(
    estimates: Sequence[WeightEstimate], tensor_parallel_size: int = 1, checkpoint: CheckpointBytes | None = None
) -> WeightReadings:
    """Put the readings of an estimate, and of a checkpoint where one is there, side by side.

    Args:
        estimates: one per pipeline stage, as :func:`estimate_weights` returns them.
        tensor_parallel_size: ranks per stage.
        checkpoint: what the model directory's headers say.

    """
    per_rank = tuple(found.allocated_bytes for found in estimates)
    known = checkpoint is not None and bool(checkpoint.files)
    return WeightReadings(
        per_rank=per_rank,
        all_ranks=sum(per_rank) * max(1, tensor_parallel_size),
        checkpoint_tensors=checkpoint.tensor_bytes if checkpoint is not None and known else None,
        checkpoint_files=checkpoint.file_bytes if checkpoint is not None and known else None,
    )
