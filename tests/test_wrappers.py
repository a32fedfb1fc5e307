from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlogcheck import parse_lines
from vlogcheck.wrappers import VLLM_START, Unwrapped, Unwrapper, is_hard_wrapped, rejoin

from . import _wrap
from .conftest import ROOT, SHARED

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "(EngineCore pid=17) INFO 11-29 16:09:37 [kv_cache_utils.py:1291] "
MESSAGE = "GPU KV cache size: 34,048 tokens"
LINE = PREFIX + MESSAGE
PLAIN = [
    LINE,
    "INFO 02-20 00:01:02 llm_engine.py:72] # GPU blocks: 7406, # CPU blocks: 2048",
    "\x1b[1;36m(EngineCore_DP0 pid=18010)\x1b[0;0m INFO 11-29 17:07:24 [gpu_worker.py:298] Available KV cache",
    "\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m11-29 17:19:58\x1b[0m [a.py:347] \r",
    "(Worker pid=2019) \rLoading safetensors checkpoint shards:   0% Completed | 0/7 [00:00<?, ?it/s]",
    "\rLoading safetensors checkpoint shards: 100% Completed | 7/7 [00:00<00:00,  7.23it/s]",
    "(EngineCore_0 pid=9) (RayWorkerWrapper pid=31, ip=10.0.0.2) INFO 07-10 10:00:00 [worker.py:1] hello",
    "(VllmWorker PP0_TP1 pid=12) INFO 08-20 10:00:00 [gpu_worker.py:1] hello",
    'INFO:     127.0.0.1:57964 - "GET /health HTTP/1.1" 200 OK',
    "INFO:     Application startup complete.",
    "Traceback (most recent call last):",
    "    self.model_executor = executor_class(vllm_config)",
    "ValueError: No available memory for the cache blocks.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "[W1129 16:17:55.496182783 utils.cpp:68] Warning: NUMA binding: Using MEMBIND policy",
    "100%|██████████| 67/67 [00:02<00:00, 24.17it/s]",
    ' - leaked instance 0x7fdfa5630be8 of type "triton._C.libtriton.ir.attribute"',
    "|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |",
    "日志: 服务启动 ===",
    "gpt-2 model loaded",
    "",
]


def read(path: Path) -> list[str]:
    data = path.read_bytes()
    text = data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8-sig", "replace")
    return text.removesuffix("\n").split("\n")


def unwrap_all(lines: list[str]) -> list[Unwrapped]:
    """Unwrap a file, pieces put together."""
    unwrapper = Unwrapper()
    done: list[Unwrapped] = []
    pieces = ""
    for line in lines:
        piece = unwrapper.unwrap(line)
        pieces += piece.text
        if not piece.partial:
            done.append(piece if pieces == piece.text else unwrapper.unwrap(pieces))
            pieces = ""
    return [*done, Unwrapped(pieces)] if pieces else done


