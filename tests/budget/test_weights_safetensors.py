"""Header reading: sums, shards, and files that lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck.budget.safetensors import HeaderError, checkpoint_bytes, read_header

if TYPE_CHECKING:
    from pathlib import Path

ITEM = {"BF16": 2, "F32": 4, "U8": 1}


def content(tensors: dict[str, tuple[str, list[int]]], *, metadata: bool = True) -> bytes:
    """A file of zeros with these tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if metadata else {}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = ITEM[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return raw(header, end)


def raw(header: object, data: int) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


SHARD = {"a": ("BF16", [4, 8]), "b": ("F32", [3]), "c": ("U8", [0, 7])}


def test_sums_by_dtype(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content(SHARD))
    found = read_header(path)
    assert (found.tensor_bytes, found.tensors) == (64 + 12, 3)
    assert found.by_dtype == {"BF16": 64, "F32": 12, "U8": 0}
    assert found.file_bytes == path.stat().st_size > found.tensor_bytes


def test_only_the_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.safetensors"
    header = {"w": {"dtype": "U8", "shape": [1 << 40], "data_offsets": [0, 1 << 40]}}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + (1 << 40))  # sparse: takes no room
    assert read_header(path).tensor_bytes == 1 << 40


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too few"),
        (b"\x01\x02", "too few"),
        ((2**63).to_bytes(8, "little"), "beyond the format's limit"),
        ((5000).to_bytes(8, "little") + b"{}", "does not fit"),
        (raw([], 0), "no JSON object"),
        ((4).to_bytes(8, "little") + b"{'a'", "not JSON"),
        ((20).to_bytes(8, "little") + b"\xff" * 20, "not JSON"),
        ((100_000).to_bytes(8, "little") + b"[" * 100_000, "too deeply"),
        (raw({"a": 1}, 0), "no description"),
        (raw({"a": {"dtype": "BF16"}}, 0), "no dtype or no offsets"),
        (raw({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [4, 2]}}, 4), "ends before"),
        (
            raw({"a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 2]}}, 2),
            "takes 2 bytes where its shape needs 8",
        ),
        (raw({"a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}, 7), "cut short"),
        (raw({"a": {"dtype": "BF16", "shape": [4], "data_offsets": [8, 16]}}, 16), "holes"),
        (raw({"a": {"dtype": "BF16", "shape": [-1], "data_offsets": [True, 8]}}, 16), "no dtype or no offsets"),
    ],
)
def test_files_that_lie(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(HeaderError, match=message):
        read_header(path)
    found = checkpoint_bytes(tmp_path)
    assert not found.complete
    assert len(found.problems) == 1
    assert found.tensor_bytes == 0


def test_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
        "b": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]},
    }
    (tmp_path / "x.safetensors").write_bytes(raw(header, 12))
    with pytest.raises(HeaderError, match="overlap"):
        read_header(tmp_path / "x.safetensors")


def test_missing_file() -> None:
    with pytest.raises(HeaderError):
        read_header("/nonexistent/model.safetensors")
    with pytest.raises(HeaderError):
        read_header("model\0.safetensors")
    assert not checkpoint_bytes("/nonexistent").complete
    assert not checkpoint_bytes("mod\0el").complete


def shards(folder: Path, count: int, *, skip: int | None = None) -> None:
    for number in range(1, count + 1):
        if number != skip:
            (folder / f"model-{number:05d}-of-{count:05d}.safetensors").write_bytes(content(SHARD))


def test_shards_add_up(tmp_path: Path) -> None:
    shards(tmp_path, 3)
    found = checkpoint_bytes(tmp_path)
    assert found.complete
    assert found.tensor_bytes == 3 * 76
    assert found.by_dtype == {"BF16": 192, "F32": 36, "U8": 0}
    assert found.file_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_missing_shards_are_named(tmp_path: Path) -> None:
    shards(tmp_path, 3, skip=2)
    found = checkpoint_bytes(tmp_path)
    assert found.missing == ("model-00002-of-00003.safetensors",)
    assert not found.complete
    assert found.tensor_bytes == 2 * 76


def index(folder: Path, table: object, total: object = 152) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": table})
    )


def test_the_index_says_what_belongs(tmp_path: Path) -> None:
    shards(tmp_path, 2)
    (tmp_path / "adapter.safetensors").write_bytes(content(SHARD))
    index(tmp_path, {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"})
    found = checkpoint_bytes(tmp_path)
    assert found.complete
    assert [file.name for file in found.files] == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert found.index_total_bytes == found.tensor_bytes == 152


def test_an_index_cannot_lead_out_of_the_directory(tmp_path: Path) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "secret.safetensors").write_bytes(content(SHARD))
    shards(inside, 1)
    index(inside, {"a": "../secret.safetensors", "b": "model-00001-of-00001.safetensors"})
    found = checkpoint_bytes(inside)
    assert [file.name for file in found.files] == ["model-00001-of-00001.safetensors"]
    assert found.problems


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "[" * 200_000])
def test_a_broken_index_is_a_problem_not_an_error(tmp_path: Path, text: str) -> None:
    shards(tmp_path, 1)
    (tmp_path / "model.safetensors.index.json").write_text(text)
    found = checkpoint_bytes(tmp_path)
    assert found.problems
    assert found.tensor_bytes == 76


@pytest.mark.parametrize("total", [None, "many", -1, 1.5, True, 2**70])
def test_a_useless_total_is_ignored(tmp_path: Path, total: object) -> None:
    shards(tmp_path, 1)
    index(tmp_path, {"a": "model-00001-of-00001.safetensors"}, total)
    assert checkpoint_bytes(tmp_path).index_total_bytes is None


def test_consolidated_copies_are_not_counted_twice(tmp_path: Path) -> None:
    shards(tmp_path, 2)
    (tmp_path / "consolidated.safetensors").write_bytes(content(SHARD))
    assert checkpoint_bytes(tmp_path).tensor_bytes == 2 * 76
    for path in tmp_path.glob("model-*"):
        path.unlink()
    assert checkpoint_bytes(tmp_path).tensor_bytes == 76


def test_a_directory_without_weights(tmp_path: Path) -> None:
    found = checkpoint_bytes(tmp_path)
    assert not found.complete
    assert (found.tensor_bytes, found.missing, found.problems) == (0, (), ())


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_header_or_a_header_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    path.write_bytes(data)
    try:
        found = read_header(path)
    except HeaderError:
        return
    assert found.tensor_bytes <= len(data)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.tuples(st.sampled_from(sorted(ITEM)), st.lists(st.integers(0, 6), max_size=3)),
        max_size=6,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_tensors_add_up(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, tuple[str, list[int]]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    data = content(tensors, metadata=False)
    path.write_bytes(data)
    found = read_header(path)
    header = int.from_bytes(data[:8], "little")
    assert found.tensor_bytes == len(data) - 8 - header
    assert found.tensors == len(tensors)
