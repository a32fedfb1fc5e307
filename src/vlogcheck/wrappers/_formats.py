"""Lines of a logging format other than vLLM's: the fields in front of the message, in any order.

Read from the left, field by field, as long as something known follows: time, level, logger name, `file:line`, process.
A line counts as such a record only with a level and one more thing that log formats have, so prose is left alone.
"""

from __future__ import annotations

import re

from vlogcheck._copied import unescape_json
from vlogcheck._lazy import pattern

from ._base import LETTERS, UVICORN, VLLM_PREFIX, VLLM_START, Layer, Registration, State

LEVELS = {
    "trace": "DEBUG",
    "debug": "DEBUG",
    "info": "INFO",
    "information": "INFO",
    "notice": "INFO",
    "success": "INFO",
    "warn": "WARNING",
    "warning": "WARNING",
    "err": "ERROR",
    "error": "ERROR",
    "crit": "CRITICAL",
    "critical": "CRITICAL",
    "fatal": "CRITICAL",
}
"""How the five levels of Python's logging are spelled elsewhere."""

_LEVEL_STARTS = ("trace", "debug", "info", "notice", "success", "warn", "err", "crit", "fatal")
_BRACKETS = ("[", "(", "<")
_OPEN, _CLOSE = r"[\[(<]?", r"[\])>]?"
_ANY_ESC = r"(?:\x1b\[[0-9;]*m)*"
_TIME = pattern(
    rf"{_ANY_ESC}{_OPEN}(?P<time>\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z| ?[+-]\d\d:?\d\d)?"
    rf"|\d\d[/-]\d\d(?:[/-]\d\d)? \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?){_CLOSE}{_ANY_ESC}(?!\w|:\d)"
)
_LEVEL = pattern(
    rf"{_ANY_ESC}{_OPEN}(?P<level>TRACE|DEBUG|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|CRIT(?:ICAL)?|FATAL"
    rf"|Debug|Info|Warn(?:ing)?|Error|Critical|Fatal|debug|info|notice|warn(?:ing)?|error|critical|fatal)"
    rf"(?: *[\])>])?{_ANY_ESC}(?!\w)"
)
_FILE = pattern(rf"{_ANY_ESC}{_OPEN}(?P<file>[\w./\-]+\.(?:py|rs|cc|cpp|go)):(?P<line>\d+){_CLOSE}{_ANY_ESC}(?!\w)")
_COLON = rf"{_ANY_ESC}:{_ANY_ESC}"
_FUNC = pattern(
    rf"{_ANY_ESC}(?P<name>[A-Za-z_]\w*(?:\.\w+)*){_COLON}(?:[\w.]+|<\w+>){_COLON}(?P<line>\d+){_ANY_ESC}(?= [-|] )"
)
_NAME = pattern(
    rf"{_ANY_ESC}(?P<open>[\[(<])?(?P<name>vllm(?:_\w+)?(?:\.\w+)*|uvicorn(?:\.\w+)*|root|__main__|std(?:err|out)|[a-z_]\w*(?:\.[A-Za-z_]\w*)+)"
    rf"(?P<close>[\])>])?{_ANY_ESC}(?= *[-|:\])] ?|[:\t]|(?P<weak> ))"
)
_PROCESS = pattern(
    r"[\[(](?:(?P<pid>\d{1,7})|(?P<process>Main(?:Process|Thread)|[A-Za-z]+(?:Process|Thread)-\d+))[\])](?!\w)"
)
_PID = pattern(r"(?P<pid>\d{1,7})(?= [-|] )")
_KEYED = pattern(
    r"(?:(?:p|pid)[:=](?P<pid>\d{1,7})|(?:t|tid|thread)[:=]\d{1,20}"
    r"|[\[(](?i:pid[:= ] ?(?P<pid0>\d{1,7})|tid[:= ] ?\d{1,20})[\])])"
    r"(?=[ :|,\t])"
)
"""A process or a thread that says so: `p:475097 t:140589927618368:`, `[PID: 31]`, `tid=7`."""
_SEPARATOR = pattern(r"(?: +[-–|:] ?| *[|:;,] ?| +|\t+)")
_EXCEPTION = pattern(r"(?:Error|Exception|Warning|Interrupt)$")
_KLOG = pattern(
    r"(?P<level>[IWEFD])(?P<time>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d+) (?P<file>[\w./\-]+):(?P<line>\d+)\] ?"
)
_KLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "D": "DEBUG"}
_RUNTIME_TIME = pattern(r"T.*[.,]\d{6}")
_MAX_FIELDS = 8
_MODEL_SERVER = pattern(
    r"(?:PyProcess +(?:- +)?)?(?P<worker>W-\d+-\S{1,120}?)-(?P<stream>stdout|stderr)(?: MODEL_LOG - |: )"
)
"""The worker of TorchServe (`W-9000-name_1.0-stdout MODEL_LOG - `) and of DJL (`PyProcess W-91-name-stdout: `)."""
_COMPONENT = pattern(r"\([A-Z]\w{2,30}\) ")
_INNER = 200
"""Characters of a record in which the prefix of a line that a supervisor passes on is looked for."""


def level_name(word: str) -> str | None:
    """Name the level of Python's logging a word stands for."""
    return LEVELS.get(word.strip().lower())


def _name_at(text: str, pos: int) -> re.Match[str] | None:
    found = _NAME.match(text, pos)
    if not found or _EXCEPTION.search(found["name"]):
        return None
    if found["weak"] is not None and not found["open"] and not found["name"].startswith(("vllm.", "uvicorn.")):
        return None  # "torch.compile takes 8.76 s": the first word of a message
    if bool(found["open"]) != bool(found["close"]):
        return None
    return found


