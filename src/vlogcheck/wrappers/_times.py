"""Wrappers that begin with a time: container runtimes, CI systems, `ts`, journald and syslog."""

from __future__ import annotations

from vlogcheck._lazy import pattern

from ._base import DIGITS, VLLM_START, Layer, Registration, State
from ._formats import logging_format

_ZONE = r"(?:Z|[ ]?[+-]\d\d:?\d\d|[ ]UTC)"
_ISO = rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?{_ZONE}?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_SYSLOG_TIME = rf"{_MONTH} [ \d]\d(?: \d{{4}})? \d\d:\d\d:\d\d(?:\.\d{{1,9}})?"

_NAMES = frozenset(f"{_MONTH}|{_DAY}".replace("(?:", "").replace(")", "").split("|"))

_LEADING = pattern(
    rf"(?:(?P<iso>{_ISO})"
    rf"|(?P<log>{_SYSLOG_TIME})"
    rf"|(?P<full>{_DAY} (?:{_ISO}(?: [A-Z]{{2,5}})?|{_SYSLOG_TIME}(?: [A-Z]{{2,5}})?(?: \d{{4}})?))"
    rf"|(?P<clock>\d\d:\d\d:\d\d(?:\.\d{{1,9}})?)"
    rf"|(?P<unix>\d{{1,10}}\.\d{{3,9}}))(?:[ \t]|$)"
)
_BRACKETED = pattern(
    rf"\[(?P<time>{_ISO}|{_SYSLOG_TIME}|{_DAY} {_SYSLOG_TIME}(?: \d{{4}})?"
    r"|\d\d:\d\d:\d\d(?:\.\d+)?| *\d{1,10}\.\d{3,9})\]"
    r"(?:[ \t]|$)"
)
_CRI = pattern(r"(?P<stream>stdout|stderr) (?P<tag>[PF])(?::[^\s]*)?(?: |$)")
_GITLAB = pattern(r"\d\d[OE](?:[ +]|$)")
_WITH_PID = pattern(
    r"(?:(?P<host>[A-Za-z0-9][\w.\-]*|[0-9a-fA-F:]{3,39}) )?(?P<ident>[^\s\[\]]{1,120})\[\d{1,10}\]:(?: |$)"
)
_NO_PID = pattern(r"(?P<host>[A-Za-z0-9][\w.\-]*) (?P<ident>[^\s:\[\]]{1,80}): ")
_CLOUDWATCH = pattern(r"(?P<stream>[\w.$\[\]\-/]*/[0-9a-f]{32}) ")
_LABELS = pattern(r"\{(?P<labels>[A-Za-z_]\w*=\"[^{}]{0,2000}?\")\} ")
_TILDE = pattern(r"[~|] ")
_RFC5424 = pattern(
    r"<\d{1,3}>1 (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) \S+ \S+ "
    r"(?:-|(?:\[(?:[^\]\\\"]|\\.|\"(?:[^\"\\]|\\.)*\")*\])+)"
    r"(?: \ufeff?|$)"
)
_RFC3164 = pattern(
    rf"<\d{{1,3}}>(?P<time>{_SYSLOG_TIME}|{_ISO}) (?:(?P<host>[\w.\-]+) )?(?P<tag>[^\s:\[\]]+)(?:\[\d+\])?:(?: |$)"
)
_LOGGER_PIECE = 1024
"""logger(1) of util-linux cuts longer lines into messages of this many bytes."""
_KAGGLE = pattern(r"(?P<time>\d{1,7}(?:\.\d{1,3})?s)[ \t]+\d{1,7}(?:[ \t]|$)")
_FILE_TIME = pattern(rf"(?P<job>[^\t]{{1,200}})\t[^\t]{{1,200}}\t\ufeff?(?P<time>{_ISO})(?: |$)")


def _host(text: str, state: State) -> Layer | None:
    """Take off `host ident[pid]: ` of journald and syslog.

    The pid is left out of the source: journald gives every process of one server its own, so it would tear the server
    apart.
    """
    if found := _WITH_PID.match(text):
        host, ident = found["host"], found["ident"]
        if host:
            state.remember(host)
        return Layer(text[found.end() :], source=f"{host} {ident}" if host else ident)
    if found := _NO_PID.match(text):
        # Without a pid, "host ident: " may as well be the beginning of a message.
        host, rest = found["host"], text[found.end() :]
        if host in state.names or VLLM_START.match(rest):
            state.remember(host)
            return Layer(rest, source=f"{host} {found['ident']}")
    return None


