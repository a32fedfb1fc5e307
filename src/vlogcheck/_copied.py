"""Undoing what copying, terminals and web pages did to a line."""

from __future__ import annotations

import re

from vlogcheck._lazy import pattern

__all__ = ["ANSI", "as_printed", "strip_ansi", "unescape_json", "without_border"]

# Escape sequences of colours that were made visible, or lost their escape character in copying.
_VISIBLE = pattern(
    r"(?:\^\[|ESC|\u241b|(?<!\\)\\(?:x1[bB]|u001[bB]|033|e)|#033|\x1b)\[(?:\d{1,3}(?:;\d{1,3}){0,6})?m"
    r"|\[\d{1,3}(?:;\d{1,3}){0,6}m"  # not `[m`, which a file's name may follow
)
_FRAMES = ("\u2502", "\u2503", "\u2551", "|")
_RESETS = ("[0m", "[m", "[0;0m")
_ENTITY = pattern(r"&(?:#\d{2,5}|#x[0-9a-fA-F]{2,4}|quot|apos|gt|lt|amp|nbsp);")
ANSI = pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def strip_ansi(text: str) -> str:
    """Return the text without terminal escape sequences."""
    return ANSI.sub("", text) if "\x1b" in text else text


_LINKED = pattern(r"\[([\w./\-]{1,120}\.py:\d{1,6})\]\(https?://\1/?\)")
"""A file and its line that an editor took for the address of a page."""


def as_printed(text: str) -> str:
    """Undo what copying from a terminal or a web page did to a line."""
    if "[" in text and any(reset in text for reset in _RESETS):
        text = _VISIBLE.sub("", text)
    if "&" in text and _ENTITY.search(text):
        from html import unescape

        text = unescape(text).replace("\xa0", " ")
    if "](http" in text:
        text = _LINKED.sub(r"\1", text)
    return text.replace("^M", "\r") if "^M" in text else text  # as pagers show it


def without_border(text: str) -> str:
    """Cut off the frame of a terminal pane or a table behind a message."""
    last = text[-1:]
    if last not in _FRAMES:
        return text
    inside = text[:-1].rstrip()
    return inside if len(text) - 1 - len(inside) >= (2 if last == "|" else 1) else text


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def unescape_json(text: str) -> str:
    """Undo JSON's escapes in a document that was cut and so is no JSON any more (a notebook's output, say)."""
    plain = re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[0]), text
    )
    # Two escapes may be the halves of one character; half of one alone no later step could encode.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