def logging_format(text: str) -> Layer | None:
    """Read message and fields of a line written with another logging format, None when it is not clearly one."""
    fields: dict[str, str | int] = {}
    pos = 0
    shout = False
    for _ in range(_MAX_FIELDS):
        found: re.Match[str] | None = None
        if "time" not in fields and (found := _TIME.match(text, pos)):
            fields["time"] = found["time"]
        elif "level" not in fields and (found := _LEVEL.match(text, pos)):
            fields["level"] = LEVELS[found["level"].lower()]
            shout = found["level"].isupper() and "\x1b" not in found[0]
            if UVICORN.match(text[pos:]):
                return None
        elif "file" not in fields and (found := _FILE.match(text, pos)):
            fields["file"], fields["line"] = found["file"], int(found["line"])
        elif "name" not in fields and (found := _FUNC.match(text, pos)):
            fields["name"], fields["line"] = found["name"], int(found["line"])
        elif not fields.keys() & {"pid", "process"} and (found := _PROCESS.match(text, pos)):
            key = "pid" if found["pid"] else "process"
            fields[key] = int(found["pid"]) if found["pid"] else found["process"]
        elif not fields.keys() & {"pid", "process"} and (found := _PID.match(text, pos)):
            fields["pid"] = int(found["pid"])
        elif fields and (found := _KEYED.match(text, pos)):
            if pid := found["pid"] or found["pid0"]:
                fields["pid"] = int(pid)
        elif "name" not in fields and (found := _name_at(text, pos)):
            fields["name"] = found["name"]
        if not found:
            break
        pos = found.end()
        separator = _SEPARATOR.match(text, pos)
        if not separator:
            break
        pos = separator.end()
        if VLLM_START.match(text, pos):
            break
    if server := _MODEL_SERVER.match(text, pos):
        time = fields.get("time")
        return Layer(text[server.end() :], None if time is None else str(time), server["worker"], server["stream"])
    if "level" in fields and (component := _COMPONENT.match(text, pos)):
        pos = component.end()
    rest = text[pos:]
    if "level" in fields and "time" in fields and VLLM_PREFIX.search(rest[:_INNER]):
        # A supervisor passes on what its child wrote; what stands between is its mark.
        return Layer(rest, str(fields["time"]))
    if VLLM_START.match(rest):
        # The line inside has its own prefix: what stood before it is some program's mark, not a record.
        return Layer(rest, str(fields["time"])) if "time" in fields and "level" in fields else None
    if not _is_record(fields, shout, text[:1] == "[" and shout and len(fields) == 1):
        return None
    time = fields.get("time")
    return Layer(rest, str(time) if time is not None else None, fields=fields)


def _is_record(fields: dict[str, str | int], shout: bool, bracketed: bool) -> bool:
    if "level" not in fields:
        return False
    if bracketed or "file" in fields or "line" in fields or str(fields.get("name", "")).startswith(("vllm", "uvicorn")):
        return True
    # A date, a "T" and six or more decimals are a container runtime's or CI's time, and the level word behind it may be
    # the line's own.
    time = str(fields.get("time", ""))
    if "T" in time or len(time) < 17:
        return bool(time) and shout and not _RUNTIME_TIME.search(time)
    return True


def _level_first(text: str, state: State) -> Layer | None:
    word = text[1:12] if text[:1] in _BRACKETS else text[:12]
    if not word.lower().startswith(_LEVEL_STARTS):
        return None  # the expression need not be compiled
    return logging_format(text) if _LEVEL.match(text) else None


def _klog(text: str, state: State) -> Layer | None:
    if not text[1:5].isdecimal():
        return None
    found = _KLOG.match(text)
    if not found:
        return None
    fields: dict[str, str | int] = {
        "level": _KLOG_LEVELS[found["level"]],
        "time": found["time"],
        "pid": int(found["pid"]),
        "file": found["file"],
        "line": int(found["line"]),
    }
    return Layer(text[found.end() :], found["time"], fields=fields)


_LOGFMT = pattern(r"([A-Za-z_@][\w.\-]{0,40})=(?:\"((?:[^\"\\]|\\.)*)\"|([^\s\"]*))(?: |$)")
_LOGFMT_START = pattern(r"(?:time|ts|t|timestamp|level|lvl|severity|msg|message|logger|caller|at)=")


def _logfmt(text: str, state: State) -> Layer | None:
    """`time=… level=info msg="…"`."""
    if not _LOGFMT_START.match(text):
        return None
    pairs: dict[str, str] = {}
    pos = 0
    while found := _LOGFMT.match(text, pos):
        quoted = found[2]
        pairs.setdefault(found[1], unescape_json(quoted) if quoted is not None else found[3])
        pos = found.end()
    message = pairs.get("msg", pairs.get("message"))
    if message is None or pos < len(text.rstrip()):
        return None
    time = next((pairs[key] for key in ("time", "ts", "timestamp", "t") if key in pairs), None)
    level = level_name(pairs.get("level", pairs.get("lvl", pairs.get("severity", ""))))
    if VLLM_START.match(message) or level is None:
        return Layer(message, time)
    fields: dict[str, str | int] = {"level": level}
    if time is not None:
        fields["time"] = time
    if "logger" in pairs:
        fields["name"] = pairs["logger"]
    return Layer(message, time, fields=fields)


FAMILIES: tuple[Registration, ...] = (
    ("DIWEF", _klog),
    ("DIWECFTNSdiwecftns[", _level_first),
    (LETTERS, _logfmt),
)
