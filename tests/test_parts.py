"""A log cut at any byte (`split -b`, copytruncate) reads as the whole one, with each record in the part its line begins in."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlogcheck import check
from vlogcheck._reading import parse_parts, read
from vlogcheck._watcher import Watcher
from vlogcheck.api import Inquiry
from vlogcheck.cli import main
from vlogcheck.many import check_many, table

from . import _wrap
from .conftest import ROOT

PREFIX = "(EngineCore pid=17) INFO 11-29 16:09:37 [kv_cache_utils.py:1291] "
LOG = (
    (ROOT / "fixtures" / "logs" / "0.32.0" / "docker.docker-logs.log").read_text("utf-8").removesuffix("\n").split("\n")
)
FAILED = ROOT / "fixtures" / "logs" / "0.32.0" / "fail-no-kv-room.log"
OWN = {"line", "path"}
Place = tuple[int, int, str]


def places(*parts: bytes) -> list[Place]:
    """Part, line and content of each record."""
    found = []
    for part, record in parse_parts(parts):
        values = {name: value for name, value in record.to_dict().items() if name not in OWN}
        found.append((part, int(record.line), json.dumps(values, default=str)))
    return found


def expected(data: bytes, at: int) -> list[Place]:
    """The records of the whole log, where they stand once it is cut at a byte."""
    before = data.count(b"\n", 0, at)
    begun = before + (not data[:at].endswith(b"\n"))
    return [(0, n, text) if n <= begun else (1, n - before, text) for _, n, text in places(data)]


def command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with contextlib.suppress(SystemExit):
        main(list(words))
    return capsys.readouterr().out


def plain(lines: list[str]) -> list[str]:
    return lines


@pytest.mark.parametrize(
    "writer",
    [
        plain, _wrap.docker_json_file, _wrap.cri, _wrap.docker_logs_t, _wrap.compose_v2, _wrap.journal_short, _wrap.journal_json,
        _wrap.ts_incremental, _wrap.srun,
    ],
    ids=lambda writer: writer.__name__,
)  # fmt: skip
def test_a_line_that_is_cut_between_two_parts_is_put_together(writer: _wrap.Writer) -> None:
    data = ("\n".join(writer(LOG)) + "\n").encode()
    seam = data.index(b"\n", data.index(b"CPU KV cache size")) - 9
    prefix = data.rindex(b"INFO", 0, seam)
    for at in (*range(prefix - 3, seam, 47), seam, seam + 8, seam + 9, *range(1, len(data), len(data) // 7)):
        assert places(data[:at], data[at:]) == expected(data, at), data[at - 30 : at + 30]


@pytest.mark.parametrize("size", [500, 4096])
def test_a_line_may_go_through_several_parts_that_are_compressed(size: int) -> None:
    data = "\n".join(LOG).encode()  # the last line has no end
    parts = [gzip.compress(data[at : at + size]) for at in range(0, len(data), size)]
    assert max(map(len, LOG)) > size / 2
    assert [text for *_, text in places(*parts)] == [text for *_, text in places(data)]
    facts = read(parts)
    assert (facts.truncated, facts.lines) == (
        True,
        len(LOG) + sum(data[at - 1 : at] != b"\n" for at in range(size, len(data), size)),
    )


def test_what_a_wrapper_cut_goes_on_in_the_next_part() -> None:
    long = f"{PREFIX}non-default args: {{'model': '{'m' * 40_000}'}}"
    lines = [f"{line}\n".encode() for line in _wrap.cri([*LOG[:20], long])]
    for at in range(20, len(lines)):
        (made,) = [place for place in places(b"".join(lines[:at]), b"".join(lines[at:])) if "mmmm" in place[2]]
        assert made[:2] == ((1, len(lines) - at) if at > 20 else (1, 3))


def test_a_head_learned_in_one_part_comes_off_in_the_next() -> None:
    data = "".join(f"site A, tick {tick}: {line}\n" for tick, line in enumerate(LOG)).encode()
    at = data.index(b"Application startup complete")
    assert places(data[:at], data[at:]) == expected(data, at)


def test_a_log_that_is_watched_stays_in_its_wrappers_when_it_is_rotated() -> None:
    lines = [f"site A, tick {tick}: {line}\n".encode() for tick, line in enumerate(LOG)]
    at = next(number for number, line in enumerate(lines) if b"Application startup complete" in line)
    watcher = Watcher(Inquiry(), until="ready")
    watcher.feed(b"".join(lines[:at]))
    watcher.rotated()
    watcher.feed(lines[at])
    assert watcher.report is not None
    assert watcher.report.verdict == "pass"


WHOLE = f"{PREFIX}GPU KV cache size: 34,048 tokens"
HALF = f"{PREFIX}GPU KV cache size: 34,"


@pytest.mark.parametrize("rest", [WHOLE, HALF, "Traceback (most recent call last):"])
@pytest.mark.parametrize("writer", [plain, _wrap.cri, _wrap.docker_json_file], ids=lambda writer: writer.__name__)
def test_a_part_that_begins_as_the_others_do_is_not_put_to_the_line_before(rest: str, writer: _wrap.Writer) -> None:
    first, *after = writer([*LOG[:20], rest]), writer(LOG[20:])
    cut, whole = "\n".join(first).encode(), "".join(f"{line}\n" for lines in after for line in lines).encode()
    apart = [*places(cut + b"\n"), *((1, line, text) for _, line, text in places(whole))]
    assert places(cut, whole) == apart


def test_a_message_that_lacks_nothing_but_its_newline_is_whole() -> None:
    ready = "\n".join([*LOG[:20], "INFO:     Application startup complete."]).encode()
    found = places(
        ready, b"/usr/lib/python3.12/subprocess.py:1: ResourceWarning: still running\n" + "\n".join(LOG).encode()
    )
    assert '"Ready"' in found[-1][2] or any('"Ready"' in text for part, line, text in found if (part, line) == (0, 21))


def test_a_newline_that_was_cut_off_adds_no_record() -> None:
    data = ("\n".join(LOG) + "\n").encode()
    at = data.index(b"\n", data.index(b"CPU KV cache size"))
    assert places(data[:at], data[at:]) == expected(data, at)


def test_what_cannot_be_told_is_told_of(tmp_path: Path) -> None:
    # Nearly all lines are some other program's: nothing shows that the second part begins in mid-line.
    noise = "".join(f"step {number} of the job\n" for number in range(40))
    parts = {"serve.log.1": f"{noise}KV cache of ranks 3,", "serve.log": f"4 set up\n{noise}{WHOLE}\n"}
    for name, text in parts.items():
        (tmp_path / name).write_text(text)
    told = []
    found = list(
        parse_parts([str(tmp_path / name) for name in parts], on_unrecognised=lambda *place: told.append(place))
    )
    assert [(part, record.line) for part, record in found] == [(1, 42)]
    assert [(part, line.number, line.message) for part, line in told] == [
        (0, 41, "KV cache of ranks 3,"),
        (1, 1, "4 set up"),
    ]
    facts = read([str(tmp_path / name) for name in parts])
    assert facts.unrecognised == 2
    assert [(line, getattr(line, "path", None)) for line, _ in facts.unrecognised_lines] == [
        (41, str(tmp_path / "serve.log.1")), (1, str(tmp_path / "serve.log")),
    ]  # fmt: skip


def test_bytes_that_were_lost_between_the_parts_make_no_figure(tmp_path: Path) -> None:
    data = ("\n".join(LOG) + "\n").encode()
    at = data.index(b"CPU KV cache size") + len(b"CPU KV cache size: 34,")
    parts = [tmp_path / "serve.log.1", tmp_path / "serve.log"]
    parts[0].write_bytes(data[:at])
    parts[1].write_bytes(data[data.index(b"\n", at) + 7 :])
    report = check(parts)
    (torn,) = [finding for finding in report.findings if finding.code == "VL010"]
    assert (torn.path, torn.line) == (str(parts[0]), data.count(b"\n", 0, at) + 1)
    assert not any('"KVCacheCapacity"' in text for *_, text in places(*(part.read_bytes() for part in parts)))


def test_findings_name_the_part_their_line_is_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = FAILED.read_bytes()
    (whole,) = [finding for finding in check(data).findings if finding.code == "VL903"]
    at = data.index(b"GiB for KV cache on node") + 5
    parts = [tmp_path / "serve.log.aa", tmp_path / "serve.log.ab"]
    parts[0].write_bytes(data[:at])
    parts[1].write_bytes(data[at:])
    (found,) = [finding for finding in check(parts).findings if finding.code == "VL903"]
    assert whole.line is not None
    assert (found.path, found.line) == (str(parts[1]), whole.line - data.count(b"\n", 0, at))
    assert found._replace(path=None, line=None) == whole._replace(path=None, line=None)
    shown = command(capsys, *map(str, parts))
    assert f"serve.log.ab:{found.line}" in shown
    assert f"(line {found.line} of serve.log.ab)" in shown


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_table_names_the_part_too(jobs: int, tmp_path: Path) -> None:
    data = FAILED.read_bytes()
    at = data.index(b"GiB for KV cache on node")
    parts = [str(tmp_path / "serve.log.1"), str(tmp_path / "serve.log")]
    Path(parts[0]).write_bytes(data[:at])
    Path(parts[1]).write_bytes(data[at:])
    rows = table(check_many([parts, parts], {}, jobs=jobs))
    (found,) = [finding for finding in check(parts).findings if finding.code == "VL903"]
    assert all(row.split()[1] == f"{parts[1]}:{found.line}" for row in rows[1:3])


def test_a_cut_end_is_the_last_parts(tmp_path: Path) -> None:
    data = FAILED.read_bytes()
    at = data.index(b"GiB for KV cache on node")
    parts = [tmp_path / "serve.log.1", tmp_path / "serve.log"]
    parts[0].write_bytes(data[: at - 400])
    parts[1].write_bytes(data[at - 400 : at + 5])
    (found,) = [finding for finding in check(parts).findings if finding.code == "VL003"]
    assert (found.path, found.line) == (str(parts[1]), data.count(b"\n", at - 400, at) + 1)


def test_parse_names_the_part_a_cut_line_begins_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("\n".join(LOG) + "\n").encode()
    at = data.index(b"CPU KV cache size") + 20
    for name, piece in (("serve.log.aa", data[:at]), ("serve.log.ab", data[at:])):
        (tmp_path / name).write_bytes(piece)
    rows = [json.loads(row) for row in command(capsys, "parse", str(tmp_path)).splitlines()]
    (row,) = [row for row in rows if row["record"] == "KVCacheCapacity"]
    assert (Path(row["path"]).name, row["line"]) == ("serve.log.aa", data.count(b"\n", 0, at) + 1)
    assert len(rows) == len(places(data))


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([b"\n", b"\x1b[0", WHOLE.encode(), b'{"log":"a', b"3: x\n"]),
        max_size=12,
    )
)
def test_any_parts_are_read(parts: list[bytes]) -> None:
    ends: dict[int, int] = {}
    list(parse_parts([b"x\n", *parts], on_end=ends.__setitem__))
    assert list(ends) == list(range(len(parts) + 1))
    assert all(ends[number + 1] <= part.count(b"\n") + 1 for number, part in enumerate(parts))