def sample(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        return [line.removesuffix("\n")[:20_000] for line in islice(file, 400)]


def logs(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in SHARED.glob(pattern))


PLAIN_LOGS = logs("corpus/*.log", "recorded/v0*_llama_load.log", "recorded/v0112_*.log", "recorded/v0320_*truth.log")


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_comes_back_unchanged(line: str) -> None:
    assert Unwrapper().unwrap(line) == (line, None, None, False, None, None, 0)


@pytest.mark.parametrize("writer", _wrap.WRITERS, ids=lambda writer: writer.__name__)
def test_every_wrapper_comes_off_whatever_line_it_wraps(writer: _wrap.Writer) -> None:
    unwrapped = unwrap_all(list(writer(PLAIN)))
    assert [line.text for line in unwrapped] == PLAIN
    assert {line.source for line in unwrapped} == {_wrap.SOURCES[writer]}


@pytest.mark.parametrize(("outer", "inner"), _wrap.NESTED, ids=lambda writer: writer.__name__)
def test_wrappers_in_wrappers_come_off(outer: _wrap.Writer, inner: _wrap.Writer) -> None:
    unwrapped = unwrap_all(list(outer(inner(PLAIN))))
    assert [line.text for line in unwrapped] == PLAIN
    for name in (_wrap.SOURCES[outer], _wrap.SOURCES[inner]):
        assert all((name or "") in (line.source or "") for line in unwrapped)


@pytest.mark.parametrize("inner", _wrap.WRITERS, ids=lambda writer: writer.__name__)
@pytest.mark.parametrize("keys", [("message", "levelname"), ("msg", "level")])
def test_a_shipper_that_adds_a_level_may_wrap_wrapped_lines(inner: _wrap.Writer, keys: tuple[str, str]) -> None:
    message, level = keys
    if inner in (_wrap.journal_json_pretty, _wrap.notebook):
        pytest.skip("one line of the server is several of the file")
    plain = [line for line in PLAIN if line]
    first = next(number for number, line in enumerate(plain) if VLLM_START.match(line))
    lines = [json.dumps({message: line, level: "info", "time": "2026-11-29T16:00:00Z"}) for line in inner(plain)]
    assert [line.text for line in unwrap_all(lines)][first:] == plain[first:]


def test_a_message_behind_a_progress_bar_is_the_servers_own_output_in_a_record_with_a_level_too() -> None:
    bar = "Rendering prompts:   0%|          | 0/2 [00:00<?, ?it/s](EngineCore pid=9) "
    line = bar + "INFO 02-20 00:01:02 [gpu_worker.py:298] Available KV cache memory: 4.37 GiB"
    shipped = json.dumps({"level": "info", "time": "2026-11-29T16:00:00Z", "msg": line})
    assert [record.to_dict()["record"] for record in parse_lines([shipped])] == ["KVCacheMemory"]
    (found,) = unwrap_all([json.dumps({"level": "info", "msg": "asked for INFO 02-20 00:01:02 [a.py:1] hello"})])
    assert found.fields == {"level": "INFO"}


@pytest.mark.parametrize("head", ["[node-7] ", "node-7 | vllm | "])
def test_a_head_that_nobody_has_described_may_stand_before_json(head: str) -> None:
    log = (ROOT / "fixtures" / "logs" / "0.32.0" / "tp2.log").read_text("utf-8").splitlines()
    for writer in (_wrap.docker_json_file, _wrap.fluentbit, _wrap.gcp):
        lines = [head + line for line in writer(log)]
        found = [line.text for line in unwrap_all(lines)]
        assert sum(want != have for want, have in zip(log, found, strict=True)) <= 2  # until it is learned


@pytest.mark.skipif(not PLAIN_LOGS, reason=f"no logs in {SHARED}")
@pytest.mark.parametrize("writer", _wrap.WRITERS, ids=lambda writer: writer.__name__)
def test_real_logs_come_out_of_every_wrapper_as_they_went_in(writer: _wrap.Writer) -> None:
    for path in PLAIN_LOGS:
        lines = sample(path)
        if writer is _wrap.logger_stderr:  # it cuts characters in two
            lines = [line for line in lines if line.isascii() or len(line) < 300]
        expected = [line.text for line in unwrap_all(lines)]
        found = [line.text for line in unwrap_all(list(writer(lines)))]
        differing = [(want, have) for want, have in zip(expected, found, strict=True) if want != have]
        assert not differing, (path.name, len(differing), differing[:3])


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


FAMILIES = {
    "w11": "w11_compose_v2.log",
    "w24": "w24_compose_v2.log",
    "w28f": "w28f_compose_v2.log",
    "w32": "w32_plain.log",
}
OTHER_CONTENT = (
    "appended",
    "two_servers",
    "rotated",
    "split_stdout",
    "truncated",
    "script_real",
    "journal_cat",
)
"""Files of a family that hold another log, or no wrapper at all."""
EXTRA = re.compile(
    r"Attaching to |Script (?:started|done) on |Set uid to user|supervisord started|spawned: |success: "
    r"|exited: |received SIGTERM|$"
)
"""Lines a wrapper adds, and the blank ones that some drop."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem)
        for family in FAMILIES
        for path in logs(f"recorded/{family}_*.log")
        if not any(word in path.name for word in OTHER_CONTENT)
    ]
    or [pytest.param(None, marks=pytest.mark.skip(reason=f"no recorded logs in {SHARED}"))],
)
def test_a_recorded_wrapper_holds_the_same_lines_as_the_plain_log(path: Path) -> None:
    family = path.name.split("_")[0]
    plain = [squeezed(line.text) for line in unwrap_all(read(path.with_name(FAMILIES[family])))]
    plain = [line for line in plain if line]
    found = [squeezed(line.text) for line in unwrap_all(read(path))]
    found = [line for line in found if line and not EXTRA.match(line)]
    if "journal_short" in path.name or "with_unit" in path.name:  # journalctl hides lines with control characters
        colour = re.compile(r"\x1b\[[0-9;]*m")
        pairs = list(zip([squeezed(colour.sub("", line)) for line in plain], found, strict=True))
        found = [want if re.fullmatch(r"\[\d+(?:\.\d+)?K?B blob data\]", have) else have for want, have in pairs]
        plain = [want for want, _ in pairs]
    if "journal" in path.name:  # two of the recordings replaced a path that is printed once
        found = [re.sub(r"\S+/(?:lib/\S+|site-packages)", "", line) for line in found]
        plain = [re.sub(r"\S+/(?:lib/\S+|site-packages)", "", line) for line in plain]
    if any(word in path.name for word in ("compose_v1", "supervisord", "replay")):
        # stdout and stderr came on their own ways, so in another order; the tool's last words may follow the server's
        found = [plain[-1] if line.startswith(plain[-1]) else line for line in found]
        found, plain = sorted(found), sorted(plain)
    if "supervisord" in path.name:  # three lines are missing in the file itself: two writers, one offset
        missing, added = Counter(plain) - Counter(found), Counter(found) - Counter(plain)
        assert (missing.total(), list(added)) == (3, ["█▄ ▄█"])
        return
    assert found == plain


@pytest.mark.parametrize("name", ["v0320_json_formatter_flag.log", "v0320_json_logging_config.log"])
def test_recorded_json_formatter_gives_message_and_fields(name: str) -> None:
    if not (path := SHARED / "recorded" / name).exists():
        pytest.skip(f"no {path}")
    unwrapper = Unwrapper()
    records = [(json.loads(line), unwrapper.unwrap(line)) for line in read(path) if line.startswith("{")]
    assert len(records) > 30
    for obj, line in records:
        assert line.text == obj["message"].removesuffix("\n")
        assert line.time == obj["asctime"]
        if line.fields is not None:
            assert line.fields["level"] == obj["levelname"]
            assert line.fields["name"] == obj["name"]
            assert line.fields["pid"] == obj["process"]
            assert line.fields["process"] == obj.get("vllm_process_name", obj["processName"])
    assert sum(line.fields is not None for _, line in records) == len(records)


NAMES = [
    {
        "time": "asctime",
        "level": "levelname",
        "name": "name",
        "process": "processName",
        "pid": "process",
        "text": "message",
    },
    {
        "time": "timestamp",
        "level": "level",
        "name": "logger",
        "process": "process_name",
        "pid": "pid",
        "text": "message",
    },
    {
        "time": "time",
        "level": "severity",
        "name": "logger_name",
        "pid": "process_id",
        "text": "msg",
        "file": "filename",
    },
    {"time": "@timestamp", "level": "lvl", "name": "logger", "text": "event", "file": "pathname", "line": "lineno"},
    {"time": "ts", "level": "level", "text": "msg", "file": "file", "line": "line"},
]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("level", ["INFO", "info", "Info"])
def test_json_formatters_under_the_names_people_use(names: dict[str, str], level: str) -> None:
    facts: dict[str, object] = {
        "time": "2026-11-29 16:14:26,361",
        "level": level,
        "name": "vllm.v1.core",
        "process": "EngineCore",
        "pid": 17,
        "file": "kv_cache_utils.py",
        "line": 1291,
        "text": MESSAGE,
    }
    line = Unwrapper().unwrap(_wrap.fields_json(facts, names))
    assert line.text == MESSAGE
    assert line.time == facts["time"]
    assert line.fields == {key: facts[key] for key in names if key != "text"} | {"level": "INFO"}


def test_json_formatter_inside_container_wrappers() -> None:
    inner = json.dumps({"levelname": "WARNING", "message": "two\nlines", "process": 3})
    for writer in (_wrap.cri, _wrap.docker_json_file, _wrap.compose_v2, _wrap.fluentbit, _wrap.journal_json):
        (line,) = [Unwrapper().unwrap(line) for line in writer([inner])]
        assert (line.text, line.fields) == ("two\nlines", {"level": "WARNING", "pid": 3})
        assert line.source == _wrap.SOURCES[writer]


TEXT_FORMATS = [
    ("2025-01-01 12:00:00,123 - vllm.v1.worker - INFO - ", {"name": "vllm.v1.worker"}),
    ("2025-01-01 12:00:00,123 - INFO - vllm.v1.worker - ", {"name": "vllm.v1.worker"}),
    ("2025-01-01 12:00:00.123 | INFO     | vllm.v1.worker:load:12 - ", {"name": "vllm.v1.worker", "line": 12}),
    ("2025-01-01 12:00:00,123 INFO vllm.v1.worker: ", {"name": "vllm.v1.worker"}),
    ("2025-01-01 12:00:00 [INFO] ", {}),
    ("[2025-01-01 12:00:00] INFO: ", {}),
    ("[INFO] 2025-01-01 12:00:00 vllm.worker: ", {"name": "vllm.worker"}),
    ("INFO:vllm.v1.worker:", {"name": "vllm.v1.worker"}),
    ("INFO 2025-12-07 23:50:27.902 on.py:62] ", {"file": "on.py", "line": 62}),
    ("2025-01-01 12:00:00 [info     ] ", {}),
    ("2025-01-01 12:00:00,123 [12345] [vllm.worker] [INFO] ", {"pid": 12345, "name": "vllm.worker"}),
    (
        "2025-08-11 16:12:02 gpu_worker.py:104 INFO:vllm.v1.worker p:475095 t:140373120079680: ",
        {"file": "gpu_worker.py", "line": 104, "name": "vllm.v1.worker", "pid": 475095},
    ),
    ("2025-01-01 12:00:00,123 [PID: 3613] [tid 7] INFO vllm.worker: ", {"pid": 3613, "name": "vllm.worker"}),
    ("2025-01-01 12:00:00,123 | INFO | pid=3613 | ", {"pid": 3613}),
    ("2025-01-01 12:00:00,123 INFO [gpu_worker.py:123] ", {"file": "gpu_worker.py", "line": 123}),
    ("2025-01-01 12:00:00,123 - MainProcess - INFO - ", None),
    ("2025-01-01T12:00:00.123Z INFO vllm.worker ", {"name": "vllm.worker"}),
    ("12:00:01 INFO ", {}),
    ("I1129 16:10:53.123456 12345 worker.py:12] ", {"pid": 12345, "file": "worker.py", "line": 12}),
]


@pytest.mark.parametrize(("head", "facts"), [case for case in TEXT_FORMATS if case[1] is not None])
@pytest.mark.parametrize(
    "message", [MESSAGE, "# GPU blocks: 7, # CPU blocks: 2", "torch.compile takes 8.76 s in total"]
)
def test_other_text_formats_give_message_and_fields(head: str, facts: dict[str, object], message: str) -> None:
    line = Unwrapper().unwrap(head + message)
    assert line.text == message
    assert line.fields is not None
    assert {key: value for key, value in line.fields.items() if key != "time"} == facts | {"level": "INFO"}


def test_a_time_in_front_of_uvicorn_leaves_uvicorns_prefix() -> None:
    for head in ("2026-11-29T16:06:02.686400638Z ", "2025-01-01 12:00:00 ", "[2025-01-01 12:00:00] "):
        assert Unwrapper().unwrap(head + "INFO:     Application startup complete.").text == PLAIN[9]


def test_logfmt() -> None:
    line = Unwrapper().unwrap(f'time=2025-01-01T00:00:00Z level=warn logger=vllm.x msg="{MESSAGE}, \\"so\\""')
    assert line.text == f'{MESSAGE}, "so"'
    assert line.fields == {"time": "2025-01-01T00:00:00Z", "level": "WARNING", "name": "vllm.x"}


def test_pieces_of_a_cut_line() -> None:
    long = PREFIX + "x" * 40_000
    lines = list(_wrap.cri([LINE, long, LINE]))
    assert [Unwrapper().unwrap(line).partial for line in lines] == [False, True, True, False, False]
    assert [line.text for line in unwrap_all(lines)] == [LINE, long, LINE]
    texts = (LINE + "\n", "abc", "def\n", "x\n")
    docker = [json.dumps({"log": text, "stream": "stdout", "time": "t"}) for text in texts]
    assert [line.text for line in unwrap_all(docker)] == [LINE, "abcdef", "x"]


def test_docker_keys_without_newlines_are_whole_lines() -> None:
    lines = [json.dumps({"log": text, "stream": "stdout", "time": "t"}) for text in (LINE, "abc")]
    assert [line.text for line in unwrap_all(lines)] == [LINE, "abc"]


def test_the_end_of_a_cut_line_is_not_read_as_a_wrapper() -> None:
    lines = [f"2026-11-29T16:06:02.6Z stdout P {PREFIX}counts ", "2026-11-29T16:06:02.6Z stdout F 3: four"]
    assert [line.text for line in unwrap_all(lines)] == [PREFIX + "counts 3: four"]


def test_rays_count_of_repetitions_goes_the_tag_stays() -> None:
    tag = "\x1b[36m(RayWorkerWrapper pid=1, ip=10.0.0.2)\x1b[0m "
    hint = " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable, see https://docs.ray.io/ (more))"
    for tail in ("", hint):
        line = f"{tag}{LINE}\x1b[32m [repeated 3x across cluster]{tail}\x1b[0m"
        assert Unwrapper().unwrap(line).text == tag + LINE
    assert Unwrapper().unwrap(f"(pid=7) {LINE} [repeated 3x across cluster]")[:3] == (LINE, None, "pid=7")


def test_journald_gives_every_process_of_a_server_the_same_source() -> None:
    lines = [f"Nov 29 16:10:53 gpu-host-1 vllm[{pid}]: {LINE}" for pid in (10, 11, 12)]
    assert len({line.source for line in unwrap_all(lines)}) == 1


def test_two_services_have_two_sources() -> None:
    lines = [f"vllm-{name}-1  | {LINE}" for name in "ab"]
    assert [line.source for line in unwrap_all(lines)] == ["vllm-a-1", "vllm-b-1"]


@pytest.mark.parametrize("prefix", ["[replica-7] ", "<gpu0> ", "replica=3; ", "node 12 | ", "#7 "])
def test_vllm_logging_prefix_comes_off(prefix: str) -> None:
    found = unwrap_all([prefix + LINE] * 3 + ["INFO:     Application startup complete."])
    assert [line.text for line in found[1:]] == [LINE, LINE, PLAIN[9]]
    assert {line.source for line in found} == {None}


def test_recorded_vllm_logging_prefix() -> None:
    if not (path := SHARED / "recorded" / "v0320_logging_prefix.log").exists():
        pytest.skip(f"no {path}")
    lines = read(path)
    assert [line.text for line in unwrap_all(lines)] == [line.removeprefix("[replica-7] ") for line in lines]


def test_an_unknown_wrapper_is_learned_from_vllms_own_prefix() -> None:
    lines = [f"site A, tick {tick}: {text}" for tick, text in enumerate([LINE, LINE, "Traceback", MESSAGE], 98)]
    assert [line.text for line in unwrap_all(lines)[1:]] == [LINE, "Traceback", MESSAGE]


@pytest.mark.parametrize("head", ["Loading shards: 14%|#4        | 1/7 [00:00<00:03, 1.56it/s]", "Processed prompts "])
def test_what_another_process_was_writing_is_no_wrapper(head: str) -> None:
    assert [line.text for line in unwrap_all([head + LINE] * 3)] == [head + LINE] * 3


def test_csv_export() -> None:
    quoted = LINE.replace('"', '""')
    lines = [f'2026-11-29T16:06:02Z,"gpu, 1","{text}"' for text in (quoted, 'a ""b"", c', "plain")]
    assert [line.text for line in unwrap_all(lines)] == [LINE, 'a "b", c', "plain"]


def test_notebook_saved_on_one_line() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": [LINE + "\n", "second\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "third"}},
        {"output_type": "error", "traceback": ["ValueError: x"]},
    ]
    book = {"nbformat": 4, "metadata": {}, "cells": [{"source": LINE}, {"outputs": outputs, "source": "print(1)"}]}
    assert Unwrapper().unwrap(json.dumps(book)).text.split("\n") == [LINE, "second", "third", "ValueError: x"]


def test_json_that_is_no_log_record_stays() -> None:
    for line in ('{"model_type": "llama", "text": "x"}', "{'log': 1}", "[1, 2]", '{"a": [', "{" * 100, "[" * 100_000):
        assert Unwrapper().unwrap(line).text == line


def test_lone_surrogates_from_json_can_be_encoded() -> None:
    Unwrapper().unwrap('{"log":"a\\ud800b\\n"}').text.encode()


_HEADS = st.sampled_from(
    [
        "",
        "{",
        "[",
        "(",
        "<13>",
        '{"log":"',
        '{"message":',
        "2026-11-29T16:06:02.6Z ",
        "2026-11-29T16:06:02Z stdout P ",
        "a-1  | ",
        "Nov 29 16:10:53 ",
        "Nov 29 16:10:53 h v[1]: ",
        "\x1b[36m",
        "[pod/a/b] ",
        "(pid=1) ",
        "3: ",
        "INFO",
        "INFO 2025-01-01 00:00:00 ",
        "\ufeff",
        '"',
        "  ",
        "MESSAGE=",
        "level=info msg=",
        ",",
        "5.9s 1 ",
        '{"MESSAGE":[1,2],"cells":[',
    ]
)
_ALPHABET = st.sampled_from([*list("{}[]()<>:|,.=-\"'\\ \t\r\n\x1b\x00\ufeff0123456789TZabINFOpid"), "é", "漢", "�"])


@settings(max_examples=400)
@given(st.lists(st.tuples(st.lists(_HEADS, max_size=4), st.text(max_size=60) | st.text(_ALPHABET)), max_size=6))
def test_no_text_raises(parts: list[tuple[list[str], str]]) -> None:
    unwrapper = Unwrapper()
    for heads, text in parts:
        line = unwrapper.unwrap("".join(heads) + text)
        assert isinstance(line.text, str)
        assert line.fields is None or set(line.fields) <= {"level", "name", "process", "pid", "time", "file", "line"}


@settings(max_examples=200)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=80), min_size=1, max_size=5),
    st.sampled_from(_wrap.WRITERS),
)
def test_any_vllm_message_comes_out_of_any_wrapper(messages: list[str], writer: _wrap.Writer) -> None:
    lines = [PREFIX + message for message in messages]
    assert [line.text for line in unwrap_all(list(writer(lines)))] == lines


def fold(lines: list[str], width: int) -> list[str]:
    return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]


LONG = [f"{PREFIX}line {number} " + "word " * (number % 60) + "end" for number in range(80)]


@pytest.mark.parametrize("width", [80, 100, 120, 157])
def test_a_log_cut_at_the_terminals_width_is_put_together(width: int) -> None:
    cut = fold(LONG, width)
    assert is_hard_wrapped(cut) == width
    joined = list(rejoin(cut, width))
    assert [text for _, text in joined] == LONG
    assert all(cut[first] == text[:width] for first, text in joined)


def test_blanks_that_copying_dropped_at_the_cut_come_back() -> None:
    cut = [piece.rstrip() for piece in fold(LONG, 80)]
    assert is_hard_wrapped(cut) == 80
    assert [text for _, text in rejoin(cut, 80)] == LONG


def test_wide_characters_count_two_columns() -> None:
    wide = [PREFIX + "显存" * 20, PREFIX + "显存" * 21, PREFIX + "显存" * 22, PREFIX + "显存" * 23]
    cut = []
    for line in wide:
        text = ""
        columns = 0
        for char in line:
            step = 1 if char.isascii() else 2
            if columns + step > 80:
                cut.append(text)
                text, columns = "", 0
            text, columns = text + char, columns + step
        cut.append(text)
    width = is_hard_wrapped(cut)
    assert width is not None
    assert [text for _, text in rejoin(cut, width)] == wide


def test_an_uncut_log_is_not_taken_for_a_cut_one() -> None:
    same = [PREFIX + "x" * 40] * 20
    assert is_hard_wrapped(same) is None
    assert is_hard_wrapped([]) is None
    assert is_hard_wrapped(["=" * 80] * 50) is None
    for path in logs("corpus/*.log", "recorded/v*.log", "recorded/w*.log"):
        assert is_hard_wrapped(sample(path)) is None, path.name


def test_a_logger_that_passes_on_an_error_stream_comes_off_with_its_name() -> None:
    """Model workers that redirect sys.stderr to a logger of that name; and a time that ends at a colon."""
    error = "ValueError: No available memory for the cache blocks."
    for head in (
        "2024-03-20 19:18:27 | ERROR | stderr | ",
        "2024-03-20 19:18:27,160 - stdout - INFO - ",
        "INFO:2025-10-06 08:41:13,160:",
        "ERROR:2025-10-06 08:41:13:",
    ):
        line = Unwrapper().unwrap(head + error)
        assert line.text == error, head
        assert line.fields is not None
        assert line.fields["level"] in ("ERROR", "INFO")
    assert Unwrapper().unwrap(f"2024-03-20 19:18:27 | ERROR | stderr | {LINE}").text == LINE
