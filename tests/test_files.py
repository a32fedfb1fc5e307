from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck.files import LogFileError, open_log
from vlogcheck.logsets import LogSet, expand_paths

from .conftest import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = "".join(f"INFO 11-29 16:09:37 [a.py:{number}] 显存 line {number} {number * 7919}\n" for number in range(9000))
DATA = TEXT.encode()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
each_compression = pytest.mark.parametrize("name", COMPRESS)


def drain(path: object) -> bytes:
    with open_log(path) as log:  # type: ignore[arg-type]
        return b"".join(log.chunks(1000))


def test_a_plain_file_can_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(DATA)
    with open_log(path) as log:
        assert log.plain_path == str(path)
        assert os.fstat(log.fileno()).st_size == len(DATA)
        assert log.read() == DATA
        assert (log.compression, log.encoding, log.damage) == (None, "utf-8", None)


@each_compression
def test_compression_is_told_from_the_bytes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "serve.log"  # the name says nothing
    path.write_bytes(COMPRESS[name](DATA))
    with open_log(path) as log:
        assert (log.compression, log.plain_path) == (name, None)
        with pytest.raises(io.UnsupportedOperation):
            log.fileno()
        pieces = list(log.chunks(1000))
        assert b"".join(pieces) == DATA
        assert max(map(len, pieces)) <= 1000
        assert log.damage is None


@each_compression
def test_members_one_behind_the_other(name: str) -> None:
    compress = COMPRESS[name]
    assert drain(io.BytesIO(compress(DATA[:500]) + compress(b"") + compress(DATA[500:]))) == DATA


