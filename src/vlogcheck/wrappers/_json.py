"""JSON lines: Docker json-file, journald, log shippers, logging formatters, notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlogcheck._lazy import pattern

from ._base import Layer, Registration, State, clean, without_newline

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_LONE_STRING = pattern(rf"(?P<indent>[ \t]*)(?P<value>{_STRING})[ \t]*,?$")
_PAIR = pattern(
    r'[ \t]*"(?P<key>log|message|msg|MESSAGE|textPayload|text|data|line)"[ \t]*:[ \t]*'
    rf"\[?(?P<value>{_STRING})\]?[ \t]*,?$"
)
_CUT = pattern(rf'"(?:log|message|msg|MESSAGE|textPayload)"\s*:\s*(?P<value>{_STRING})')
_EXPORT = pattern(r"[ \t]*MESSAGE=")


def _load(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _string(literal: str) -> str | None:
    value = _load(literal)
    return without_newline(clean(value)) if isinstance(value, str) else None


def _notebook(obj: Mapping[str, Any]) -> Layer | None:
    """Put together the outputs of a notebook that was saved on one line."""
    parts: list[str] = []
    for cell in obj["cells"]:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            if not isinstance(output, dict):
                continue
            data = output.get("data")
            text = output.get("text", data.get("text/plain") if isinstance(data, dict) else output.get("traceback"))
            if isinstance(text, list):
                text = ("\n" if "traceback" in output else "").join(part for part in text if isinstance(part, str))
            if isinstance(text, str):
                parts.append(without_newline(clean(text)))
    return Layer("\n".join(parts))


def _json(text: str, state: State) -> Layer | None:
    """Read an object per line, also as the element of an array written one element per line."""
    body = text.strip(" \t\r")
    if body[:1] in "[,":
        body = body[1:].lstrip()
    if body[:1] != "{":
        return None
    obj = _load(body.rstrip(",]")) if body[-1] in ",]" else _load(body)
    if not isinstance(obj, dict):
        # A record cut off behind its message still shows the message.
        found = _CUT.search(body[:200_000]) if body.startswith('{"') else None
        return Layer(value) if found and (value := _string(found["value"])) is not None else None
    if isinstance(obj.get("cells"), list):
        return _notebook(obj)
    from ._json_records import layer_of

    return layer_of(obj, state)


def _pretty(text: str, state: State) -> Layer | None:
    """One line of indented JSON: a notebook's output line, or a record's message."""
    body = text.rstrip(" \t\r")
    if found := _LONE_STRING.match(body):
        literal = found["value"]
        if found["indent"] or literal.endswith('\\n"'):
            value = _string(literal)
            return Layer(value) if value is not None else None
    if (found := _PAIR.match(body)) and (value := _string(found["value"])) is not None:
        return Layer(value)
    if found := _EXPORT.match(text):  # journalctl -o export and -o verbose
        return Layer(text[found.end() :])
    return None


FAMILIES: tuple[Registration, ...] = (
    ("{[,", _json),
    ('" \tM', _pretty),
)
