"""Read a Python literal as `repr` prints it: strings, numbers, None, True, False, lists, tuples and dicts of them.

Python's own `ast.literal_eval` is not for text of strangers: it may exhaust the stack, warns about odd escapes, and in some
releases (3.11.0 to 3.11.4 among them) two threads that use it at the same time break each other.
"""

from __future__ import annotations

import re
from typing import Any

from vlogcheck._lazy import pattern

__all__ = ["read_value"]

_DEEPEST = 100
_TOKEN = pattern(
    r"\s*(?:(?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\")"
    r"|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<word>None|True|False)(?!\w)"
    r"|(?P<mark>[\[({\])},:]))\s*",
    re.DOTALL,
)
_WORDS = {"None": None, "True": True, "False": False}
_CLOSES = {"]": "[", ")": "(", "}": "{"}
_ESCAPE = pattern(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES = {
    "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": "",
}  # fmt: skip


class _Open:
    """A bracket that is open: what is in it so far, and what the last comma or colon was."""

    __slots__ = ("bracket", "commas", "fresh", "items", "key", "keys")

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket
        self.items: list[Any] = []
        self.keys: list[Any] = []
        self.key = False  # a key's colon was read, its value was not
        self.fresh = True  # a value may come: at the beginning, behind a comma or a colon
        self.commas = 0

    def closed(self) -> Any:
        """Return the whole. Raises `ValueError` where it is none."""
        if self.key or (self.bracket == "{" and len(self.keys) != len(self.items)):
            raise ValueError("no dict")
        if self.bracket == "{":
            return dict(zip(self.keys, self.items, strict=True))
        if self.bracket == "[":
            return self.items
        if len(self.items) == 1 and not self.commas:
            return self.items[0]
        return tuple(self.items)


def read_value(text: str) -> Any:
    """Return the value of a literal. Raises `ValueError` or `TypeError` for text that is none. Never recurses."""
    stack: list[_Open] = []
    at, size = 0, len(text)
    scan = _TOKEN.match
    while True:
        found = scan(text, at)
        if found is None:
            raise ValueError("no literal")
        at = found.end()
        kind = found.lastgroup
        if kind == "string":
            value: Any = _string(found["string"])
        elif kind == "number":
            value = _number(found["number"])
        elif kind == "word":
            value = _WORDS[found["word"]]
        else:
            mark = found["mark"]
            if mark in "[({":
                if (stack and not stack[-1].fresh) or len(stack) >= _DEEPEST:
                    raise ValueError("no literal")
                stack.append(_Open(mark))
                continue
            if not stack:
                raise ValueError("no literal")
            top = stack[-1]
            if mark in ",:":
                _separate(top, mark)
                continue
            if _CLOSES[mark] != top.bracket:
                raise ValueError("no literal")
            if top.fresh and top.commas == 0 and top.items:
                raise ValueError("no literal")
            value = stack.pop().closed()
        if not stack:
            if at != size:
                raise ValueError("more than a literal")
            return value
        top = stack[-1]
        if not top.fresh:
            raise ValueError("two values without a comma")
        top.fresh = top.key = False
        top.items.append(value)


def _separate(top: _Open, mark: str) -> None:
    """Take a comma or a colon."""
    if top.fresh:
        raise ValueError("no value in front of it")
    top.fresh = True
    if mark == ",":
        if top.bracket == "{" and len(top.keys) != len(top.items):
            raise ValueError("a set is no dict")
        top.commas += 1
        return
    if top.bracket != "{" or len(top.keys) != len(top.items) - 1:
        raise ValueError("no dict")
    key = top.items.pop()
    hash(key)
    top.keys.append(key)
    top.key = True


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        if text.lstrip("+-").isdecimal():
            raise  # more digits than Python reads
        return float(text)


def _string(text: str) -> str:
    inner = text[1:-1]
    return _ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(int(code, 16))
    if found[4]:
        return chr(int(found[4], 8))
    return _ESCAPES.get(found[5], found[0])
