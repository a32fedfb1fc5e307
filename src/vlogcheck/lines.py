"""Split: one physical line of a log into the messages that processes wrote into it.

A physical line may carry a container wrapper, ANSI colour, process tags such as `(EngineCore_DP0 pid=150)`, vLLM's prefix
(`INFO 02-20 00:01:02 [file.py:123]`, without brackets before 0.8, after the tag from 0.31), a progress bar redrawn with
carriage returns, or several messages that processes wrote at the same time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vlogcheck._lazy import pattern
from vlogcheck.wrappers import Unwrapped, Unwrapper

__all__ = ["LogLine", "Splitter", "strip_ansi"]


class LogLine(NamedTuple):
    """One message (or one line of a longer one) with what its prefix and its wrapper say about it."""

    number: int
    """Physical line number, from 1."""
    message: str
    """The text after the prefix."""
    level: str | None = None
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    time: str | None = None
    source: str | None = None
    wrapper_time: str | None = None
    container: str | None = None
    cut: bool = False
    """Whether the file ended in the middle of this line."""
    glued: bool = False
    """Whether another message begins in the same physical line where this one ends, so that its end may be lost.

    With a blank between them, they stood in lines of their own before somebody put a log into one.
    """
    followed: bool = False
    """Whether another message begins in the same physical line at all."""
    nearest: str | None = None
    """Of a message no template knows: the record whose wording it has but for a few words."""


# Escape sequences of colours that were made visible, or lost their escape character in copying.
_VISIBLE = pattern(
    r"(?:\^\[|ESC|\u241b|(?<!\\)\\(?:x1[bB]|u001[bB]|033|e)|\x1b)\[(?:\d{1,3}(?:;\d{1,3}){0,6})?m"
    r"|\[\d{1,3}(?:;\d{1,3}){0,6}m"  # not `[m`, which a file's name may follow
)
_FRAMES = ("\u2502", "\u2503", "\u2551", "|")
_RESETS = ("[0m", "[m", "[0;0m")
_ENTITY = pattern(r"&(?:#\d{2,5}|#x[0-9a-fA-F]{2,4}|quot|apos|gt|lt|amp|nbsp);")
ANSI = pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")

# A process tag: `(EngineCore_DP0 pid=9)`, `(VllmWorker PP0_TP1 pid=9)`, `(VllmWorker rank=1 pid=9)`,
# `(RayWorkerWrapper pid=31, ip=10.0.0.2)`; vllm/utils (0.4.2-0.30), logger.py (0.31 and later), Ray.
_TAG = (
    r"\((?P<{0}name>[A-Za-z_][\w\-.]*(?: [A-Z]+\d+(?:_[A-Z]+\d+)*)?)(?: rank=(?P<{0}rank>\d{{1,9}}))? pid=(?P<{0}pid>\d{{1,15}})"
    r"(?:, ip=(?P<{0}ip>[0-9a-fA-F.:]+))?\)"
)
_PLAIN_TAG = re.sub(r"\?P<\w+>", "?:", _TAG.format(""))
PREFIX = pattern(
    rf"(?P<tags>(?:{_PLAIN_TAG}\s*){{0,8}})"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) "
    r"(?:\[(?P<file>[\w./\-<>*\\]+):(?P<lineno>\d+)\]|(?P<file0>[\w./\-]+\.py):(?P<lineno0>\d+)\]) ?"
)
_TAGS = pattern(rf"(?:{_PLAIN_TAG}\s*)+")
# What is left of a prefix whose beginning was not copied, and a prefix whose format leaves the date out.
_LOST = pattern(
    r"[\s>#*`|\u2502\u258c-\u2590]{0,12}(?:[A-Za-z_][\w ]{0,60} pid=(?P<pid>\d{1,15})\) )?(?P<level>[A-Z]{0,8}) ?"
    r"(?P<time>[\d\-]{0,5} ?[\d:]{0,8}) ?"
    r"\[?(?P<file>[\w./\-]{0,120}\.py):(?P<lineno>\d{1,6})\] "
)
_DATELESS = pattern(
    r"[\s>#*`|\u2502\u258c-\u2590]{0,12}(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? (?P<time>)(?:(?:\.{2,3}|\u2026) )?"
    r"\[?(?P<file>[\w./\-]{1,120}\.py):(?P<lineno>\d{1,6})\]?:? "
)
# A prefix that another one interrupts.
_CUT_PREFIX = pattern(
    r"(?:\([A-Za-z_]\w*(?: [A-Z]+\d[\w]*)?(?: p(?:i(?:d(?:=\d*)?)?)?)?"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d:. \-]*(?:\[[\w./\-]*(?::\d*)?)?)$"
)
_MARK = pattern(r"\s*(?:\[[^\[\]]{1,48}\]|<[^<>]{1,48}>|\{[^{}]{1,48}\}|\S{1,48}[:|])\s*")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LAST_TAG = pattern(_TAG.format("") + r"\s*$")
_RANK = pattern(r"TP(\d{1,9})(?!\d)")


class _Origin(NamedTuple):
    process: str | None = None
    pid: int | None = None
    rank: int | None = None


def strip_ansi(text: str) -> str:
    """Return the text without terminal escape sequences."""
    return ANSI.sub("", text) if "\x1b" in text else text


def _as_printed(text: str) -> str:
    """Undo what copying from a terminal or a web page did to a line."""
    if "[" in text and any(reset in text for reset in _RESETS):
        text = _VISIBLE.sub("", text)
    if "&" in text and _ENTITY.search(text):
        from html import unescape

        text = unescape(text).replace("\xa0", " ")
    return text


def _without_border(text: str) -> str:
    """Cut off the frame of a terminal pane or a table behind a message."""
    last = text[-1:]
    if last not in _FRAMES:
        return text
    inside = text[:-1].rstrip()
    return inside if len(text) - 1 - len(inside) >= (2 if last == "|" else 1) else text


def origin_of(tags: str) -> _Origin:
    """Return who logged: the innermost (last) of nested tags."""
    match = _LAST_TAG.search(tags)
    if match is None:
        return _Origin()
    name = match["name"]
    rank = match["rank"]
    if rank is None and "PP" not in name and (tp := _RANK.search(name)):
        rank = tp[1]
    return _Origin(name, int(match["pid"]), None if rank is None else int(rank))


class Splitter:
    """Turns physical lines into messages; remembers what a wrapper cut in two."""

    def __init__(self) -> None:
        self._unwrapper = Unwrapper()
        self._partial: dict[tuple[str | None, str | None], list[str]] = {}
        self._sizes: dict[tuple[str | None, str | None], int] = {}
        self._size = 0
        self._tags: dict[str, _Origin] = {"": _Origin()}

    @property
    def unfinished(self) -> int:
        """How many lines a wrapper said go on in a later one."""
        return len(self._partial)

    def split(self, number: int, raw: str, cut: bool = False) -> list[LogLine]:
        """Return the messages of one physical line, in order. Never raises."""
        if raw[:1] not in _QUOTING:  # JSON is undone as a whole
            raw = _as_printed(raw)
        unwrapped = self._unwrapper.unwrap(raw)
        if self._partial or unwrapped.partial:
            joined = self._join(unwrapped)
            if joined is None:
                return []
            unwrapped = joined
        text = unwrapped.text
        if text[:1] in _JSON and "\\n" in text and unwrapped.fields is None:
            text = _unescape(text)
        lines: list[LogLine] = []
        for part in text.split("\n") if "\n" in text else (text,):
            part = strip_ansi(part)
            if raw[:1] in _QUOTING:
                part = _as_printed(part)
            for segment in part.split("\r") if "\r" in part else (part,):
                if segment := _without_border(segment.rstrip()):
                    self._segment(lines, number, segment, unwrapped, cut)
        return lines

    def flush(self, number: int) -> list[LogLine]:
        """Return the messages of lines whose continuation never came."""
        lines: list[LogLine] = []
        for (container, _), parts in self._partial.items():
            for part in strip_ansi("".join(parts)).replace("\r", "\n").split("\n"):
                self._segment(lines, number, part, Unwrapped(part, None, container, False, None), True)
        self._partial.clear()
        self._sizes.clear()
        self._size = 0
        return lines

    def _join(self, unwrapped: Unwrapped) -> Unwrapped | None:
        """Collect the pieces of a line its wrapper cut; the whole line when it is complete, None before."""
        key = (unwrapped.source, unwrapped.stream)
        pieces = self._partial.get(key)
        if pieces is None and not unwrapped.partial:
            return unwrapped
        pieces = pieces or []
        pieces.append(unwrapped.text)
        size = self._sizes.get(key, 0) + len(unwrapped.text)
        room = len(self._partial) < _MOST_PARTIAL and self._size < _HOLD_LIMIT
        if unwrapped.partial and size < _JOIN_LIMIT and room:
            self._partial[key], self._sizes[key] = pieces, size
            self._size += len(unwrapped.text)
            return None
        self._partial.pop(key, None)
        self._size -= self._sizes.pop(key, 0)
        inner = self._unwrapper.unwrap("".join(pieces))  # what was cut may itself be wrapped: JSON inside CRI
        return inner._replace(
            time=inner.time or unwrapped.time, source=inner.source or unwrapped.source, partial=False,
            stream=inner.stream or unwrapped.stream,
        )  # fmt: skip

    def _segment(self, lines: list[LogLine], number: int, text: str, unwrapped: Unwrapped, cut: bool) -> None:
        wrapper_time, container, fields = unwrapped.time, unwrapped.source, unwrapped.fields
        if fields is not None:
            lines.append(_structured(number, text, unwrapped, cut))
            return
        match = PREFIX.search(text)
        if match is None:
            origin, message = self._untagged(text)
            if message:
                line = LogLine(number, message, None, *origin, None, None, wrapper_time, container, cut)
                lines.append(_damaged(line) if ".py:" in message else line)
            return
        said = _Origin()
        if match.start():
            origin, message = self._untagged(text[: match.start()])
            if origin.process is not None and not match["tags"] and _MARK.fullmatch(message):
                said = origin  # VLLM_LOGGING_PREFIX stands between the tag and the level
            elif message.strip():
                glued = _CUT_PREFIX.search(message) is not None or any(level.startswith(message) for level in _LEVELS)
                lines.append(LogLine(number, message, None, *origin, None, None, wrapper_time, container, glued=glued))
        while match is not None:
            following = PREFIX.search(text, match.end())
            message = text[match.end() : following.start() if following else len(text)].rstrip()
            tags = match["tags"]
            origin = (self._tags.get(tags) or self._remember(tags)) if tags else said
            said = _Origin()
            source = f"{match['file'] or match['file0']}:{match['lineno'] or match['lineno0']}"
            lines.append(
                LogLine(
                    number, message, match["level"], *origin, match["time"], source, wrapper_time, container,
                    cut and following is None, following is not None and text[following.start() - 1] != " ",
                    following is not None,
                )
            )  # fmt: skip
            match = following

    def _remember(self, tags: str) -> _Origin:
        origin = origin_of(tags)
        if len(tags) < 512:
            if len(self._tags) > 4096:  # a log of many short-lived processes
                self._tags.clear()
            self._tags[tags] = origin
        return origin

    def _untagged(self, text: str) -> tuple[_Origin, str]:
        """Take process tags off a line that has no vLLM prefix (tqdm, uvicorn, tracebacks)."""
        if "(" not in text:
            return self._tags.get("") or _Origin(), text.rstrip()
        match = _TAGS.match(text)
        if match is None:
            return _Origin(), text.rstrip()
        return self._tags.get(match[0]) or self._remember(match[0]), text[match.end() :].rstrip()


_JOIN_LIMIT = 1 << 20
"""Characters of one line put together again."""
_HOLD_LIMIT = 16 << 20
_MOST_PARTIAL = 4096
"""What is held of all lines that go on, in characters and in lines: beyond it a piece is taken as it is."""
_JSON = ("{", "[", '"')
_QUOTING = ("{", '"')
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def _damaged(line: LogLine) -> LogLine:
    """Take off a prefix that is not whole: its beginning lost in copying, or no date in it."""
    found = _DATELESS.match(line.message) or _LOST.match(line.message)
    if found is None:
        return line
    written = found["level"]
    meant = [level for level in _LEVELS if written and level.endswith(written)]
    return line._replace(
        message=line.message[found.end() :].rstrip("`") if "`" in found[0] else line.message[found.end() :],
        level=meant[0] if len(meant) == 1 else None,
        pid=line.pid if line.pid is not None else _number(found.groupdict().get("pid")),
        time=found["time"].strip() or None,
        source=f"{found['file']}:{found['lineno']}",
    )


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _unescape(text: str) -> str:
    """Undo JSON's escapes in a document that was cut and so is no JSON any more (a notebook's output, say)."""
    plain = re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[0]), text
    )
    # Two escapes may be the halves of one character; half of one alone no later step could encode.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _structured(number: int, text: str, unwrapped: Unwrapped, cut: bool) -> LogLine:
    """Return the message of a logging formatter's own structure (JSON lines)."""
    fields = unwrapped.fields or {}

    def take(name: str) -> str | None:
        value = fields.get(name)
        return None if value is None else str(value)

    process = take("process")
    pid = take("pid")
    origin = origin_of(f"({process} pid={pid or 0})") if process else _Origin()
    file, lineno = take("file"), take("line")
    return LogLine(
        number,
        text.rstrip(),
        take("level"),
        origin.process or process,
        int(pid) if pid and pid.isdecimal() else None,
        origin.rank,
        take("time") or unwrapped.time,
        f"{file}:{lineno}" if file and lineno else file,
        unwrapped.time,
        unwrapped.source,
        cut,
    )
