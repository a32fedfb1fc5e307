"""A message matched with its wording step by step, without the wording's expression.

Most wordings match once or twice in a log, and compiling the expression of each takes twenty times as long as these steps. They
are the first way the expression itself would try, so what they find is what it would find; where they fail they tell nothing but
that a literal is missing, and the expression has to be asked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Union

from vlogcheck._holes import ANY, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vlogcheck._holes import Hole
    from vlogcheck._wording import Piece

__all__ = ["Step", "has_literals", "steps", "take"]

Step = Union[str, "tuple[str, re.Pattern[str] | None]"]
"""A literal, or a hole: its field and its expression, None where it takes any text."""


@lru_cache(maxsize=64)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def steps(pieces: Sequence[Piece], hole_of: Callable[[str], Hole]) -> list[Step]:
    """Return the steps of a wording of one line; none where the way through it is not known beforehand.

    That is with optional parts, and where no literal follows a hole that takes any text.
    """
    found: list[Step] = []
    free = False
    for piece in pieces:
        if piece.kind == "literal":
            found.append(piece.text)
            free = False
        elif piece.kind != "hole" or free:
            return []
        else:
            expression = (
                ANY if piece.text == "_" else NUMBER if piece.unit is not None else hole_of(piece.text).expression
            )
            free = expression in (ANY, ".*")
            if expression == ".*" and piece is not pieces[-1]:
                return []
            found.append((piece.text, None if free else _compiled(expression)))
    return found


def take(steps: Sequence[Step], message: str) -> dict[str, str] | None:
    """Return the holes' texts, None where the steps do not lead to the end of the message."""
    texts: dict[str, str] = {}
    at = 0
    free = ""
    for step in steps:
        if isinstance(step, str):
            if free:
                end = message.find(step, at)
                if end < 0:
                    return None
                texts[free] = message[at:end]
                free = ""
                at = end
            elif not message.startswith(step, at):
                return None
            at += len(step)
        elif step[1] is None:
            free = step[0]
        else:
            match = step[1].match(message, at)
            if match is None:
                return None
            texts[step[0]] = match[0]
            at = match.end()
    if free:
        texts[free] = message[at:]
    elif at < len(message):
        return None
    return texts


def has_literals(steps: Sequence[Step], message: str) -> bool:
    """Whether the literals stand in the message in this order: without them no expression needs to be asked."""
    at = 0
    for step in steps:
        if isinstance(step, str):
            at = message.find(step, at)
            if at < 0:
                return False
            at += len(step)
    return True
