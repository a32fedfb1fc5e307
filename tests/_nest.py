"""More writers, for wrappers in wrappers: what a server's own logging makes of its lines, and what is put around the others.

As in `_wrap`, every writer takes the lines of a log and gives those of the file.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator

from . import _wrap
from ._wrap import Writer

_ESC = r"(?:\x1b\[[0-9;]*m)*"
_LINE = re.compile(
    rf"{_ESC}(?:\((?P<process>[\w. ]+?) pid=(?P<pid>\d+)\){_ESC} )?{_ESC}(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    rf"{_ESC} {_ESC}(?P<time>\d\d-\d\d \d\d:\d\d:\d\d){_ESC} {_ESC}\[(?P<file>[\w./]+)\.py:(?P<number>\d+)\]{_ESC} {_ESC}"
    r"(?P<message>(?!.*(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:).*)",
    re.S,
)
"""A line of vLLM's logger. With another one glued to it, it is left alone: a formatter writes a line for each."""


def _named(name: str, writer: Writer) -> Writer:
    writer.__name__ = name
    return writer


def _formatter(name: str, write: Callable[[re.Match[str]], str]) -> Writer:
    """vLLM's logger with another formatter. What others print into the same stream stays as it is."""

    def writer(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            found = _LINE.fullmatch(line)
            yield write(found) if found else line

    return _named(name, writer)


def _prefixed(prefix: str, *, behind_tag: bool = False) -> Writer:
    """VLLM_LOGGING_PREFIX: behind the process tag or in front of it, by release."""

    def writer(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            found = _LINE.fullmatch(line)
            at = found.start("level") if found and behind_tag else 0
            yield line[:at] + prefix + line[at:] if found else line

    return _named(f"prefix {prefix}{'behind the tag' if behind_tag else ''}", writer)


def head(text: str) -> Writer:
    """A wrapper nobody has described; `#` counts lines."""

    def writer(lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            yield text.replace("#", str(number)) + line

    return _named(f"head {text}", writer)


def plain(lines: Iterable[str]) -> Iterator[str]:
    yield from lines


def _python_json_logger(found: re.Match[str]) -> str:
    return json.dumps(
        {"asctime": f"2026-{found['time']},123", "levelname": found["level"], "name": f"vllm.{found['file']}",
         "processName": found["process"] or "MainProcess", "process": int(found["pid"] or 1), "message": found["message"]}
    )  # fmt: skip


def _logfmt(found: re.Match[str]) -> str:
    message = json.dumps(found["message"], ensure_ascii=False)
    return f"time=2026-11-29T16:00:00Z level={found['level'].lower()} logger=vllm.{found['file']} msg={message}"


INNER: tuple[Writer, ...] = (
    plain,
    _prefixed("[replica-7] "),
    _prefixed("gpu0: ", behind_tag=True),
    _formatter("python-json-logger", _python_json_logger),
    _formatter(
        "short JSON", lambda m: json.dumps({"ts": 1795968362.5, "level": m["level"].lower(), "msg": m["message"]})
    ),
    _formatter("text", lambda m: f"2026-{m['time']},123 - vllm.{m['file']} - {m['level']} - {m['message']}"),
    _formatter(
        "loguru", lambda m: f"2026-{m['time']}.123 | {m['level']:<8} | vllm.a:load:{m['number']} - {m['message']}"
    ),
    _formatter("logfmt", _logfmt),
)
"""What the server itself may write."""


def docker_cut(lines: Iterable[str], size: int = 16384) -> Iterator[str]:
    """Docker's json-file cuts a line into records of 16 KiB."""
    for number, line in enumerate(lines):
        text = line + "\n"
        for at in range(0, len(text), size):
            yield json.dumps({"log": text[at : at + size], "stream": "stderr", "time": f"{_wrap._stamp(number)}Z"})


def notebook_on_one_line(lines: Iterable[str]) -> Iterator[str]:
    output = {"output_type": "stream", "name": "stdout", "text": [f"{line}\n" for line in lines]}
    yield json.dumps({"cells": [{"cell_type": "code", "source": ["!vllm serve"], "outputs": [output]}], "nbformat": 4})


def level_added(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield json.dumps({"level": "info", "ts": 1795968362.5 + number, "msg": line, "host": "gpu-host-1"})


def supervisor_json(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield json.dumps(
            {
                "asctime": "2026-11-29 16:00:00,123",
                "name": "launcher",
                "levelname": "INFO",
                "message": line,
                "process": 7,
            }
        )


def csv_export(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        row = io.StringIO()
        csv.writer(row, lineterminator="").writerow([f"{_wrap._stamp(number)}Z", "gpu, 1", line])
        yield row.getvalue()


MIDDLE: tuple[Writer, ...] = (
    plain, docker_cut, _wrap.cri, _wrap.compose_v2, _wrap.compose_colour_t, _wrap.kubectl_prefix_timestamps, _wrap.stern,
    _wrap.srun, _wrap.ray_actor,
)  # fmt: skip
"""What runs it."""

OUTER: tuple[Writer, ...] = (
    _wrap.fluentbit, _wrap.datadog, _wrap.gcp, _wrap.journal_json, _wrap.journal_short, _wrap.github_actions, _wrap.ts_default,
    _wrap.ts_since_start, _wrap.syslog_5424, _wrap.cri, _wrap.docker_json_file, _wrap.notebook, notebook_on_one_line,
    level_added, supervisor_json, csv_export, head("[node-7] "), head("node-7 | vllm | "), head("site A, tick #: "),
)  # fmt: skip
"""What collects its output."""
