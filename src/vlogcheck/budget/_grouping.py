"""Grouping layers for the hybrid KV-cache manager (``get_kv_cache_groups``, vllm/v1/core/kv_cache_utils.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vlogcheck.budget._group import CannotGroupError, Group
from vlogcheck.budget._layer import (
    CHUNKED,
    FULL,
    FULL_KINDS,
    MAMBA,
    MLA,
    SLIDING,
    SLIDING_MLA,
    LayerSpec,
    cdiv,
)
from vlogcheck.budget._packing import best_repeats, page_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlogcheck.budget._settings import Settings
    from vlogcheck.budget.specs import Layer


def make_groups(layers: Sequence[Layer], settings: Settings) -> list[Group]:
    """Split layers into groups by the rule of the release.

    Raises:
        CannotGroupError: vLLM would refuse.

    """
    entries = [(layer.number, layer.spec) for layer in layers]
    if settings.hybrid_disabled:
        entries = _promote(entries, settings)
    if not entries:
        return []
    specs = [spec for _, spec in entries]
    if _mergeable(specs):
        return [Group(tuple(n for n, _ in entries), _merged(specs))]
    if _same_type(specs) and settings.release.since("0.11.0"):
        return [Group(tuple(n for n, _ in entries), tuple(specs), uniform_type=True)]
    if any(spec.kind == SLIDING_MLA for spec in specs) and len({spec.page_size_bytes for spec in specs}) > 1:
        return pack(entries)
    return _uniform_page(_unify_pages(entries, settings), settings)


def _merged(specs: Sequence[LayerSpec]) -> tuple[LayerSpec, ...]:
    """Full attention that remembers a window is still one spec."""
    return tuple(replace(spec, window=None) if spec.kind in FULL_KINDS else spec for spec in specs)


def _mergeable(specs: Sequence[LayerSpec]) -> bool:
    return len(set(_merged(specs))) == 1


def _same_type(specs: Sequence[LayerSpec]) -> bool:
    """Whether all layers need the same number of token slots."""
    first = specs[0]
    if len({spec.block_size for spec in specs}) > 1:
        return False
    if all(spec.kind in FULL_KINDS for spec in specs):
        return True
    if any(spec.kind != first.kind for spec in specs):
        return False
    if first.kind in {SLIDING, CHUNKED, SLIDING_MLA}:
        return len({spec.window for spec in specs}) == 1
    if first.kind == MAMBA:
        return len({(s.speculative_blocks, s.checkpoint_blocks, s.page_size_bytes) for s in specs}) == 1
    return True


_LOCAL = frozenset({SLIDING, CHUNKED, SLIDING_MLA})


def _promote(entries: list[tuple[int, LayerSpec]], settings: Settings) -> list[tuple[int, LayerSpec]]:
    """Without the hybrid manager local layers are kept like full ones."""
    specs = [spec for _, spec in entries]
    if not specs or _mergeable(specs) or (_same_type(specs) and settings.release.since("0.11.0")):
        return entries
    full_sizes = {spec.block_size for spec in specs if spec.kind in FULL_KINDS}
    size = next(iter(full_sizes)) if len(full_sizes) == 1 else None
    # in these releases the new specs lost a mark (indexes_kv_by_block_stride): equal in bytes, but not mergeable
    mark = " promoted" if settings.release.since("0.24.0") and settings.release.before("0.27.0") else ""
    if full_sizes:
        entries = [
            (number, replace(spec.promoted(size), variant=spec.variant + mark) if spec.kind in _LOCAL else spec)
            for number, spec in entries
        ]
    specs = [spec for _, spec in entries]
    if not (_mergeable(specs) or (_same_type(specs) and settings.release.since("0.11.0"))):
        raise CannotGroupError(
            "Hybrid KV cache manager is disabled but failed to convert the KV cache specs to one unified type."
        )
    return entries


def _unify_pages(entries: list[tuple[int, LayerSpec]], settings: Settings) -> list[tuple[int, LayerSpec]]:
    """Give every layer the largest page, by a larger block or by padding."""
    largest = max(spec.page_size_bytes for _, spec in entries)
    if all(spec.page_size_bytes == largest for _, spec in entries):
        return entries
    release = settings.release
    if release.before("0.12.0"):
        raise CannotGroupError("layers with different page sizes are not supported before 0.12.0")
    unified: list[tuple[int, LayerSpec]] = []
    for number, spec in entries:
        page = spec.page_size_bytes
        if page == largest:
            new = spec
        elif spec.kind == MAMBA and release.since("0.26.0"):
            new = spec.padded_to(largest)
        elif largest % page == 0 and spec.kind != MAMBA and spec.page_padded is not None:
            raise CannotGroupError("A padded page cannot be made larger by more tokens.")
        elif largest % page == 0 and spec.kind != MAMBA:
            new = spec.with_block_size(spec.block_size * (largest // page))
        elif release.since("0.24.0") and spec.kind not in {MAMBA, MLA}:
            new = spec.padded_to(largest)
        else:
            raise CannotGroupError("The page size of the layer is not divisible by the maximum page size.")
        unified.append((number, new))
    return unified


def pack(entries: list[tuple[int, LayerSpec]]) -> list[Group]:
    """Group layers of several page sizes side by side in one block (``_get_packed_kv_cache_groups``, 0.29.0 on)."""
    buckets: list[list[tuple[int, LayerSpec]]] = []
    for entry in entries:
        for bucket in buckets:
            if _same_type([spec for _, spec in (*bucket, entry)]):
                bucket.append(entry)
                break
        else:
            buckets.append([entry])
    counts = [page_counts([spec.page_size_bytes for _, spec in bucket]) for bucket in buckets]
    balanced = [len(set(count.values())) == 1 for count in counts]
    floors = [max(c.values()) for c, even in zip(counts, balanced, strict=True) if even and len(c) > 1]
    repeats = None
    if floors:
        repeats = best_repeats([max(c.values()) for c, even in zip(counts, balanced, strict=True) if even], max(floors))
    groups: list[Group] = []
    for bucket, count, even in zip(buckets, counts, balanced, strict=True):
        number = cdiv(max(count.values()), repeats) if even and repeats else 1
        columns = [[entry for entry in bucket if entry[1].page_size_bytes == page] for page in count]
        rows = list(zip(*columns, strict=True)) if even else []
        for i in range(number):
            part = bucket if number == 1 else [entry for row in rows[i::number] for entry in row]
            groups.append(Group(tuple(n for n, _ in part), tuple(s for _, s in part), uniform_type=True))
    return groups


def _uniform_page(entries: list[tuple[int, LayerSpec]], settings: Settings) -> list[Group]:
    """Cut each kind of layer into groups of about equal size."""
    release = settings.release
    buckets: list[tuple[LayerSpec, list[tuple[int, LayerSpec]]]] = []
    for number, spec in entries:
        key = spec
        if release.since("0.27.1"):
            key = _merged([spec])[0]
        for known, members in buckets:
            if known == key:
                members.append((number, spec))
                break
        else:
            buckets.append((key, [(number, spec)]))
    counts = [len(members) for _, members in buckets]
    size, most = min(counts), max(counts)
    if release.since("0.18.1"):
        if most * 2 < size * 3:
            size = most
    elif release.since("0.12.0") and most * 4 < size * 5:
        size = most
    groups: list[Group] = []
    for _, members in buckets:
        number = cdiv(len(members), size)
        for i in range(number):
            part = members[i::number] if release.since("0.11.0") else members[i * size : (i + 1) * size]
            groups.append(Group(tuple(n for n, _ in part), _merged([s for _, s in part])))
    if release.before("0.11.0"):
        groups.sort(key=lambda group: _ORDER.get(group.spec.kind, 9))
    return groups


#: Until 0.10.2 groups were ordered by the name of their spec's class.
_ORDER = {CHUNKED: 0, "CrossAttentionSpec": 1, FULL: 2, MAMBA: 3, SLIDING: 4}
