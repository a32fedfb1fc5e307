"""Message texts with holes, and the expressions that build them.

A `Text` is a tuple of literals (`str`) and holes (`None`), never two literals in a row. An expression has several texts
when it is conditional, so every function here maps to a tuple of texts, at most `LIMIT` of them.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Text = tuple["str | None", ...]
"""Literals and holes in order."""

Texts = tuple[Text, ...]
"""What an expression may be: one text per branch of it."""

HOLE: Text = (None,)
UNKNOWN: Texts = (HOLE,)
LIMIT = 48
"""Alternatives kept for one expression. Beyond it the newest part is kept as a hole instead of multiplying."""

_PERCENT = re.compile(
    r"%(?:\((?P<name>\w+)\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<kind>[diouxXeEfFgGcrsa%])"
)


def literal(text: str) -> Texts:
    return ((text,),) if text else ((),)


def tidy(parts: Iterable[str | None]) -> Text:
    """Join neighbouring literals; keep holes apart even when they touch."""
    out: list[str | None] = []
    for part in parts:
        if part is None:
            out.append(None)
        elif part:
            if out and isinstance(out[-1], str):
                out[-1] += part
            else:
                out.append(part)
    return tuple(out)


def union(*choices: Texts) -> Texts:
    """Every alternative once, in order of appearance; a hole stands for the rest beyond `LIMIT`."""
    seen = tuple(dict.fromkeys(itertools.chain.from_iterable(choices)))
    return seen if len(seen) <= LIMIT else (*seen[: LIMIT - 1], HOLE)


def concat(parts: Sequence[Texts]) -> Texts:
    """Every combination of the parts' alternatives."""
    result: Texts = ((),)
    for part in parts:
        choices = part if len(part) * len(result) <= LIMIT else UNKNOWN
        result = tuple(dict.fromkeys(tidy((*left, *right)) for left in result for right in choices))
    return result


def constant(texts: Texts) -> bool:
    """Whether every alternative is known to the last character."""
    return all(part is not None for text in texts for part in text)


def plain(text: Text) -> str | None:
    """Return the text itself where it has no hole."""
    return "".join(part for part in text if part is not None) if None not in text else None


def percent(template: Texts, arguments: Sequence[Texts] | None, named: dict[str, Texts] | None = None) -> Texts:
    """`template % arguments`; `arguments` None: not known one by one (a single name, a dict)."""
    return union(*(_percent_one(text, arguments, named or {}) for text in template))


def _percent_one(text: Text, arguments: Sequence[Texts] | None, named: dict[str, Texts]) -> Texts:
    parts: list[Texts] = []
    queue = list(arguments or ())
    for part in text:
        if part is None:
            parts.append(UNKNOWN)
            continue
        at = 0
        for found in _PERCENT.finditer(part):
            parts.append(literal(part[at : found.start()]))
            at = found.end()
            if found["kind"] == "%":
                parts.append(literal("%"))
                continue
            value = named.get(found["name"], UNKNOWN) if found["name"] else queue.pop(0) if queue else UNKNOWN
            parts.append(value if found["kind"] == "s" and found[0].endswith("s") and len(found[0]) == 2 else UNKNOWN)
        parts.append(literal(part[at:]))
    return concat(parts)


_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}!:]*)(?:![rsa])?(?::(?P<spec>(?:[^{}]|\{[^{}]*\})*))?\}")


def brace(template: Texts, arguments: Sequence[Texts], named: dict[str, Texts]) -> Texts:
    """`template.format(*arguments, **named)`."""
    return union(*(_brace_one(text, arguments, named) for text in template))


def _brace_one(text: Text, arguments: Sequence[Texts], named: dict[str, Texts]) -> Texts:
    parts: list[Texts] = []
    auto = 0
    for part in text:
        if part is None:
            parts.append(UNKNOWN)
            continue
        at = 0
        for found in _FIELD.finditer(part):
            parts.append(literal(part[at : found.start()]))
            at = found.end()
            if found[0] in ("{{", "}}"):
                parts.append(literal(found[0][0]))
                continue
            name = found["name"] or ""
            if not name:
                name, auto = str(auto), auto + 1
            value = arguments[int(name)] if name.isdigit() and int(name) < len(arguments) else named.get(name, UNKNOWN)
            parts.append(UNKNOWN if found["spec"] else value)
        parts.append(literal(part[at:]))
    return concat(parts)


def show(text: Text) -> str:
    """Readable form: holes as `{}`, braces of the message doubled."""
    return "".join("{}" if part is None else part.replace("{", "{{").replace("}", "}}") for part in text)
