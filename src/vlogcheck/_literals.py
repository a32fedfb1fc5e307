"""Read Python literals out of log text without evaluating anything.

Log lines quote `repr()` of dicts and namespaces: `{'model': 'x', 'max_model_len': 4096}` or
`Namespace(model='x', dispatch_function=<function serve at 0x7f>)`. They may be cut anywhere and may hold values
that are not literals; what cannot be read stays text.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from vlogcheck._lazy import pattern
from vlogcheck._python_values import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["read_arguments", "read_call", "read_config", "read_keywords", "read_literal"]

_OPEN = {"{": "}", "[": "]", "(": ")", "<": ">"}
_CLOSE = {close: open_ for open_, close in _OPEN.items()}
_LIMIT = 1 << 20
_DEPTH = 8  # deeper nesting stays text: a hostile line must not cost more than a few passes over it


def read_literal(text: str, depth: int = 0) -> Any:
    """Return the value of a literal (`{…}`, `[…]`, a number, a string), or the text itself where it is none.

    A dict may hold values that are no literals (enums, objects): they stay text. What is returned, JSON can hold.
    """
    text = text.strip()
    if len(text) > _LIMIT or depth > _DEPTH:
        return text
    try:
        value = read_value(text)
    except (ValueError, TypeError):
        return _read_pairs(text, depth)
    return value if _plain(value) else _read_pairs(text, depth)


def read_call(text: str, depth: int = 0) -> dict[str, Any] | None:
    """Return the keyword arguments of `Name(a=1, b='x')` as a dict, or None if the text is no such call."""
    match = _CALL.match(text)
    if match is None or not text.endswith(")") or len(text) > _LIMIT:
        return None
    return read_keywords(text[match.end() : -1], depth)


def read_keywords(text: str, depth: int = 0) -> dict[str, Any]:
    """Return `a=1, b='x', …` as a dict; a piece without a key is dropped, an unbalanced `)` ends the list."""
    return {key: read_literal(value, depth + 1) for key, value in _pairs(text, "=") if re.fullmatch(r"[\w.\-]+", key)}


def read_config(text: str) -> dict[str, Any]:
    """Return an engine's configuration: `a=1, b='x', …`, also with an unbalanced `)` or in `VllmConfig(…)`."""
    return read_keywords(text[len(_CONFIG) :] if text.startswith(_CONFIG) else text)


def read_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments in `Namespace(…)` or `{'name': value, …}`, or None if the text is neither.

    Where the line was cut, the last argument is left out: its value may be cut too.
    """
    text = text.strip()
    if len(text) > _LIMIT:
        return None
    if text.startswith("Namespace("):
        pairs, close = _pairs(text[len("Namespace(") :], "="), ")"
    elif re.match(r"\{['\"]", text):
        pairs, close = _pairs(text[1:], ":"), "}"
    else:
        return None
    if not text.endswith(close):
        pairs = pairs[:-1]
    return {_key(key): read_literal(value, 1) for key, value in pairs}


_CALL = pattern(r"[A-Za-z_][\w.]*\(")
_CONFIG = "VllmConfig("


def _read_pairs(text: str, depth: int) -> Any:
    """Read a dict or a call piece by piece; the text itself where it is neither."""
    if text.startswith("{") and text.endswith("}"):
        pairs = _pairs(text[1:-1], ":")
        if not pairs or any(re.match(r"[a-z_]", key) for key, _ in pairs):
            return text  # a set, or keys that are no values: not what repr() prints of a dict
        return {_key(key): read_literal(value, depth + 1) for key, value in pairs}
    if (text.startswith("[") and text.endswith("]")) or (text.startswith("(") and text.endswith(")")):
        return [read_literal(value, depth + 1) for _, value in _split(text[1:-1])]
    return read_call(text, depth + 1) or text


def _key(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= 512  # a larger one is no setting of anything, and no float either
    return value is None or isinstance(value, str)


def _pairs(text: str, separator: str) -> list[tuple[str, str]]:
    """Return the keys and values of `k=v, k=v`; a piece without a key is dropped."""
    return [(key, value) for key, value in _split(text, separator) if key is not None]


def _split(text: str, separator: str = "") -> Iterator[tuple[str | None, str]]:
    """Split at the commas and separators outside brackets and quotes; stop at a closing bracket nobody opened.

    Quotes and `<` count only at the beginning of a value: an apostrophe or a comparison inside a word is text.
    """
    stack: list[str] = []
    depth = dict.fromkeys(_OPEN, 0)  # how many of each are in the stack
    quote = ""
    start = 0
    cut = -1
    at = 0
    inside = False  # the character before belongs to a word
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"" and not inside:
            quote = char
        elif char in _OPEN and not (char == "<" and inside):
            stack.append(char)
            depth[char] += 1
        elif char in _CLOSE:
            if depth[_CLOSE[char]] and (char != ">" or stack[-1] == "<"):
                while (closed := stack.pop()) != _CLOSE[char]:
                    depth[closed] -= 1
                depth[closed] -= 1
            elif not stack and char != ">":
                break
        elif not stack and char == separator and cut < 0:
            cut = at
        elif not stack and char == ",":
            yield _piece(text, start, cut, at)
            start, cut = at + 1, -1
        inside = char.isalnum() or char == "_"
        at += 1
    if text[start:at].strip():
        yield _piece(text, start, cut, at)


def _piece(text: str, start: int, cut: int, end: int) -> tuple[str | None, str]:
    if cut < 0:
        return None, text[start:end].strip()
    return text[start:cut].strip(), text[cut + 1 : end].strip()
