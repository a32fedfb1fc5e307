"""Message templates: a log line as vLLM's own wording with named holes, and the records the holes fill.

A template is the message exactly as vLLM formats it, with each variable part replaced by `{field}`:

    Template("Available KV cache memory: {gib} GiB", versions=">=0.9.1", example="Available KV cache memory: 60.31 GiB")

Syntax: `{field}` is a hole whose expression comes from the field's type, `{field:,}` says that the number carries
thousands commas when it is printed, `{field:.1f}` how many decimals it is rounded to, `{field:MiB}` (or `bytes`, `KiB`)
that a GiB field is printed in that unit (`{field:.0MiB}`: without decimals), `{_}` is text nobody needs, `{{` and `}}`
are braces, `[[…]]` is a part that may be absent, and a newline separates the lines of one message (vLLM's
`NewLineFormatter` repeats the prefix before each). The whole message must match; nothing else is a pattern.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from vlogcheck.units import GIB, GiB

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
elif TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda cls: cls


__all__ = ["HOLES", "Hole", "Record", "Template", "TemplateError", "all_records", "all_templates", "read_gib"]

T = TypeVar("T")

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_COUNT = r"-?\d{1,3}(?:,\d{3})+|-?\d+"
_ANY = ".*?"
_SOME = ".{0,400}?"  # searching for an embedded text may start at many places: bounded, it stays linear
_SIZE_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": GIB, "TiB": 1 << 40}


class TemplateError(ValueError):
    """A template or record that contradicts itself: found when it is compiled, never while reading a log."""


class Hole(NamedTuple):
    """What a field's type means inside a message: its expression, how to read it and how to print it."""

    expression: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    schema: str = "str"
    """The JSON type of the value, as a Python type name."""


_MOST_DIGITS = 64
_LARGEST = 1 << 63
"""No count, no duration and no size in bytes is as large. What claims to be is no figure: its line stays unrecognised."""


def _within(value: T, size: float) -> T:
    if not -_LARGEST < size < _LARGEST:  # also for NaN
        raise ValueError("out of range")
    return value


def _read_count(text: str) -> int:
    number = int(text.replace(",", ""))
    return _within(number, number)


def _read_float(text: str) -> float:
    number = float(text)
    return _within(number, number)


def read_gib(text: str, resolution: int = 2, unit: int = GIB) -> GiB:
    """Return a printed size. Raises `ValueError` for one that no memory has."""
    if len(text) > _MOST_DIGITS:
        raise ValueError("too many digits")
    size = GiB(text, resolution, unit)
    if "e" in text:
        _ = size.bytes  # raises for an exponent out of range
    return _within(size, size * GIB)


def _read_size(text: str) -> GiB:
    number, _, unit = text.partition(" ")
    return read_gib(number, unit=_SIZE_UNITS[unit])


def _read_bool(text: str) -> bool:
    return text == "True"


def _write_size(value: Any) -> str:
    return f"{value} GiB"


def _read_literal(text: str) -> Any:
    from vlogcheck._literals import read_literal

    return read_literal(text)


def _write_literal(value: Any) -> str:
    return repr(value)


HOLES: dict[str, Hole] = {
    "GiB": Hole(_NUMBER, read_gib, str, "float"),
    "float": Hole(_NUMBER, _read_float, repr, "float"),
    "int": Hole(_COUNT, _read_count, str, "int"),
    "bool": Hole("True|False", _read_bool, str, "bool"),
    "str": Hole(_ANY, str, str, "str"),
    "Word": Hole(r"[^\s,;()\[\]'\"]+", str, str, "str"),
    "Name": Hole(r"[A-Z][\w/.\-]*(?: [A-Z][\w/.\-]*){0,4}", str, str, "str"),
    "Size": Hole(r"-?\d+(?:\.\d+)? (?:bytes|B|[KMGT]iB)", _read_size, _write_size, "float"),
    "Literal": Hole(".*", _read_literal, _write_literal, "object"),
}
"""Hole by the name of the field's type. `Name` is up to five capitalised words; `Size` is torch's own free choice of
unit and becomes GiB."""

