"""Message templates: a log line as vLLM's own wording with named holes, which fill a record's fields.

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
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vlogcheck._holes import HOLES, Address, Hole, Kernels, Literal, Name, Size, TemplateError, Word, read_gib
from vlogcheck._record import COMMON, Record, all_records, all_templates
from vlogcheck._steps import has_literals, steps, take
from vlogcheck._wording import Piece, expressions, is_open, parse
from vlogcheck.units import GIB

__all__ = [
    "COMMON", "HOLES", "Address", "Hole", "Kernels", "Literal", "Name", "Record", "Size", "Template", "TemplateError", "Word",
    "all_records", "all_templates", "read_gib",
]  # fmt: skip

_HEAD = re.compile(r"[{}\n]|\[\[|\]\]")
_QUICK = 50
"""Messages matched step by step before the expression is compiled, which takes about as long."""


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
        "_head", "_lines", "_quick", "_readers", "_steps", "embedded", "example", "pieces", "record", "source", "text",
        "values", "versions", "wraps",
    )  # fmt: skip

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
        self.pieces: tuple[Piece, ...] | None = None
        self._head: str | None = None
        self._lines: tuple[re.Pattern[str], ...] | None = None
        self._readers: dict[str, Callable[[str], Any]] | None = None
        self._steps: list[Any] | None = None
        self._quick = _QUICK

    def __repr__(self) -> str:
        return f"<Template of {self.record.__name__}: {self.text!r}>"

    def parsed(self) -> tuple[Piece, ...]:
        """Return the pieces of the text in order."""
        if self.pieces is None:
            self.pieces = tuple(parse(self.text))
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
        return is_open(self.parsed()[::-1], "close", "open")

    @property
    def open_start(self) -> bool:
        """Whether a value may begin the message."""
        return is_open(self.parsed(), "open", "close")

    @property
    def fields(self) -> list[str]:
        """The fields the holes fill, in order."""
        return [piece.text for piece in self.parsed() if piece.kind == "hole" and piece.text != "_"]

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
            self._lines = expressions(self.parsed(), self.record.hole, embedded=self.embedded)
        return self._lines

    def take(self, message: str) -> Mapping[str, str | None] | None:
        """Return the holes' texts if the message is this wording of one line, else None.

        The expression is compiled only once it has been needed, or would have been many times.
        """
        if self._lines is None and self._quick:
            self._steps = self._steps or steps(self.parsed(), self.record.hole)
            self._quick = self._quick - 1 if self._steps else 0
            if self._steps:
                texts = take(self._steps, message)
                if texts is not None or not has_literals(self._steps, message):
                    return texts
        match = self.lines()[0].fullmatch(message)
        return None if match is None else match.groupdict()

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

    def _reader(self, piece: Piece) -> Callable[[str], Any]:
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
