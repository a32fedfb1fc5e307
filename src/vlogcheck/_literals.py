"""Read Python literals out of log text without evaluating anything.

Log lines quote `repr()` of dicts and argparse namespaces: `{'model': 'x', 'max_model_len': 4096}` or
`Namespace(model='x', dispatch_function=<function serve at 0x7f>)`. They may be cut anywhere and may hold values that are
not literals; what cannot be read stays text.
"""

from __future__ import annotations

import ast
import re
from typing import Any

__all__ = ["read_call", "read_keywords", "read_literal"]

_OPEN = {"{": "}", "[": "]", "(": ")", "<": ">"}
_CLOSE = set(_OPEN.values())
_LIMIT = 1 << 20
_DEPTH = 8  # deeper nesting stays text: a hostile line must not cost more than a few passes over it


def read_literal(text: str, depth: int = 0) -> Any:
    """Return the value of a literal (`{…}`, `[…]`, a number, a string), or the text itself where it is none."""
    text = text.strip()
    if len(text) > _LIMIT or depth > _DEPTH:
        return text
    try:
        value = ast.literal_eval(text)
        return value if _plain(value) else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    if text.startswith("{") and text.endswith("}"):
        return {_key(key): read_literal(value, depth + 1) for key, value in _pairs(text[1:-1], ":")}
    return read_call(text, depth + 1) or text


def read_call(text: str, depth: int = 0) -> dict[str, Any] | None:
    """Return the keyword arguments of `Name(a=1, b='x')` as a dict, or None if the text is no such call."""
    match = re.match(r"[A-Za-z_][\w.]*\(", text)
    if match is None or not text.endswith(")") or len(text) > _LIMIT:
        return None
    return read_keywords(text[match.end() : -1], depth)


def read_keywords(text: str, depth: int = 0) -> dict[str, Any]:
    """Return `a=1, b='x', …` as a dict; a piece without a key is dropped."""
    return {key: read_literal(value, depth + 1) for key, value in _pairs(text, "=") if re.fullmatch(r"[\w.\-]+", key)}


def _key(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def _pairs(text: str, separator: str) -> list[tuple[str, str]]:
    """Split `k=v, k=v` at the commas and separators outside brackets and quotes."""
    pairs: list[tuple[str, str]] = []
    depth = 0
    quote = ""
    start = 0
    cut = -1
    at = 0
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth = max(depth - 1, 0)
        elif char == separator and not depth and cut < 0:
            cut = at
        elif char == "," and not depth:
            if cut >= 0:
                pairs.append((text[start:cut].strip(), text[cut + 1 : at].strip()))
            start, cut = at + 1, -1
        at += 1
    if cut >= 0:
        pairs.append((text[start:cut].strip(), text[cut + 1 :].strip()))
    return pairs
