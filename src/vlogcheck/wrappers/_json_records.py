"""What a JSON object says of a line: Docker, journald, log shippers, logging formatters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._base import UVICORN, VLLM_START, Fields, Layer, State, clean, without_newline
from ._formats import level_name

__all__ = ["layer_of"]


Object = Mapping[str, Any]
_RAW_KEYS = ("log", "textPayload", "MESSAGE", "@message", "_raw", "_msg", "short_message", "full_message")
"""Keys that hold the line as the process wrote it."""
_MESSAGE_KEYS = ("message", "msg", "event", "body", "Body")
"""Keys that hold either that or the bare message of a logging formatter."""
_WEAK_KEYS = ("text", "line", "data", "content", "payload", "entry")
"""Keys that mean a log line only beside a time."""
_INNER_KEYS = ("jsonPayload", "log", "message", "msg", "event", "body", "record", "fields", "data", "payload", "result")
"""Keys whose value may be the whole record as an object."""
_TIME_KEYS = (
    "asctime", "timestamp", "time", "@timestamp", "ts", "datetime", "date", "_time", "eventTime", "created", "t",
    "__REALTIME_TIMESTAMP", "timeUnixNano", "ingestionTime", "Timestamp", "timestamp_ns",
)  # fmt: skip
_LEVEL_KEYS = (
    "levelname", "level", "severity", "lvl", "log_level", "loglevel", "levelName", "log.level", "severityText",
    "level_name", "SeverityText",
)  # fmt: skip
_LOGGER_KEYS = ("name", "logger", "logger_name", "loggerName", "log.logger")
_PROCESS_KEYS = ("vllm_process_name", "processName", "process_name", "process.name", "process")
_PID_KEYS = ("process", "pid", "process_id", "processId", "process.pid", "process_pid")
_FILE_KEYS = ("filename", "file", "pathname", "fileinfo", "file_name", "file.name", "caller", "module")
_LINE_KEYS = ("lineno", "line", "line_number", "lineNumber", "line_no", "file.line")
_PYTHON_LEVELS = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}
_DOCKER_KEYS = {"log", "stream", "time", "attrs"}
_DOCKER_PIECE = 16384
"""Docker cuts longer lines into pieces of this many bytes (moby, daemon/logger/copier.go)."""
_MAX_DEPTH = 4


def _first(obj: Object, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = obj.get(key)
        if value is not None:
            return value
    return None


def _text(value: Any) -> str | None:
    """Write a scalar, or an object's telling member, as text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, dict):
        inner = _first(value, ("name", "repr", "stringValue", "iso"))
        return clean(inner) if isinstance(inner, str) else None
    return None


def _bytes(value: list[Any]) -> str | None:
    """Decode an array of byte numbers: how journald writes a message that is not clean text."""
    if all(isinstance(item, int) and 0 <= item <= 255 for item in value):
        return bytes(value).decode("utf-8", "replace")
    return None


def _level(obj: Object) -> str | None:
    for key in _LEVEL_KEYS:
        value = obj.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            if value in _PYTHON_LEVELS:
                return _PYTHON_LEVELS[value]
        elif (word := _text(value)) and (level := level_name(word)):
            return level
    log = obj.get("log")
    return _level(log) if isinstance(log, dict) else None


def _fields(obj: Object) -> Fields | None:
    """Collect the record's own facts, when a logging formatter wrote it: there is a level."""
    level = _level(obj)
    if level is None:
        return None
    fields: dict[str, str | int] = {"level": level}
    log = obj.get("log")
    logger = _first(obj, _LOGGER_KEYS) or (log.get("logger") if isinstance(log, dict) else None)
    if isinstance(logger, str):
        fields["name"] = clean(logger)
    for key in _PROCESS_KEYS:
        if isinstance(value := obj.get(key), dict):
            value = value.get("name")
        if isinstance(value, str) and not value.isdigit():
            fields["process"] = clean(value)
            break
    for key in _PID_KEYS:
        if isinstance(value := obj.get(key), dict):
            value = value.get("pid", value.get("id"))
        if isinstance(value, int) and not isinstance(value, bool):
            fields["pid"] = value
            break
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
            fields["pid"] = int(value)
            break
    if (time := _text(_first(obj, _TIME_KEYS))) is not None:
        fields["time"] = time
    file = _text(_first(obj, _FILE_KEYS))
    line = _first(obj, _LINE_KEYS)
    if file is not None:
        name, colon, number = file.rpartition(":")
        if colon and number.isascii() and number.isdigit() and len(number) < 9:
            file, line = name, int(number)
        fields["file"] = file
    if isinstance(line, int) and not isinstance(line, bool):
        fields["line"] = line
    return fields


