"""A group: layers that share one block table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import (
    UNIFORM,
    LayerSpec,
)

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.releases import Release

__all__ = ["CannotGroupError", "Group"]


class CannotGroupError(Exception):
    """vLLM refuses these layers: their pages cannot be made equal."""


@dataclass(frozen=True)
class Group:
    """Layers that share one block table.

    Attributes:
        layers: the members' numbers, in vLLM's order.
        specs: one spec per member.
        uniform_type: whether the members differ in page size and are kept side by side in one group.

    """

    layers: tuple[int, ...]
    specs: tuple[LayerSpec, ...]
    uniform_type: bool = False
    template: LayerSpec | None = None
    """The group's spec where this rank holds none of its layers."""

    @property
    def spec(self) -> LayerSpec:
        """The spec that stands for the group."""
        if self.specs:
            return self.specs[0]
        if self.template is None:
            raise CannotGroupError("an empty group")
        return self.template

    @property
    def kind(self) -> str:
        """VLLM's class name of the group's spec."""
        return UNIFORM if self.uniform_type else self.spec.kind

    @property
    def block_size(self) -> int:
        """Tokens per block."""
        return self.spec.block_size

    @property
    def page_size_bytes(self) -> int:
        """Bytes of one layer's page; of all layers' pages together where they differ."""
        return self.page_sum if self.uniform_type else self.spec.page_size_bytes

    @property
    def page_sum(self) -> int:
        """Bytes one block takes over all members on this rank."""
        return sum(spec.page_size_bytes for spec in self.specs)

    def blocks(self, length: int, settings: Settings) -> int:
        """Blocks a request of ``length`` tokens takes from this group, at most."""
        return max((spec.blocks(length, settings) for spec in self.specs or (self.spec,)), default=0)

    def on(self, present: frozenset[int], release: Release) -> Group:
        """Return the group with only the layers a rank holds.

        Until 0.16.0 the specs of layers of unequal pages were not cut down to the rank's own: each rank's block was as
        large as the whole model's.
        """
        if self.uniform_type and release.before("0.17.0"):
            return self
        kept = [(n, s) for n, s in zip(self.layers, self.specs, strict=True) if n in present]
        return replace(self, layers=tuple(n for n, _ in kept), specs=tuple(s for _, s in kept), template=self.spec)