def _container(text: str, time: str) -> Layer | None:
    """Take off the stream of a container runtime (`stdout F `) or of GitLab (`00O `) behind the time."""
    if found := _CRI.match(text):
        return Layer(text[found.end() :], time, stream=found["stream"], partial=found["tag"] == "P")
    if found := _GITLAB.match(text):
        return Layer(text[found.end() :], time)
    return None


def _after_time(text: str, time: str, kind: str, state: State) -> Layer:
    """Take off what may follow the time of a known wrapper."""
    if kind == "iso" and "T" in time:
        if found := _CLOUDWATCH.match(text):
            return Layer(text[found.end() :], time, found["stream"])
        if found := _LABELS.match(text):
            return Layer(text[found.end() :], time, found["labels"])
    if kind == "iso" and (found := _TILDE.match(text)) and VLLM_START.match(text, found.end()):
        return Layer(text[found.end() :], time)
    if kind not in ("clock",) and (host := _host(text, state)):
        return host._replace(time=time)
    return Layer(text, time)


def _record(text: str, rest: str, time: str) -> Layer | None:
    """Read a line as a logging format's record; with a second time behind the first, the first is a wrapper's."""
    record = logging_format(text)
    if record and (inner := logging_format(rest)) and "time" in (inner.fields or {}):
        return Layer(rest, time)
    return record


def _timed(text: str, state: State) -> Layer | None:
    if text[:1].isalpha() and text[:3] not in _NAMES:
        return None  # the expression need not be compiled
    found = _LEADING.match(text)
    if not found:
        return None
    kind = found.lastgroup or ""
    time, rest = found[kind], text[found.end() :]
    if VLLM_START.match(rest):
        return Layer(rest, time)
    if kind == "iso" and (layer := _container(rest, time)):
        return layer
    if kind in ("iso", "clock") and (layer := _record(text, rest, time)):
        return layer
    return _after_time(rest, time, kind, state)


def _bracketed(text: str, state: State) -> Layer | None:
    if text[1:2].isalpha() and text[1:4] not in _NAMES:  # `[shutdown] …`: the expression need not be compiled
        return None
    found = _BRACKETED.match(text)
    if not found:
        return None
    time, rest = found["time"], text[found.end() :]
    return _record(text, rest, time) or _after_time(rest, time, "bracket", state)


def _logger_piece(text: str) -> bool:
    """Whether logger(1) cut a line here; a character cut in two was decoded as one replacement."""
    size = len(text.replace("\ufffd", "?").encode("utf-8", "replace"))
    return size == _LOGGER_PIECE or ("\ufffd" in text[-1:] and _LOGGER_PIECE - 2 <= size < _LOGGER_PIECE)


def _syslog(text: str, state: State) -> Layer | None:
    if found := _RFC5424.match(text):
        source = " ".join(part for part in (found["host"], found["app"]) if part != "-")
        return Layer(text[found.end() :], found["time"], source or None)
    if found := _RFC3164.match(text):
        source = " ".join(part for part in (found["host"], found["tag"]) if part)
        rest = text[found.end() :]
        return Layer(rest, found["time"], source, partial=_logger_piece(rest))
    return None


def _kaggle(text: str, state: State) -> Layer | None:
    """`295.4s 290 message`, the log view of Kaggle notebooks: seconds since start, running number."""
    found = _KAGGLE.match(text)
    return Layer(text[found.end() :], found["time"]) if found else None


def _tabbed(text: str, state: State) -> Layer | None:
    """`job<TAB>step<TAB>time message`, as `gh run view --log` prints."""
    if "\t" not in text[:210]:
        return None
    found = _FILE_TIME.match(text)
    return Layer(text[found.end() :], found["time"], found["job"]) if found else None


FAMILIES: tuple[Registration, ...] = (
    (DIGITS, _timed),
    ("JFMASONDTW", _timed),
    ("[", _bracketed),
    ("<", _syslog),
    (DIGITS, _kaggle),
    ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + DIGITS, _tabbed),
)