def _source(obj: Object) -> str | None:
    """Pod and container, container, unit, log stream or host: the most telling that is there."""
    kubernetes = obj.get("kubernetes")
    resource = obj.get("resource")
    labels = obj.get("labels", obj.get("stream"))
    for place in (kubernetes, resource.get("labels") if isinstance(resource, dict) else None, labels, obj):
        if not isinstance(place, dict):
            continue
        pod = _text(_first(place, ("pod_name", "podName", "pod", "k8s.pod.name")))
        container = _text(_first(place, ("container_name", "containerName", "container", "k8s.container.name")))
        if pod:
            return f"{pod}/{container}" if container else pod
        if container:
            return container.lstrip("/")
    found = _first(obj, ("logStreamName", "log_stream", "logStream", "container_id", "service", "hostname", "host"))
    return _text(found)


def _journal(obj: Object) -> Layer | None:
    message = obj["MESSAGE"]
    if isinstance(message, list):
        message = _bytes(message)
    if not isinstance(message, str):
        return None
    ident = obj.get("SYSLOG_IDENTIFIER") or obj.get("_SYSTEMD_UNIT") or obj.get("_COMM")
    source = " ".join(part for part in (obj.get("_HOSTNAME"), ident) if isinstance(part, str))
    container = obj.get("CONTAINER_NAME")
    return Layer(
        without_newline(clean(message)),
        _text(_first(obj, ("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"))),
        clean(container) if isinstance(container, str) else clean(source) or None,
        # journald ends an entry at LineMax (48 KiB) as well; systemd, systemd.journal-fields(7).
        partial=obj.get("CONTAINER_PARTIAL_MESSAGE") == "true" or obj.get("_LINE_BREAK") == "line-max",
    )


def _docker_partial(obj: Object, text: str, state: State) -> bool:
    """Docker ends a whole line with a newline; shippers that copy its keys often do not."""
    if obj.get("logtag") == "P" or obj.get("_p") == "P" or obj.get("partial_message") in ("true", True):
        return True
    if not obj.keys() <= _DOCKER_KEYS:
        return False
    if text.endswith("\n"):
        state.docker_newlines = True
        return False
    return state.docker_newlines or len(text.encode("utf-8", "replace")) >= _DOCKER_PIECE


def _own_record(obj: Object, key: str, text: str, state: State) -> tuple[bool, Fields | None, tuple[str, ...] | None]:
    """Return what `Layer` says of a record that a logging formatter wrote: nothing where its message is a line."""
    shape = tuple(obj)
    if VLLM_START.match(text):
        state.is_carrier(shape)
    elif not (text.startswith("{") or UVICORN.match(text) or key in _WEAK_KEYS or state.carries_lines(shape)):
        return False, _fields(obj), shape
    return False, None, shape


def layer_of(obj: Object, state: State, depth: int = 0) -> Layer | None:
    """Return what an object holds of a line, None where it is no record of one."""
    if "MESSAGE" in obj:
        return _journal(obj)
    time = _text(_first(obj, _TIME_KEYS))
    stream = obj.get("stream", obj.get("stream_name"))
    stream = stream if stream in ("stdout", "stderr") else None
    for key in _RAW_KEYS:
        if isinstance(value := obj.get(key), str):
            text = clean(value)
            partial = _docker_partial(obj, text, state)
            return Layer(without_newline(text), time, _source(obj), stream, partial)
    keys = _MESSAGE_KEYS + _WEAK_KEYS if time is not None or stream is not None else _MESSAGE_KEYS
    for key in keys:
        value = obj.get(key)
        if isinstance(value, dict) and isinstance(value.get("stringValue"), str):
            value = value["stringValue"]
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            value = "\n".join(value)
        if isinstance(value, str):
            text = without_newline(clean(value))
            return Layer(text, time, _source(obj), stream, *_own_record(obj, key, text, state))
    if depth < _MAX_DEPTH:
        for key in _INNER_KEYS:
            if isinstance(value := obj.get(key), dict) and (layer := layer_of(value, state, depth + 1)):
                return layer._replace(time=layer.time or time, source=layer.source or _source(obj))
    return None