Word = str
Name = str
Size = GiB
Literal = Any
__all__ += ["Literal", "Name", "Size", "Word"]

_SPECIAL = re.compile(r"[.^$*+?{}\[\]|()\\]")
_HEAD = re.compile(r"[{}\n]|\[\[|\]\]")
_PIECES = re.compile(r"\{\{|\}\}|\{(?P<field>\w+)(?::(?P<spec>[^{}]*))?\}|\[\[|\]\]")


class _Piece(NamedTuple):
    kind: str  # literal, hole, open, close
    text: str
    spec: str = ""

    @property
    def unit(self) -> int | None:
        """Bytes of the unit the hole is printed in, where the template names one."""
        return _SIZE_UNITS.get(self.spec.lstrip(".0123456789"))

    @property
    def decimals(self) -> int | None:
        """Decimals the hole is rounded to, where the template says so."""
        digits = re.match(r"\.(\d+)", self.spec)
        return None if digits is None else int(digits[1])


def _parse(text: str) -> Iterator[_Piece]:
    at = 0
    literal = ""
    for match in _PIECES.finditer(text):
        literal += text[at : match.start()]
        at = match.end()
        token = match[0]
        if token in ("{{", "}}"):
            literal += token[0]
            continue
        if literal:
            yield _Piece("literal", literal)
            literal = ""
        if token == "[[":
            yield _Piece("open", "")
        elif token == "]]":
            yield _Piece("close", "")
        else:
            yield _Piece("hole", match["field"], match["spec"] or "")
    literal += text[at:]
    if literal:
        yield _Piece("literal", literal)


def _is_open(pieces: Sequence[_Piece], enter: str, leave: str) -> bool:
    """Whether the first of the pieces that is there is a value, with any optional parts before it or without them."""
    depth = 0
    skipping = 0
    for piece in pieces:
        if piece.kind == enter:
            depth += 1
        elif piece.kind == leave:
            depth -= 1
            skipping = min(skipping, depth)
        elif depth and depth <= skipping:
            continue  # what stands behind the end of an optional part
        elif piece.kind == "hole" and piece.text != "_":
            return True
        elif piece.kind == "literal":
            if not depth:
                return False
            skipping = depth
    return False


class _Expression:
    """The expression of one line of a message, so put together that matching it costs one pass over the line.

    With several holes that take any text, an expression would try every way to share the text out among them: a long line
    that repeats a literal would take hours. But what a hole took up to the first place where the literals and holes behind
    it fit never needs to be longer while another such hole follows: that one takes the rest. So each of these stretches is
    closed, by a group that looks ahead and a reference to what it found (Python has atomic groups from 3.11 on only).
    """

    def __init__(self) -> None:
        self._closed = ""
        self._open = ""
        self._free = False
        self._stretches = 0

    def add(self, part: str, *, free: bool = False) -> None:
        """Add a literal, a hole (`free`: one that takes any text) or the border of an optional part."""
        if free:
            self._close()
            self._free = True
        self._open += part

    def _close(self) -> None:
        if self._free:
            name = f"_{self._stretches}"
            self._stretches += 1
            self._open = f"(?=(?P<{name}>{self._open}))(?P={name})"
        self._closed, self._open = self._closed + self._open, ""

    @property
    def text(self) -> str:
        """The whole expression."""
        return self._closed + self._open


