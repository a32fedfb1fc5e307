"""Take off what stands around a line of the server: container runtimes, orchestrators, journals, CI, JSON.

Every line is judged by itself, nothing is configured, wrappers may be nested. vLLM's own process tag and prefix are not
wrappers and stay on. A line that is in no wrapper comes back as it is.

One small module per kind of wrapper registers its families under the characters such a line can begin with; a new
wrapper is one function and one entry there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck._copied import ANSI
from vlogcheck._lazy import pattern
from vlogcheck._tuples import NamedTuple

from . import _formats, _json, _named, _times
from ._base import LEADING_ESC, UVICORN, VLLM_PREFIX, VLLM_START, Family, Layer, State
from ._hardwrap import WIDEST, is_hard_wrapped, rejoin
from ._learned import Heads, column, has_level
from ._named import without_ray_count

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VLLM_START", "WIDEST", "Unwrapped", "Unwrapper", "is_hard_wrapped", "rejoin"]

_MAX_LAYERS = 8
_LONGEST_NAME = 256
_MOST_OPEN = 4096
_BEGINNING = 300
"""Characters of a line in which vLLM's prefix is looked for behind something else."""

_PREFIX_INSIDE = pattern(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d{4}-)?\d\d-\d\d \d\d:")

_PROGRESS = pattern(r"\d%\||\d(?:it/s|s/it)")

_FIGURES = pattern(r"\w+")

_families: dict[str, list[Family]] = {}
for _module in (_json, _times, _named, _formats):
    for _characters, _family in _module.FAMILIES:
        for _character in _characters:
            _families.setdefault(_character, []).append(_family)
_FAMILIES: Mapping[str, tuple[Family, ...]] = {key: tuple(value) for key, value in _families.items()}


class Unwrapped(NamedTuple):
    """One line without its wrappers."""

    text: str
    """The line as the process wrote it, colours and a carriage return at its end included, without a newline at the
    end. A JSON payload may hold several lines: they are separated by a newline."""
    time: str | None = None
    """The outermost wrapper's time, as it is written."""
    source: str | None = None
    """What tells two servers in one file apart: compose service, pod/container, host and unit, rank. Lines of one
    server may have none."""
    partial: bool = False
    """The line goes on in the next line of the same source and stream: put the texts together, then unwrap the whole
    once more."""
    fields: Mapping[str, str | int] | None = None
    """Set when text is the bare message of a record that another logging formatter wrote: `level` (DEBUG, INFO,
    WARNING, ERROR, CRITICAL), and as far as known `name` (logger), `process` (name), `pid`, `time`, `file`, `line`."""
    stream: str | None = None
    """stdout or stderr, where the wrapper says so."""
    layers: int = 0
    """How many wrappers came off."""


_TAGGED = frozenset({"(APIS", "(Engi", "(Work", "(Vllm", "(RayW"})
"""How nearly all lines of a plain log begin: known without a regular expression."""


def _plain(line: str) -> Unwrapped:
    # Most lines of most logs end here: half the cost of the constructor with its defaults.
    return tuple.__new__(Unwrapped, (line, None, None, False, None, None, 0))


