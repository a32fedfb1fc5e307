"""Split: one physical line of a log into the messages that processes wrote into it.

A physical line may carry a container wrapper, ANSI colour, process tags such as `(EngineCore_DP0 pid=150)`, vLLM's prefix
(`INFO 02-20 00:01:02 [file.py:123]`, without brackets before 0.8, after the tag from 0.31), a progress bar redrawn with
carriage returns, or several messages that processes wrote at the same time. This file is long because telling these apart is
one walk over the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._copied import as_printed, strip_ansi, unescape_json, without_border
from vlogcheck._prefix import CUT_PREFIX, LEVELS, MARK, PREFIX, TAGS, Origin, origin_of
from vlogcheck._requests import REQUEST_MESSAGE, prefix_outside_quotes
from vlogcheck._tuples import NamedTuple
from vlogcheck.wrappers import Unwrapped, Unwrapper

if TYPE_CHECKING:
    from vlogcheck._pieces import Pieces

__all__ = ["LogLine", "Splitter"]


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


class Splitter:
    """Turns physical lines into messages; remembers what a wrapper cut in two."""

    def __init__(self) -> None:
        self._unwrapper = Unwrapper()
        self._pieces: Pieces | None = None
        self._tags: dict[str, Origin] = {"": Origin()}

    def leave(self) -> Splitter:
        """Return what goes on with the log: knows its wrappers, has the pieces of lines they cut."""
        other = Splitter()
        other._unwrapper = self._unwrapper
        other._pieces, self._pieces = self._pieces, None
        return other

    @property
    def unfinished(self) -> int:
        """How many lines a wrapper said go on in a later one."""
        return len(self._pieces) if self._pieces is not None else 0

    def split(self, number: int, raw: str, cut: bool = False) -> list[LogLine]:
        """Return the messages of one physical line, in order. Never raises."""
        quoting = raw[:1] in _QUOTING or "\x1b" in raw or '{"' in raw or raw.lstrip(" \t")[:1] == '"'
        if not quoting:  # JSON is undone as a whole, and pieces of a line must keep their length
            raw = as_printed(raw)
        lines: list[LogLine] = []
        self._whole(lines, number, self._unwrapper.unwrap(raw), cut, quoting)
        return lines

    def _whole(
        self, lines: list[LogLine], number: int, unwrapped: Unwrapped, cut: bool, quoting: bool, depth: int = 0
    ) -> None:
        """Add the messages of a line once it is whole; one that holds several lines holds each in its own wrappers."""
        if self._pieces or unwrapped.partial:
            if self._pieces is None:
                from vlogcheck._pieces import Pieces

                self._pieces = Pieces(self._unwrapper)
            if (joined := self._pieces.join(unwrapped)) is None:
                return
            unwrapped = joined
        text = unwrapped.text
        if "\n" in text and unwrapped.fields is None and depth < _DEEPEST:
            for part in text.split("\n"):
                self._whole(lines, number, self._unwrapper.unwrap(part, unwrapped), cut, quoting, depth + 1)
            return
        if "\\n" in text and text.lstrip()[:1] in _JSON and unwrapped.fields is None:
            text = unescape_json(text)
        for part in text.split("\n") if "\n" in text else (text,):
            part = strip_ansi(part)
            if quoting:
                part = as_printed(part)
            for segment in part.split("\r") if "\r" in part else (part,):
                if segment := without_border(segment.rstrip()):
                    self._segment(lines, number, segment, unwrapped, cut)

    def flush(self, number: int) -> list[LogLine]:
        """Return the messages of lines whose continuation never came."""
        lines: list[LogLine] = []
        for unwrapped in self._pieces.flush() if self._pieces else ():
            self._whole(lines, number, unwrapped, True, True)
        return lines

    def _segment(self, lines: list[LogLine], number: int, text: str, unwrapped: Unwrapped, cut: bool) -> None:
        wrapper_time, container, fields = unwrapped.time, unwrapped.source, unwrapped.fields
        if fields is not None:
            lines.append(_structured(number, text, unwrapped, cut))
            return
        match = PREFIX.search(text)
        if match is None:
            if "LMCache " in text:
                from vlogcheck._lmcache import before_format

                if (front := before_format(text)).strip():  # a progress bar, say
                    self._segment(lines, number, front.rstrip(), unwrapped, False)
                    text = text[len(front) :]
            origin, message = self._untagged(text)
            if origin.process is not None and (record := self._unwrapper.record(message)) is not None:
                # Until 0.30 the tag is put in front of whatever is printed, in whatever format.
                for part in record.text.split("\n"):
                    line = _structured(number, part, record, cut)
                    lines.append(
                        line._replace(
                            process=origin.process,
                            pid=origin.pid,
                            rank=origin.rank,
                            wrapper_time=wrapper_time,
                            container=container,
                        )
                    )
                return
            if message:
                line = LogLine(number, message, None, *origin, None, None, wrapper_time, container, cut)
                if ".py:" in message or message.startswith(_LEVELS):
                    from vlogcheck._lost_prefix import without_damaged_prefix

                    line = without_damaged_prefix(line)
                if "LMCache " in message:
                    from vlogcheck._lmcache import without_format

                    line = without_format(line)
                lines.append(line)
            return
        said = Origin()
        if match.start():
            origin, message = self._untagged(text[: match.start()])
            if origin.process is not None and not match["tags"] and MARK.fullmatch(message):
                said = origin  # VLLM_LOGGING_PREFIX stands between the tag and the level
            elif message.strip():
                glued = CUT_PREFIX.search(message) is not None or any(level.startswith(message) for level in LEVELS)
                lines.append(LogLine(number, message, None, *origin, None, None, wrapper_time, container, glued=glued))
        while match is not None:
            following = PREFIX.search(text, match.end())
            if following is not None and REQUEST_MESSAGE.match(text, match.end()):
                following = prefix_outside_quotes(text, match.end())
            message = text[match.end() : following.start() if following else len(text)].rstrip()
            tags = match["tags"]
            origin = (self._tags.get(tags) or self._remember(tags)) if tags else said
            said = Origin()
            source = f"{match['file'] or match['file0']}:{match['lineno'] or match['lineno0']}"
            behind: list[str] = []
            if " INFO: " in message and (match.start() or following is not None) and not REQUEST_MESSAGE.match(message):
                from vlogcheck._quoted import server_lines

                message, *behind = server_lines(message)
            lines.append(
                LogLine(
                    number, message, match["level"], *origin, match["time"], source, wrapper_time, container,
                    cut and following is None, following is not None and text[following.start() - 1] != " ",
                    following is not None or bool(behind),
                )
            )  # fmt: skip
            for part in behind:
                tagged, part_message = self._untagged(part)
                of = tagged if tagged.process is not None else origin
                lines.append(LogLine(number, part_message, None, *of, None, None, wrapper_time, container))
            match = following

    def _remember(self, tags: str) -> Origin:
        origin = origin_of(tags)
        if len(tags) < 512:
            if len(self._tags) > 4096:  # a log of many short-lived processes
                self._tags.clear()
            self._tags[tags] = origin
        return origin

    def _untagged(self, text: str) -> tuple[Origin, str]:
        """Take process tags off a line that has no vLLM prefix (tqdm, uvicorn, tracebacks)."""
        if "(" not in text:
            return self._tags.get("") or Origin(), text.rstrip()
        match = TAGS.match(text)
        if match is None:
            return Origin(), text.rstrip()
        return self._tags.get(match[0]) or self._remember(match[0]), text[match.end() :].rstrip()


_LEVELS = tuple(f"{level} " for level in LEVELS)
_JSON = ("{", "[", '"')
_QUOTING = ("{", '"')
_DEEPEST = 3
"""How often lines in a line are looked for: a notebook in a record, say."""


def _structured(number: int, text: str, unwrapped: Unwrapped, cut: bool) -> LogLine:
    """Return the message of a logging formatter's own structure (JSON lines)."""
    fields = unwrapped.fields or {}

    def take(name: str) -> str | None:
        value = fields.get(name)
        return None if value is None else str(value)

    process = take("process")
    pid = take("pid")
    origin = origin_of(f"({process} pid={pid or 0})") if process else Origin()
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