@each_compression
def test_a_cut_file_gives_what_there_is(name: str) -> None:
    noise = "".join(f"{number * 2654435761 % 2**32:08x}\n" for number in range(200_000)).encode()
    whole = COMPRESS[name](noise)
    with open_log(io.BytesIO(whole[: len(whole) * 3 // 4])) as log:
        found = b"".join(log.chunks())
        assert log.damage is not None
        assert "cut off" in log.damage
        assert "\n" not in log.damage
    assert noise.startswith(found)
    if name != "bzip2" or found:
        assert len(found) > len(noise) // 4


@each_compression
def test_a_damaged_file_gives_what_there_is(name: str) -> None:
    whole = COMPRESS[name](DATA)
    with open_log(io.BytesIO(whole + COMPRESS[name](DATA)[:6] + b"\xff" * 64)) as log:
        assert b"".join(log.chunks()) == DATA
        assert log.damage is not None


@each_compression
@pytest.mark.parametrize("length", range(12))
def test_a_file_cut_in_its_header_does_not_raise(name: str, length: int) -> None:
    with open_log(io.BytesIO(COMPRESS[name](DATA)[:length])) as log:
        list(log.chunks())


@each_compression
def test_a_bomb_stays_small_in_memory(name: str) -> None:
    bomb = COMPRESS[name](bytes(64 << 20))
    tracemalloc.start()
    with open_log(io.BytesIO(bomb)) as log:
        assert sum(map(len, log.chunks())) == 64 << 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("bom", [True, False])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_utf16_becomes_utf8(encoding: str, bom: bool, compress: Callable[[bytes], bytes]) -> None:
    data = (("\ufeff" if bom else "") + TEXT).encode(encoding)
    with open_log(io.BytesIO(compress(data))) as log:
        assert log.encoding == encoding
        assert b"".join(log.chunks(997)) == DATA


def test_utf16_cut_in_a_character() -> None:
    assert drain(io.BytesIO("\ufeffabc 显".encode("utf-16-le")[:-1])).decode() == "abc \ufffd"


def test_a_utf8_mark_is_dropped_once(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(b"\xef\xbb\xbf" * 2 + DATA)
    with open_log(path) as log:
        assert log.plain_path is None
        assert log.read() == b"\xef\xbb\xbf" + DATA


@given(st.binary(max_size=300))
def test_any_bytes_open(data: bytes) -> None:
    if not data.startswith(b"PK\x03\x04"):
        drain(io.BytesIO(data))


@given(st.text(max_size=200))
def test_utf8_text_stays_as_it_is(text: str) -> None:
    data = text.removeprefix("\ufeff").encode("utf-8", "replace")
    if b"\0" not in data and not data.startswith((b"\x1f\x8b\x08", b"\xef\xbb\xbf")):
        assert drain(io.BytesIO(data)) == data


def test_standard_input_also_compressed() -> None:
    code = "from vlogcheck.files import open_log; import sys; sys.stdout.buffer.write(open_log('-').read())"
    for data, text in ((DATA, DATA), (gzip.compress(DATA), DATA), (b"", b"")):
        done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
        assert done.stdout == text


def test_a_file_that_grows_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(b"first line is here\n")
    with open_log(path) as log, path.open("ab") as writer:
        assert log.read(1000) == b"first line is here\n"
        assert log.read(1000) == b""
        writer.write(b"second\n")
        writer.flush()
        assert log.read(1000) == b"second\n"


def test_a_file_object_stays_open() -> None:
    file = io.BytesIO(DATA)
    open_log(file).close()
    assert not file.closed


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    archive = tmp_path / "logs.zip"
    archive.write_bytes(b"PK\x03\x04 and more of it")
    cases = {
        str(tmp_path / "absent.log"): "no such file",
        str(tmp_path): "is a directory",
        str(archive): "zip archive",
        "nul\0.log": "null",
    }
    for path, words in cases.items():
        with pytest.raises(LogFileError, match=words) as error:
            open_log(path)
        assert "\n" not in str(error.value)


RECORDED = sorted(SHARED.glob("recorded/w32_plain.log.*"))


@pytest.mark.skipif(not RECORDED, reason=f"no recorded logs in {SHARED}")
def test_recorded_compressed_logs() -> None:
    plain = RECORDED[0].with_name("w32_plain.log").read_bytes()
    assert len(RECORDED) == 4
    for path in RECORDED:
        assert drain(path) == plain
    assert drain(RECORDED[0].with_name("w32_utf8_bom.log")) == plain
    powershell = drain(RECORDED[0].with_name("w32_windows_ps51_utf16.log"))
    assert [line.rstrip() for line in powershell.splitlines()] == [line.rstrip() for line in plain.splitlines()]


def touch(directory: Path, *names: str) -> list[str]:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return [str(directory / name) for name in names]


ROTATED = [
    ["serve.log.10.gz", "serve.log.2.gz", "serve.log.1", "serve.log"],
    ["serve.log.old", "serve.log"],
    ["serve.log-20250101.gz", "serve.log-20250102", "serve.log"],
    ["serve-20250101.log.zst", "serve-20250102.log", "serve.log"],
    ["serve.log.2025-01-01", "serve.log.2025-01-02", "serve.log"],
    ["serve-2025-01-01T12-00-00.123.log.gz", "serve-2025-01-01T13-00-00.000.log", "serve.log"],
    ["0.log.20250101-120000.gz", "0.log.20250101-130000", "0.log"],
    ["serve.log-1735689600", "serve.log-1735776000", "serve.log"],
    ["serve.2025-01-01_12-00-00_123456.log", "serve.2025-01-02_12-00-00_000001.log", "serve.log"],
    ["abc123-json.log.2", "abc123-json.log.1", "abc123-json.log"],
]
PIECES = {
    "serve.log": ["serve.log.aa", "serve.log.ab", "serve.log.ac"],
    "plain.log": ["plain.logaa.gz", "plain.logab.gz"],
    "long.log": ["long.log.aaa", "long.log.aab"],
    "numbered.log": ["numbered.log.00", "numbered.log.01", "numbered.log.10"],
    "x": ["xaa", "xab"],
}


@pytest.mark.parametrize("names", ROTATED, ids=lambda names: names[0])
def test_rotated_files_are_one_log_oldest_first(names: list[str], tmp_path: Path) -> None:
    paths = touch(tmp_path, *names)
    expected = [LogSet(paths[-1], tuple(paths))]
    assert expand_paths(paths) == expected
    assert expand_paths(reversed(paths)) == expected
    assert expand_paths([tmp_path]) == expected


@pytest.mark.parametrize("base", PIECES)
def test_pieces_that_split_made_are_one_log(base: str, tmp_path: Path) -> None:
    paths = touch(tmp_path, *PIECES[base])
    assert expand_paths(reversed(paths)) == [LogSet(str(tmp_path / base), tuple(paths))]
    assert expand_paths([tmp_path]) == expand_paths(paths)
    assert [log.paths for log in expand_paths(paths[1:2])] == [(paths[1],)]


@pytest.mark.parametrize(
    "names",
    [
        ["serve.log.ab", "serve.log.ac"],  # the first is missing
        ["serve.log.aa", "serve.log.ac"],
        ["serve.log", "serve.log.aa", "serve.log.ab"],  # the whole log is there too
        ["rank-00", "rank-01"],
        ["worker.00.log", "worker.01.log"],
        ["serve.log.aa", "serve.log.aab"],
    ],
    ids=" ".join,
)
def test_what_only_looks_like_pieces_stays_apart(names: list[str], tmp_path: Path) -> None:
    paths = touch(tmp_path, *names)
    assert [log.paths for log in expand_paths(paths)] == [(path,) for path in paths]


def test_a_single_file_stands_for_itself(tmp_path: Path) -> None:
    paths = touch(tmp_path, "serve.log", "serve.log.1")
    assert expand_paths(paths[:1]) == [LogSet(paths[0], (paths[0],))]


def test_different_logs_stay_apart_in_the_order_given(tmp_path: Path) -> None:
    paths = touch(tmp_path, "b.log", "a.log", "worker.0.log", "worker.1.log", "a/b.log")
    assert expand_paths(paths) == [LogSet(path, (path,)) for path in paths]


def test_a_directory_leaves_out_what_is_no_log(tmp_path: Path) -> None:
    paths = touch(tmp_path, "a.log", "config.json.bak", "model.safetensors", ".hidden.log", "b.txt.gz", "sub/c.log")
    assert [log.paths for log in expand_paths([tmp_path])] == [(paths[0],), (paths[4],)]


def test_a_directory_of_directories(tmp_path: Path) -> None:
    paths = touch(tmp_path, "vllm/0.log", "vllm/1.log", "init/0.log")
    assert [log.paths for log in expand_paths([tmp_path])] == [(paths[2],), (paths[0],), (paths[1],)]


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.log", tmp_path, "nul\0"):
        with pytest.raises(LogFileError):
            expand_paths([path])


def test_standard_input_is_a_path() -> None:
    assert expand_paths(["-"]) == [LogSet("-", ("-",))]