class Unwrapper:
    """Takes wrappers off the lines of one input. Keeps what the input has shown, for lines that are ambiguous alone."""

    def __init__(self) -> None:
        self._state = State()
        self._heads = Heads(self._holds_line)
        self._open: set[tuple[str | None, str | None, int]] = set()

    def unwrap(self, line: str, within: Unwrapped | None = None) -> Unwrapped:
        """Take the wrappers off one line (without its newline), or off a text that stood `within` others. Never raises."""
        if within is not None:
            return self._peel(line, within)
        head = line[:5]
        if head in _TAGGED or (head == "INFO " and line[7:8] == "-") or VLLM_START.match(line):
            # Ray marks what it left out at the end of a line whose tag is vLLM's.
            return _plain(without_ray_count(line) if " across " in line else line)
        if not line or line[0] == "\r":
            return _plain(line)
        return self._peel(line, _plain(line))

    def record(self, text: str) -> Unwrapped | None:
        """Return what a logging format or its JSON says that stands behind a process tag, None where there is none."""
        if text[:1] not in _FAMILIES or VLLM_START.match(text):
            return None
        unwrapped = self._peel(text, _plain(text))
        return unwrapped if unwrapped.fields is not None else None

    def beginning(self, line: str) -> str | None:
        """Return what kind of beginning a line has, so that half a wrapper is no beginning; None for none."""
        line = ANSI.sub("", line) if "\x1b" in line else line
        if VLLM_START.match(line):
            return "tag" if line[:1] == "(" else "level"
        if UVICORN.match(line):
            return "uvicorn"
        for family in _FAMILIES.get(line[:1], ()):
            if layer := family(line, self._state):
                if line[:1] == "{":
                    return "{"
                return f"{family.__name__} {layer.source} {_FIGURES.sub('', layer.time or '')}"
        return "head" if self._heads.known(line, 0) or self._heads.learn(line, 0) else None

    def _peel(self, text: str, within: Unwrapped) -> Unwrapped:
        _, time, outer, _, fields, stream, depth = within
        sources = [] if outer is None else [outer]
        layer: Layer | None
        shape = None
        while depth < _MAX_LAYERS:
            if VLLM_START.match(text) or UVICORN.match(text) or "\n" in text:
                break
            layer = (
                (self._heads.shapes and self._heads.known(text, depth))
                or self._family(text)
                or self._other(text, depth)
            )
            if layer is None:
                break
            depth += 1
            text, time, stream, fields = layer.text, time or layer.time, stream or layer.stream, layer.fields
            if layer.source and (source := layer.source[:_LONGEST_NAME]) not in sources:
                sources.append(source)
            if fields is not None and shape is not None:
                self._state.is_carrier(shape)
            shape = layer.shape
            if fields is not None:
                if not self._is_wrapped_message(layer, depth):
                    inside = _PREFIX_INSIDE.search(text)
                    if inside is not None and _PROGRESS.search(text[: inside.start()]):
                        fields = None  # the server's own output, a message behind a progress bar
                    break
                fields = None
            if layer.partial or self._open:
                key = (" ".join(sources) or None, stream, depth)
                if layer.partial:
                    if len(self._open) > _MOST_OPEN:
                        self._open.clear()
                    self._open.add(key)
                    return Unwrapped(text, time, key[0], True, None, stream, depth)
                if key in self._open:  # the end of a line whose beginning is not here: nothing to recognise
                    self._open.discard(key)
                    break
        if fields is None:
            text = without_ray_count(text)
        return Unwrapped(text, time, " ".join(sources) or None, False, fields, stream, depth)

    def _is_wrapped_message(self, layer: Layer, depth: int) -> bool:
        """Whether the messages of such records are lines in a wrapper: one that holds a line of vLLM or a record shows it."""
        if self._state.carries_lines(layer.shape):
            return True
        text = layer.text
        if has_level(text) and self._holds_line(text, depth):
            self._state.is_carrier(layer.shape)
            return True
        return False

    def _holds_line(self, text: str, depth: int | None = None) -> bool:
        """Whether a text is wrapped, and a line as vLLM begins it is inside, or a record of a logging formatter.

        With the number of wrappers around the text, heads count as well.
        """
        for inner in range(_MAX_LAYERS):
            layer = self._family(text) if depth is None else self._layer(text, depth + inner)
            if layer is None:
                return False
            if VLLM_PREFIX.search(layer.text[:_BEGINNING]):  # behind VLLM_LOGGING_PREFIX, say
                return True
            container = layer.stream is not None and layer.time is not None  # its output, whatever it is
            if container or (text[:1] == "{" and "\n" in layer.text):  # or a notebook on one line
                return True
            if layer.fields is not None and ("time" in layer.fields or text[:1] == "{"):
                return True
            text = layer.text
        return False

    def _family(self, text: str) -> Layer | None:
        colour = LEADING_ESC.match(text)
        body = text[colour.end() :] if colour else text
        for family in _FAMILIES.get(body[:1], ()):
            if layer := family(body, self._state):
                return layer
        return None

    def _layer(self, text: str, depth: int) -> Layer | None:
        return self._heads.known(text, depth) or self._family(text) or self._other(text, depth)

    def _other(self, text: str, depth: int) -> Layer | None:
        return self._column(text, depth) or self._heads.learn(text, depth)

    def _column(self, text: str, depth: int) -> Layer | None:
        if "," not in text or (self._state.column is not None and self._state.column[2] != depth):
            return None
        return column(text, depth, self._state, self._holds_line)