class Template:
    """One wording of one record.

    `versions` is a PEP 440 specifier of the releases whose source has this wording ("" for text that is not vLLM's):
    documentation and drift check only, it never gates the parser. `example` is a message as printed, and a test.
    `values` are fields the wording itself states (the unit its label claims, the device it names). `source` names whose
    text it is ("vllm", "torch", "uvicorn", a plug-in). `embedded` lets the text stand inside a longer message, as torch's
    out-of-memory text does. `wraps` names the hole that holds somebody else's message: when that message is recognised,
    its record is the one, not the wrapper's.
    """

    __slots__ = (
        "_head",
        "_lines",
        "_readers",
        "embedded",
        "example",
        "pieces",
        "record",
        "source",
        "text",
        "values",
        "versions",
        "wraps",
    )

    record: type[Record]

    def __init__(
        self,
        text: str,
        *,
        versions: str,
        example: str,
        source: str = "vllm",
        values: Mapping[str, Any] | None = None,
        embedded: bool = False,
        wraps: str | None = None,
    ) -> None:
        self.text = text
        self.versions = versions
        self.example = example
        self.source = source
        self.values = dict(values or {})
        self.embedded = embedded
        self.wraps = wraps
        self.pieces: tuple[_Piece, ...] | None = None
        self._head: str | None = None
        self._lines: tuple[re.Pattern[str], ...] | None = None
        self._readers: dict[str, Callable[[str], Any]] | None = None

    def __repr__(self) -> str:
        return f"<Template of {self.record.__name__}: {self.text!r}>"

    def parsed(self) -> tuple[_Piece, ...]:
        """Return the pieces of the text in order."""
        if self.pieces is None:
            self.pieces = tuple(_parse(self.text))
        return self.pieces

    @property
    def head(self) -> str:
        """What every message of this wording begins with; empty where it begins with a hole or an optional part."""
        if self._head is None:
            self._head = _HEAD.split(self.text, 1)[0]
        return self._head

    @property
    def open_end(self) -> bool:
        """Whether a value may end the message, so that nothing shows where it has been cut."""
        return _is_open(self.parsed()[::-1], "close", "open")

    @property
    def open_start(self) -> bool:
        """Whether a value may begin the message."""
        return _is_open(self.parsed(), "open", "close")

    @property
    def fields(self) -> list[str]:
        """The fields the holes fill, in order."""
        return [piece.text for piece in self.parsed() if piece.kind == "hole" and piece.text != "_"]

    @property
    def skeleton(self) -> str:
        """The text with every hole as `{}` and optional parts kept: what is compared with vLLM's source."""
        return "".join("{}" if p.kind == "hole" else p.text for p in self.parsed())

    @property
    def skeletons(self) -> list[str]:
        """Every shape the text can take, optional parts present or absent, holes as `{}`."""
        shapes = [""]
        stack: list[list[str]] = []
        for piece in self.parsed():
            if piece.kind == "open":
                stack.append(list(shapes))
            elif piece.kind == "close":
                shapes = [*stack.pop(), *shapes]
            else:
                part = "{}" if piece.kind == "hole" else piece.text
                shapes = [shape + part for shape in shapes]
        return shapes

    def literals(self) -> list[list[str]]:
        """For each line of the message, the literal stretches that are always there, in order."""
        lines: list[list[str]] = [[]]
        depth = 0
        for piece in self.parsed():
            if piece.kind == "open":
                depth += 1
            elif piece.kind == "close":
                depth -= 1
            elif piece.kind == "literal" and not depth:
                first, *rest = piece.text.split("\n")
                lines[-1].append(first)
                for part in rest:
                    lines.append([part])
        return [[literal for literal in line if literal] for line in lines]

    @property
    def anchors(self) -> list[str]:
        """The longest literal of each line: what the scan looks for in raw bytes.

        Quotes, backslashes, `<`, `>`, `&`, `/` and characters outside ASCII are avoided, because JSON writers escape them.
        """
        anchors = []
        for line in self.literals():
            parts = [part for literal in line for part in re.split(r'["\\<>&/]|[^\x20-\x7e]+', literal)]
            best = max(parts, key=len, default="")
            if len(best) < 3:
                raise TemplateError(f"{self!r}: a line has no literal of three characters to find it by")
            anchors.append(best)
        return anchors

    def lines(self) -> tuple[re.Pattern[str], ...]:
        """Return one compiled expression for each line of the message (compiled at first use)."""
        if self._lines is None:
            lines = [_Expression()]
            depth = 0
            pieces = self.parsed()
            for at, piece in enumerate(pieces):
                if piece.kind == "open":
                    depth += 1
                    lines[-1].add("(?:")
                elif piece.kind == "close":
                    depth -= 1
                    lines[-1].add(")?")
                elif piece.kind == "hole":
                    # A hole inside an optional part is tried wherever the part may begin: bounded, unless it takes the rest.
                    inner = depth > 0 and any(p.kind != "close" for p in pieces[at + 1 :])
                    lines[-1].add(
                        self._hole(piece, bounded=self.embedded or inner), free=not depth and self._is_free(piece)
                    )
                else:
                    first, *rest = (_SPECIAL.sub(r"\\\g<0>", part) for part in piece.text.split("\n"))
                    lines[-1].add(first)
                    for part in rest:
                        lines.append(_Expression())
                        lines[-1].add(part)
            self._lines = tuple(re.compile(line.text, re.DOTALL) for line in lines)
        return self._lines

    def _hole(self, piece: _Piece, *, bounded: bool) -> str:
        if piece.text == "_":
            return f"(?:{_SOME if bounded else _ANY})"
        expression = _NUMBER if piece.unit is not None else self.record.hole(piece.text).expression
        if bounded and expression == _ANY:
            expression = _SOME
        return f"(?P<{piece.text}>{expression})"

    def _is_free(self, piece: _Piece) -> bool:
        """Whether a hole takes any text, as little of it as it can."""
        return piece.text == "_" or (piece.unit is None and self.record.hole(piece.text).expression == _ANY)

    def match(self, message: str) -> dict[str, str] | None:
        """Return the holes' texts if the whole message (all its lines) is this wording, else None."""
        groups: dict[str, str] = {}
        lines = message.split("\n")
        patterns = self.lines()
        if len(lines) != len(patterns):
            return None
        for pattern, line in zip(patterns, lines, strict=True):
            match = pattern.fullmatch(line) or (pattern.search(line) if self.embedded else None)
            if match is None:
                return None
            groups.update((n, text) for n, text in match.groupdict().items() if text is not None and n[0] != "_")
        return groups

    def read(self, groups: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the holes' texts."""
        if self._readers is None:
            self._readers = {
                piece.text: self._reader(piece) for piece in self.parsed() if piece.kind == "hole" and piece.text != "_"
            }
        values = dict(self.values)
        for field, read in self._readers.items():
            if field in groups:
                values[field] = read(groups[field])
        return values

    def _reader(self, piece: _Piece) -> Callable[[str], Any]:
        hole = self.record.hole(piece.text)
        if piece.unit is not None:
            return partial(read_gib, resolution=2 if piece.decimals is None else piece.decimals, unit=piece.unit)
        if piece.decimals is not None and hole.read is read_gib:
            return partial(read_gib, resolution=piece.decimals)
        return hole.read

    def render(self, values: Mapping[str, Any], *, optional: bool = True) -> str:
        """Return the message with these values, as vLLM would print it; optional parts without values are left out."""
        out = [""]
        missing = [False]
        for piece in self.parsed():
            if piece.kind == "open":
                out.append("")
                missing.append(not optional)
            elif piece.kind == "close":
                part, gone = out.pop(), missing.pop()
                out[-1] += "" if gone else part
            elif piece.kind == "literal":
                out[-1] += piece.text
            elif piece.text == "_":
                out[-1] += str(values.get("_", ""))
            elif values.get(piece.text) is None:
                missing[-1] = True
            else:
                value = values[piece.text]
                if piece.unit is not None:
                    number = float(value) * GIB / piece.unit
                    out[-1] += str(int(number)) if number.is_integer() else repr(number)
                    continue
                comma = piece.spec == "," and isinstance(value, int)
                out[-1] += f"{value:,}" if comma else self.record.hole(piece.text).write(value)
        return out[0]


_RECORDS: dict[str, type[Record]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """What one log message said: frozen, with the line it stood on and who printed it.

    Subclasses declare fields by annotation (a type named in `HOLES`, `| None` with a default where a wording may lack it),
    give each a docstring below it, and list their `templates`. Records hold what was said; what it means is decided later.
    """

    line: int = 0
    """Line number in the log, from 1."""
    time: str | None = None
    """Time as printed, with no claim about year or zone."""
    level: str | None = None
    """DEBUG, INFO, WARNING, ERROR or CRITICAL; None for text outside the logger."""
    process: str | None = None
    """Process tag, such as `EngineCore_DP0` or `Worker_TP1`."""
    pid: int | None = None
    """Process id from the tag."""
    rank: int | None = None
    """Rank, where the tag states one."""
    source: str | None = None
    """File and line in vLLM that logged it, such as `kv_cache_utils.py:1291`."""
    wrapper_time: str | None = None
    """Time the log's wrapper (container runtime, journal) added, as text."""
    container: str | None = None
    """What the wrapper says the line came from: container, pod, unit or task."""
    path: str | None = None
    """The file of a set of several that the line stands in."""
    template: ClassVar[Template | None] = None
    """The wording that was recognised; None for a record made otherwise."""

    templates: ClassVar[tuple[Template, ...]] = ()
    since: ClassVar[str] = ""

    _holes: ClassVar[dict[str, Hole]]
    _defaults: ClassVar[dict[str, Any]]
    _types: ClassVar[dict[str, str]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._types = {
            name: annotation
            for name, annotation in cls.__annotations__.items()  # its own alone, from Python 3.10 on
            if not name.startswith("_") and not str(annotation).startswith("ClassVar")
        }
        cls._defaults = {name: cls.__dict__[name] for name in cls._types if name in cls.__dict__}
        cls._holes = {}
        for template in cls.__dict__.get("templates", ()):
            template.record = cls
        if not cls.__name__.startswith("_"):
            if cls.__name__ in _RECORDS:
                raise TemplateError(f"two records named {cls.__name__}")
            _RECORDS[cls.__name__] = cls

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        given = self.__dict__
        for name in COMMON:
            if name in values:
                given[name] = values.pop(name)
        for name in cls._types:
            if name in values:
                given[name] = values.pop(name)
            elif name not in cls._defaults:
                raise TypeError(f"{cls.__name__} lacks {name}")
        if values:
            raise TypeError(f"{cls.__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), self.line, self.process, self.pid))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if name != "template")
        return f"{type(self).__name__}({values})"

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the record's values from the holes' values: for records whose payload needs taking apart."""
        return values

    @classmethod
    def field_names(cls) -> list[str]:
        """Return the record's own fields, in order, without the common ones."""
        return list(cls._types)

    @classmethod
    def required_fields(cls) -> list[str]:
        """Return the fields every wording must fill."""
        return [name for name in cls._types if name not in cls._defaults]

    @classmethod
    def hole(cls, field: str) -> Hole:
        """Return what a hole for `field` looks like. Raises `TemplateError` for a hole that is no field."""
        hole = cls._holes.get(field)
        if hole is None:
            try:
                annotation = str(cls._types[field])
                hole = HOLES[annotation.replace(" | None", "").strip()]
            except KeyError as error:
                raise TemplateError(f"{cls.__name__}: no field or hole type for {field}: {error}") from None
            cls._holes[field] = hole
        return hole

    def own_values(self) -> dict[str, Any]:
        """Return the record's own fields and values."""
        return {name: getattr(self, name) for name in self._types}

    def to_dict(self) -> dict[str, Any]:
        """Return the record as the JSON contract has it: name, line, origin, then the fields."""
        common = {name: getattr(self, name) for name in COMMON[:7]}
        for name in COMMON[7:]:
            if (value := getattr(self, name)) is not None:
                common[name] = value
        return {"record": type(self).__name__, **common, **self.own_values()}


COMMON = ("line", "time", "level", "process", "pid", "rank", "source", "wrapper_time", "container", "path")
"""The fields every record has."""


def all_records() -> dict[str, type[Record]]:
    """Return every record class by name, importing the modules that define them."""
    import vlogcheck.records  # noqa: F401  (its import fills the registry)

    return _RECORDS


def all_templates() -> list[Template]:
    """Return the templates of every record, in the order they are tried."""
    return [template for record in all_records().values() for template in record.templates]
