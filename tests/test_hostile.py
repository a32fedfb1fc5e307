"""Hostile input: figures no machine has, lines made to cost, files that are none, outputs that fail. Nothing raises or hangs.

The lines that were made to cost are of a size at which anything but one pass over them would take minutes.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import vlogcheck
from vlogcheck import Expectation
from vlogcheck._encodings import Text
from vlogcheck._python_values import read_value
from vlogcheck._sizes import parse_size
from vlogcheck._tail import Tail
from vlogcheck.budget._flagvalues import FlagError
from vlogcheck.budget.answer import answer
from vlogcheck.budget.flags import parse_serve_flags
from vlogcheck.budget.model import ModelConfigError, load_model_config
from vlogcheck.files import LogFileError
from vlogcheck.lines import Splitter
from vlogcheck.live import watch
from vlogcheck.many import check_many
from vlogcheck.metrics_page import read_metrics
from vlogcheck.report import reporter
from vlogcheck.report.budget import render_json
from vlogcheck.scan import Parser
from vlogcheck.smi import SmiError, read_smi
from vlogcheck.template import all_templates
from vlogcheck.units import SizeError
from vlogcheck.wrappers import Unwrapper

from .conftest import ROOT

P = "INFO 02-20 00:01:02 [core.py:77] "
MODEL = ROOT / "fixtures/models/qwen3-0.6b/config.json"
SERVED = ROOT / "fixtures/logs/0.24.0/llama-load.log"
BANNER = (
    P + "Initializing a V1 LLM engine (v0.12.0) with config: model='m', dtype=torch.bfloat16, max_seq_len=4096,"
    " tensor_parallel_size=1,\n"
)
on_posix = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and signals of POSIX")


def judge(log: str | bytes, **options: Any) -> vlogcheck.Report:
    """Check a log and print it both ways; JSON must be what other languages read (no NaN, no Infinity)."""
    data = log.encode() if isinstance(log, str) else log
    for record in vlogcheck.parse(data):
        json.dumps(record.to_dict(), default=str, allow_nan=False)
    report = vlogcheck.check(data, **options)
    reporter("text")(report, colour=True, verbose=True)
    json.loads(reporter("json")(report), parse_constant=pytest.fail)
    return report


def command(*words: str | Path, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "vlogcheck", *map(str, words)], input=stdin, timeout=120, check=False,
        **{"capture_output": True, **options},
    )  # fmt: skip
    assert b"Traceback" not in (done.stderr or b""), done.stderr
    return done


# Figures


@pytest.mark.parametrize(
    "line",
    [
        "Available KV cache memory: 1e400 GiB",
        "Available KV cache memory: 1e-500 GiB",
        "Available KV cache memory: 0." + "1" * 5000 + " GiB",
        "Available KV cache memory: " + "9" * 400 + " GiB",
        "GPU KV cache size: " + "9" * 20 + " tokens",
        "GPU KV cache size: " + "9" * 5000 + " tokens",
        "Graph capturing finished in 1e999 secs, took 1.0 GiB",
        "Maximum concurrency for 4,096 tokens per request: " + "9" * 30 + "x",
    ],
)
def test_a_figure_no_machine_has_stays_unrecognised(line: str) -> None:
    seen: list[str] = []
    records = list(vlogcheck.parse((P + line + "\n").encode(), on_unrecognised=lambda told: seen.append(told.message)))
    assert not records
    assert seen == [line] or "concurrency" in line or "capturing" in line


@pytest.mark.parametrize("digits", ["0", "7", "99999999", "9" * 22, "9" * 5000])
@pytest.mark.parametrize(
    "tag",
    [
        "(EngineCore_DP{} pid=1)",
        "(Worker_TP{} pid=2)",
        "(Worker_PP{}_TP{} pid=3)",
        "(VllmWorker rank={} pid=4)",
        "(EngineCore pid={})",
    ],
)
def test_numbers_in_tags(tag: str, digits: str) -> None:
    log = BANNER + f"{tag.replace('{}', digits)} {P}Model loading took 15.4 GiB and 3.2 seconds\n"
    log += f"{tag.replace('{}', digits)} WARNING 02-20 00:01:02 [core.py:{digits}] GPU KV cache size: 100,000 tokens\n"
    report = judge(log, expect=Expectation(concurrency=16))
    assert report.startups[0].counts["WeightsLoaded"] == 1


NOTHING = ("0", "-1", "0.0", "-0", "9223372036854775808", "1e300")
LEDGER = (
    "Model loading took {} GiB and {} seconds",
    "Available KV cache memory: {} GiB",
    "GPU KV cache size: {} tokens",
    "Maximum concurrency for {} tokens per request: {}x",
    "# GPU blocks: {}, # CPU blocks: {}",
    "Setting attention block size to {} tokens to ensure that attention page size is >= mamba page size.",
    "Free memory on device ({}/{} GiB) on startup. Desired GPU memory utilization is ({}, {} GiB). Actual usage is {} GiB"
    " for weight, {} GiB for peak activation, {} GiB for non-torch memory, and {} GiB for CUDAGraph memory.",
    "non-default args: {'max_model_len': {}, 'block_size': {}, 'gpu_memory_utilization': {}, 'max_num_seqs': {},"
    " 'tensor_parallel_size': {}, 'kv_cache_memory_bytes': {}}",
)


@pytest.mark.parametrize("figure", NOTHING)
@pytest.mark.parametrize("model", [None, MODEL], ids=["log alone", "with a configuration"])
def test_ledgers_of_nothing(figure: str, model: Path | None) -> None:
    log = BANNER + "".join(P + line.replace("{}", figure) + "\n" for line in LEDGER)
    for expect in (
        Expectation(concurrency=16, context=4096),
        Expectation(tokens=5, weights="1GiB", kv_bytes_per_token=1),
    ):
        report = judge(log, expect=expect, model=model)
        assert not [s for s in report.skipped if "cannot be meant" in s.reason]
    vlogcheck.diff(log.encode(), (BANNER + P + "GPU KV cache size: 100,000 tokens\n").encode())


def test_random_figures_in_every_wording() -> None:
    chance = random.Random(7)
    for template in chance.sample(all_templates(), 120):
        message = "".join(
            piece.text if piece.kind == "literal" else chance.choice((*NOTHING, "nan", "x", "\u0661", "(", "9" * 400))
            for piece in template.parsed()
            if piece.kind in ("literal", "hole")
        )
        judge(BANNER + "\n".join(P + part for part in message.split("\n")) + "\n")


def test_a_version_of_too_many_digits() -> None:
    report = judge(BANNER.replace("0.12.0", "0." + "1" * 5000), model=MODEL)
    assert report.startups[0].version == "0." + "1" * 5000


# Lines that were made to cost

SIZE = 200_000
COSTLY = {
    "blanks behind a JSON string": '""' + " " * SIZE + "x KV cache",
    "ends of lines in source code": "INFO: " + "\\n" * (SIZE // 2) + 'KV cache"',
    "blanks behind a JSON pair": '"log": "KV cache"' + " " * SIZE + "x",
    "colours in front of no prefix": "x,KV cache " + "\x1b[0m" * (SIZE // 4),
    "colours in front of Ray's count": "KV cache across " + "\x1b[0m" * (SIZE // 4) + "[repeated 3x across cluster]",
    "process tags": "(A pid=1)" * (SIZE // 9) + " KV cache",
    "brackets nobody closes": P + "non-default args: {'a': " + "<" * SIZE + "]" * SIZE + "}",
    "nested arguments": P + "non-default args: " + "{'a':" * (SIZE // 5),
    "a sum": P + "non-default args: {'a': 1" + "+1" * (SIZE // 2) + "}",
    "three holes": P + "Load of 1 blocks for job 2" + " failed at block 3" * (SIZE // 18),
    "five holes": P + "Token matching for " + ": matched ( blocks), " * (SIZE // 21) + "x",
    "an optional hole": P + "cudaHostRegister rank=1" + " 1 GB in x" * (SIZE // 10),
    "a text inside another": "oom-kill:constraint=x,task=" * (SIZE // 27),
    "carriage returns": "KV cache\r" * (SIZE // 9),
    "prefixes": P * (SIZE // len(P)) + "KV cache",
    "nested JSON": '{"log":' * (SIZE // 7) + "KV cache",
    "an array of bytes": '{"MESSAGE":[' + "65," * (SIZE // 3) + "65]}",
}


@pytest.mark.parametrize("line", COSTLY.values(), ids=COSTLY)
def test_one_pass_over_a_line(line: str) -> None:
    assert judge(line + "\n").exit_code == 3


def test_pieces_of_two_streams_in_turn() -> None:
    time = "2025-01-01T00:00:00.123456789Z"
    log = f"{time} stdout P KV cache x\n{time} stderr P x\n{time} stderr F blocks x\n" * 10_000
    assert judge(log).exit_code == 3


def test_holes_take_as_little_as_they_can() -> None:
    template = next(t for t in all_templates() if t.text.startswith("Load of {blocks} blocks for job"))
    pattern = template.lines()[0]
    assert pattern.fullmatch("Load of 1 blocks for job 2 failed at block 3 failed at block 4: why: not")
    assert not pattern.fullmatch("Load of 1 blocks for job 2 failed at block 3")
    devices = next(t for t in all_templates() if t.text == "Init worker | {_} | hbm={devices}GiB[[ |{_}]]")
    assert devices.match("Init worker | a | b | hbm=[(1, 2)]GiB, 3GiB | x") == {"devices": "[(1, 2)]GiB, 3"}


# Bounds


def test_what_a_wrapper_cuts_is_held_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlogcheck._pieces._MOST_PARTIAL", 4)
    splitter = Splitter()
    texts = []
    for number in range(100):
        line = json.dumps(
            {"log": f"piece {number}", "time": "t", "logtag": "P", "kubernetes": {"pod_name": f"p{number}"}}
        )
        texts += [part.message for part in splitter.split(number, line)]
        assert splitter.unfinished <= 4
    texts += [part.message for part in splitter.flush(100)]
    assert sorted(texts) == sorted(f"piece {number}" for number in range(100))


def test_names_are_held_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlogcheck.wrappers._base._MOST_NAMES", 8)
    unwrapper = Unwrapper()
    for number in range(100):
        found = unwrapper.unwrap(f"service-{number}  | {P}hello")
        assert (found.source, found.text) == (f"service-{number}", P + "hello")
        assert len(unwrapper._state.names) <= 8


def test_a_crash_loop_is_counted_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlogcheck._collector.MOST", 10)
    tag = "(EngineCore pid={}) "
    log = "".join(
        tag.format(100 * n) + BANNER + tag.format(100 * n) + P + "Model loading took 15.4 GiB and 3.2 seconds\n"
        for n in range(1, 51)
    )
    report = judge(log)
    assert len(report.startups) <= 10
    assert report.to_dict()["startups_found"] == 50
    assert report.to_dict()["startups"][0]["number"] == 49
    assert "start-up 50 of 50" in str(report)


def test_servers_that_are_not_judged_make_the_verdict_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlogcheck._collector.MOST", 10)
    report = judge("".join(f"pod-{n}  | {P}GPU KV cache size: 100,000 tokens\n" for n in range(40)))
    assert report.exit_code == 3
    assert "servers more than the" in (report.inconclusive or "")


# Python's literals


def test_literals_are_read_as_python_reads_them() -> None:
    chance = random.Random(3)
    leaves = (
        0,
        1,
        -5,
        10**20,
        3.5,
        -0.0,
        1e300,
        None,
        True,
        "",
        "it's",
        'q"q',
        "\n\t\\",
        "\x00\x7f",
        "é\u2028",
        "a,b:[(",
    )

    def made(depth: int = 0) -> Any:
        kind = chance.randrange(5 if depth < 4 else 2)
        if kind < 2:
            return chance.choice(leaves)
        inner = [made(depth + 1) for _ in range(chance.randrange(4))]
        return inner if kind == 2 else tuple(inner) if kind == 3 else {f"k{i}": value for i, value in enumerate(inner)}

    for _ in range(500):
        text = repr(made())
        assert repr(read_value(text)) == text
        cut = text[: chance.randrange(len(text))]
        try:
            expected = repr(ast.literal_eval(cut))
        except (ValueError, SyntaxError):
            with pytest.raises((ValueError, TypeError)):
                read_value(cut)
        else:
            assert repr(read_value(cut)) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "f()", "1 2", "[1 2]", "[,]", "{1,}", "{1: }", "{'a': 1: 2}",
             "(]", "]", "1+1", "__import__('os')", "[" * 200 + "]" * 200]
)  # fmt: skip
def test_what_is_no_literal(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_value(text)


def test_threads_read_at_the_same_time() -> None:
    data = SERVED.read_bytes()
    expected = [record.to_dict() for record in vlogcheck.parse(data)]
    wrong: list[Any] = []

    def work() -> None:
        try:
            for _ in range(3):
                if [record.to_dict() for record in vlogcheck.parse(data)] != expected:
                    wrong.append("other records")
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# The library in wrong hands


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind(kind: type) -> None:
    data = SERVED.read_bytes()
    parser = Parser()
    fed = parser.feed(kind(data)) + parser.close()
    assert [r.to_dict() for r in fed] == [r.to_dict() for r in vlogcheck.parse(data)]
    assert vlogcheck.check(kind(data)).verdict == vlogcheck.check(data).verdict
    with pytest.raises(ValueError, match="closed"):
        parser.feed(data)


def test_wrong_types_are_named() -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        Parser().feed("text")  # type: ignore[arg-type]
    for log in (None, 5, object()):
        with pytest.raises(TypeError, match="path, bytes or an open binary file"):
            vlogcheck.check(log)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Expectation"):
        vlogcheck.check(b"", {"concurrency": 5})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="check's code"):
        vlogcheck.check(b"", select=[5])  # type: ignore[list-item]
    with pytest.raises(ModelConfigError, match="path or a mapping"):
        vlogcheck.check(b"", model=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="context"):
        vlogcheck.diff(b"", b"", context=0)
    with pytest.raises(ValueError, match="gpu_memory_utilization"):
        Expectation(gpu_memory_utilization="x")  # type: ignore[arg-type]
    assert vlogcheck.check(b"", select="VL001").findings[0].code == "VL001"


@pytest.mark.parametrize("size", ["9" * 5000, "9" * 5000 + "GiB", "1." + "9" * 5000 + "GiB", "9999999999TiB", "١٢GiB"])
def test_sizes_no_memory_has(size: str) -> None:
    with pytest.raises(SizeError) as raised:
        parse_size(size)
    assert len(str(raised.value)) < 250


# Files that a log or an option names


@on_posix
def test_a_model_path_in_the_log_is_read_only_where_it_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = BANNER + P + "GPU KV cache size: 100,000 tokens\n"
    os.mkfifo(tmp_path / "config.json")  # opening it would wait for ever
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.json").write_bytes(MODEL.read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for path in (str(tmp_path), "/dev", "/dev/stdin", "~", "~root", "$HOME", "$(id)", "a\0b", "/" + "a/" * 3000):
        report = judge(served.replace("model='m'", f"model={path!r}"))
        assert report.contexts[0].model is None, path
    here = judge(served.replace("model='m'", f"model={str(tmp_path / 'home')!r}"))
    assert here.contexts[0].model is not None


def test_configurations_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlogcheck.budget.model._LARGEST_FILE", 1000)
    (tmp_path / "config.json").write_text("{" + " " * 1000 + "}")
    with pytest.raises(ModelConfigError, match="larger than"):
        load_model_config(tmp_path)
    monkeypatch.undo()
    deep: dict[str, Any] = {"model_type": "qwen3"}
    for _ in range(5000):
        deep = {"thinker_config": deep}
    with pytest.raises(ModelConfigError, match="nested too deeply"):
        load_model_config(deep)


@pytest.mark.parametrize("flag", ["-tp", "-pp", "-dp", "-dcp"])
def test_ranks_nobody_has(flag: str) -> None:
    with pytest.raises(FlagError, match="cannot be meant"):
        parse_serve_flags([flag, "100000000"])


@pytest.mark.parametrize(
    "changed",
    [
        {"num_hidden_layers": 10**9},
        {"num_nextn_predict_layers": 10**6},
        {"layer_types": ["full_attention"] * 200_000},
        {"model_type": "mamba", "architectures": ["MambaForCausalLM"], "intermediate_size": 0, "state_size": 16},
        {"model_type": "mamba", "architectures": ["MambaForCausalLM"], "time_step_rank": [1]},
    ],
    ids=["layers", "modules", "layer types", "no state", "a list for a number"],
)
def test_configurations_of_no_model(changed: dict[str, Any]) -> None:
    config = {**json.loads(MODEL.read_text()), **changed}
    flags = parse_serve_flags(["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}'])
    try:
        budget = answer(load_model_config(config), flags, name="x", available=parse_size("60GiB"))
    except ModelConfigError:
        return
    else:  # no error for this one, then: but it came to an end, and can be printed
        json.loads(render_json([budget]), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "page",
    [
        b'{"card0":' * 50_000,
        b'{"card0":{"VRAM Total Memory (B)":"' + b"9" * 5000 + b'","VRAM Total Used Memory (B)":"1"}}',
        b"index, memory.total [MiB], memory.used [MiB]\n" + b"9" * 5000 + b", 1 MiB, 1 MiB\n",
        b"index, memory.total [MiB], memory.used [MiB]\n0, " + b"9" * 30 + b" MiB, 1 MiB\n",
        b"|  0  x" + b" " * 300_000,
        b"|  0 x " * 50_000,
    ],
)
def test_readings_of_no_card(page: bytes) -> None:
    with pytest.raises(SmiError) as raised:
        read_smi(page)
    assert len(str(raised.value)) < 400


def test_metrics_of_no_server() -> None:
    page = (
        'vllm:num_requests_running{engine="' + "9" * 5000 + '"} 1e308\nvllm:num_requests_waiting NaN\n'
        'vllm:cache_config_info{engine="0",num_gpu_blocks="' + "9" * 50 + '",block_size="0",'
        'kv_cache_max_concurrency="nan",gpu_memory_utilization="-inf"} 1\n'
    )
    (engine,) = read_metrics(page.encode()).engines
    assert (engine.engine, engine.running, engine.num_gpu_blocks, engine.kv_cache_max_concurrency) == (
        0,
        None,
        None,
        None,
    )
    report = vlogcheck.check(SERVED, metrics=page.encode())
    json.loads(reporter("json")(report), parse_constant=pytest.fail)
    with pytest.raises(ValueError, match="no metrics page") as raised:
        read_metrics(b"vllm:a{" + b'"' * 100_000)
    assert len(str(raised.value)) < 400


# Output


@on_posix
def test_the_verdict_outlives_its_reader() -> None:
    words = [sys.executable, "-m", "vlogcheck", str(SERVED), "--expect-concurrency", "1e9"]
    for target in ("| true; exit ${PIPESTATUS[0]}", ">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["bash", "-c", f'"$@" {target}', "bash", *words], capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 1, target
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("words", [(SERVED,), ("parse", SERVED), ("list", "checks"), ("--help",), ("budget", MODEL)])
def test_a_full_disk_is_said(words: tuple[str | Path, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = command(*words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode().strip().endswith(os.strerror(28))


def test_what_a_log_says_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    name = "m\x1b]0;title\x07\x9b2J\x08\u202ename"
    log.write_text(BANNER.replace("model='m'", f"model='{name}'") + P + "GPU KV cache size: 100,000 tokens\n")
    out = command(log).stdout.decode()
    assert not {"\x07", "\x08", "\x9b", "\u202e"} & set(out)
    assert "\x1b" not in out


def test_text_that_the_output_cannot_hold(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    cut = '["INFO 02-20 00:01:02 [core.py:77] Free KV cache memory \\ud800 1 GiB\\n\n'
    log.write_text(cut + BANNER.replace("'m'", "'é\U0001f600'"), "utf-8")
    for encoding in ("ascii", "utf-8"):
        env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        done = command(log, "--format", "json", env=env)
        assert json.loads(done.stdout)["startups"][0]["model"] == "é\U0001f600"
        assert command("parse", "--unrecognised", log, env=env).returncode == 0
        assert command(log, env=env).returncode == done.returncode == 3


@on_posix
def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/serve\xff.log"
    with open(name, "wb") as file:
        file.write(SERVED.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "vlogcheck", name, "--format", "json"], capture_output=True, timeout=120, check=False
    )
    assert json.loads(done.stdout)["path"].endswith("serve\udcff.log")


# Many, follow, run


def test_wrong_arguments_for_many_logs_are_said_once() -> None:
    done = command(*[SERVED] * 1, *[ROOT / "fixtures/logs/0.24.0"], "--model-config", "missing.json")
    assert done.returncode == 2
    assert done.stderr.decode().strip() == "vlogcheck: no model configuration at missing.json"


def test_a_worker_that_dies_ends_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    import concurrent.futures
    from concurrent.futures.process import BrokenProcessPool

    class Dying:
        def __init__(self, *_: Any) -> None: ...

        def map(self, work: Any, logs: list[tuple[str, ...]], chunksize: int) -> Any:
            yield from ()
            raise BrokenProcessPool

        def shutdown(self, **_: Any) -> None: ...

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Dying)
    summaries = list(check_many([("a",), ("b",)], {}, jobs=2))
    assert [(s.verdict, s.exit_code) for s in summaries] == [("error", 2)] * 2
    assert "worker" in str(summaries[0].message)


def test_a_log_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(100))
    done = command(archive, SERVED)
    assert done.returncode == 2
    assert b"zip archive" in done.stderr
    assert str(SERVED) in done.stdout.decode()


@on_posix
def test_following_a_pipe_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert watch(tmp_path / "pipe", timeout=0.1).exit_code == 3


def test_following_a_compressed_file(tmp_path: Path) -> None:
    (tmp_path / "serve.log").write_bytes(gzip.compress(SERVED.read_bytes()))
    with pytest.raises(LogFileError, match="compressed"):
        next(iter(Tail(tmp_path / "serve.log")))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_following_what_windows_writes(encoding: str) -> None:
    data = SERVED.read_text("utf-8").encode(encoding)
    assert watch(io.BytesIO(data), timeout=60).verdict == watch(io.BytesIO(SERVED.read_bytes()), timeout=60).verdict
    text = Text()
    pieces = b"".join(text.utf8(data[at : at + 5]) for at in range(0, len(data), 5))
    assert pieces.decode() == SERVED.read_text("utf-8")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_server_is_not_left_behind(tmp_path: Path) -> None:
    done = command("run", "--keep", "--log", "/dev/full", "--", "sleep", "60")
    assert (done.returncode, b"no regular file" in done.stderr) == (2, True)
    script = f"echo $$ > {tmp_path / 'pid'}; cat {SERVED}; exec sleep 60"
    with open("/dev/full", "wb") as full:
        done = command("run", "--", "sh", "-c", script, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_halves_of_characters_in_a_cut_document() -> None:
    seen: list[str] = []
    log = '["INFO 02-20 00:01:02 [core.py:77] Free KV cache memory \\ud800 \\ud83d\\ude00 1 GiB\\n\n'
    list(vlogcheck.parse(log.encode(), on_unrecognised=lambda line: seen.append(line.message)))
    assert seen == ["Free KV cache memory \ufffd \U0001f600 1 GiB"]
