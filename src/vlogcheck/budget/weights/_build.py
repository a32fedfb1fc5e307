"""Collects the tensors one rank holds, in the order vLLM creates them.

Sizes are exact integers of bytes. A dimension that tensor parallelism cannot divide raises :class:`NotDivisible`:
vLLM refuses such a deployment, so there is nothing to estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vlogcheck.budget.releases import Release, parse_release
from vlogcheck.budget.weights._dimensions import NotDivisible, NotModelled, layers_in, pad, ratio_in
from vlogcheck.budget.weights._quant import PLAIN, Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Builder", "NotDivisible", "NotModelled", "Share", "layers_in", "pad", "ratio_in"]


@dataclass(frozen=True, slots=True)
class Share:
    """What part of the model one rank holds.

    Attributes:
        tp: tensor-parallel size of attention and dense layers.
        moe_tp: ranks one routed expert is cut over.
        ep: ranks the routed experts are dealt to (1 without expert parallelism).
        first: whether the rank holds the first pipeline stage.
        last: whether the rank holds the last pipeline stage.
        extra_experts: redundant experts added for load balancing.

    """

    tp: int = 1
    moe_tp: int = 1
    ep: int = 1
    first: bool = True
    last: bool = True
    extra_experts: int = 0


@dataclass(slots=True)
class Builder:
    """The tensors of one rank.

    Attributes:
        share: the rank's part of the model.
        item: bytes per element of the model's type.
        scheme: how linear layers are quantised.
        release: the vLLM release.
        absorb: whether latent attention runs as MLA (``VLLM_MLA_DISABLE`` turns it off).
        prefix: dotted name of the module being built, without a trailing dot (``model.layers.3``).
        params: ``(part, bytes)`` of every parameter.
        buffers: ``(part, bytes)`` of every buffer.
        after: ``(part, bytes)`` of tensors that appear only after loading.
        notes: assumptions made on the way.
        uncertain: bytes of parts whose structure is only guessed at.

    """

    share: Share
    item: int
    scheme: Scheme = PLAIN
    release: Release = field(default_factory=lambda: parse_release(None))
    absorb: bool = True
    prefix: str = "model"
    params: list[tuple[str, int]] = field(default_factory=list)
    buffers: list[tuple[str, int]] = field(default_factory=list)
    after: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ropes: set[tuple[object, ...]] = field(default_factory=set)
    uncertain: int = 0

    def cut(self, size: int, what: str, ways: int | None = None) -> int:
        """``size`` divided over the tensor-parallel ranks (or ``ways``)."""
        ways = self.share.tp if ways is None else ways
        if size % ways:
            raise NotDivisible(f"{what} = {size} cannot be divided by {ways} ranks")
        return size // ways

    def add(self, part: str, elements: int, item: int | None = None) -> None:
        """One parameter of ``elements`` elements (of the model's type unless ``item`` bytes each are given)."""
        self.params.append((part, elements * (self.item if item is None else item)))

    def buffer(self, part: str, nbytes: int) -> None:
        """One buffer."""
        self.buffers.append((part, nbytes))

    def later(self, part: str, nbytes: int) -> None:
        """One tensor that loading leaves behind beside the parameters."""
        self.after.append((part, nbytes))

    def note(self, text: str) -> None:
        """Record an assumption once."""
        if text not in self.notes:
            self.notes.append(text)

    # Linear layers ---------------------------------------------------------------------------------------------------

    def linear(
        self, part: str, name: str, n_in: int, outs: Sequence[int], *, bias: bool = False, pieces: Sequence[str] = ()
    ) -> None:
        """Add a linear layer whose per-rank sizes are given.

        Args:
            part: part of the model it is counted under.
            name: module name below the prefix.
            n_in: input width on this rank.
            outs: output widths on this rank, one per fused shard.
            bias: whether it has a bias.
            pieces: names of the fused layers in the checkpoint, where they differ from ``name``.

        """
        outs = [out for out in outs if out]
        scheme = self.scheme if self.scheme.covers(f"{self.prefix}.{name}", pieces) else PLAIN
        sizes = scheme.linear(n_in, outs, self.item)
        if bias:
            sizes.append(sum(outs) * self.item)
        self.params.extend((part, size) for size in sizes)

    def column(
        self, part: str, name: str, n_in: int, outs: Sequence[int], *, bias: bool = False, pieces: Sequence[str] = ()
    ) -> None:
        """Add a column-parallel layer of full sizes: outputs are cut over the ranks."""
        self.linear(part, name, n_in, [self.cut(out, f"output of {name}") for out in outs], bias=bias, pieces=pieces)

    def row(self, part: str, name: str, n_in: int, n_out: int, *, bias: bool = False) -> None:
        """Add a row-parallel layer of full sizes: inputs are cut over the ranks, the bias is not."""
        self.linear(part, name, self.cut(n_in, f"input of {name}"), [n_out], bias=bias)

    def plain(self, part: str, n_in: int, n_out: int, *, bias: bool = False, item: int | None = None) -> None:
        """Add a replicated layer that is never quantised."""
        self.add(part, n_in * n_out, item)
        if bias:
            self.add(part, n_out, item)

    def norm(self, width: int, kind: str = "rms", part: str = "norms", *, item: int | None = None) -> None:
        """Add a normalisation: ``rms`` and ``weight`` have a weight, ``layer`` a bias too, ``none`` nothing."""
        if kind == "none":
            return
        self.add(part, width, item)
        if kind == "layer":
            self.add(part, width, item)

    def table(self, part: str, rows: int, width: int, item: int | None = None) -> None:
        """Add a vocabulary-parallel table: rows padded to 64 and cut over the ranks (vocab_parallel_embedding.py)."""
        self.add(part, self.cut(pad(rows, 64), "padded vocabulary") * width, item)

    # Experts ---------------------------------------------------------------------------------------------------------

    def experts(
        self, count: int, hidden: int, inner: int, *, gated: bool = True, bias: bool = False, name: str = "mlp.experts"
    ) -> None:
        """Add the routed experts of one layer, fused as vLLM fuses them (``w13`` and ``w2``)."""
        share = self.share
        total = count + share.extra_experts
        local = -(-total // share.ep)
        if total % share.ep:
            self.note(f"{total} experts over {share.ep} ranks: the figure is of a rank that holds one more than others")
        width = self.cut(inner, "expert width", share.moe_tp)
        scheme = (
            self.scheme if self.scheme.covers(f"{self.prefix}.{name}", ("gate_proj", "up_proj", "down_proj")) else PLAIN
        )
        sizes = scheme.experts(local, hidden, width, self.item, shards=2 if gated else 1, bias=bias)
        self.params.extend(("experts", size) for size in sizes)
        if share.ep > 1:
            self.buffer("experts", 4 * total)  # global expert number -> local one

    # Buffers ---------------------------------------------------------------------------------------------------------

    def rope(self, rows: int, width: int, key: object = None, *, item: int | None = None) -> None:
        """Add a cos/sin cache of ``rows`` positions, shared by all layers that use the same one."""
        identity = (rows, width, key)
        if rows > 0 and width > 0 and identity not in self.ropes:
            self.ropes.add(identity)
            self.buffer("rope", rows * width * (self.item if item is None else item))

    def attention_scales(self, *, mla: bool = False) -> None:
        """Add the K, V, Q and probability scales of one attention layer.

        Releases before 0.14 keep them as attributes, later ones register four float32 buffers; schemes that quantise
        the KV cache register four parameters of the model's type until loading ends (not on MLA layers from 0.11 on).
        """
        if self.scheme.cache_scales and not (mla and self.release.since("0.11.1")):
            self.params.extend([("attention", self.item)] * 4)
        if self.release.since("0.14.1"):
            self.buffers.extend([("attention", 4)] * 4)
