"""A message matched with its wording step by step, without the wording's expression.

Most wordings match once or twice in a log, and compiling the expression of each takes twenty times as long as these steps. They
are the first way the expression itself would try, so what they find is what it would find; where they fail they tell nothing but
that a literal is missing, and the expression has to be asked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vlogcheck._holes import ANY, HOLES, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vlogcheck._holes import Hole
    from vlogcheck._wording import Piece

__all__ = ["has_literals", "steps", "take"]

# A step is a literal, a hole, a list of the steps of an optional part, or None: nothing is known from here on. A hole is its
# field, its expression (None where it takes any text), and whether any beginning of what the expression matches would match too.
_ASK = -1
_ABSENT = -2
_WORD = HOLES["Word"].expression


@lru_cache(maxsize=64)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def steps(pieces: Sequence[Piece], hole_of: Callable[[str], Hole]) -> list[Any]:
    """Return the steps of a wording of one line; none where the way through it is not known beforehand.

    That is where no literal follows a hole that takes any text.
    """
    left = iter(pieces)
    found = _steps(left, hole_of, inside=False)
    return found if all(step is not None for step in found) else []


def _steps(left: Iterator[Piece], hole_of: Callable[[str], Hole], *, inside: bool) -> list[Any]:
    found: list[Any] = []
    free = greedy = False
    for piece in left:
        if piece.kind == "close":
            break
        if greedy or (free and piece.kind != "literal"):
            found.append(None)
        greedy = False
        if piece.kind == "open":
            found.append(_steps(left, hole_of, inside=True))
        elif piece.kind == "literal":
            found.append(piece.text)
            free = False
        else:
            expression = (
                ANY if piece.text == "_" else NUMBER if piece.unit is not None else hole_of(piece.text).expression
            )
            greedy = expression == ".*"  # at the end there is no difference
            free = greedy or expression == ANY
            if free and inside:
                found.append(None)  # it takes a bounded part of the text
            found.append((piece.text, None if free else _compiled(expression), expression == _WORD))
    return found


def take(steps: Sequence[Any], message: str) -> dict[str, str] | None:
    """Return the holes' texts, None where the steps do not lead to the end of the message."""
    texts: dict[str, str] = {}
    return texts if _walk(steps, message, 0, texts) == len(message) else None


def _walk(steps: Sequence[Any], message: str, at: int, texts: dict[str, str]) -> int:
    """Return where the steps lead, or why they do not."""
    free: str | None = None  # the hole that takes what stands before the next literal
    begin = at  # where that hole begins, or a word
    before: tuple[str, str] | None = None  # such a hole and its literal
    word = False
    for number, step in enumerate(steps):
        failed = _ASK if number else _ABSENT
        if isinstance(step, str):
            if free is not None:
                before = free, step
                free = None
                end = message.find(step, begin)
            else:
                before = None
                end = at if message.startswith(step, at) else -1
                if end < 0 and word:  # the word took some of what follows it
                    end = message.rfind(step, begin + 1, at + len(step) - 1)
                    texts[steps[number - 1][0]] = message[begin:end]
            if end < 0:
                return failed
            if before is not None:
                texts[before[0]] = message[begin:end]
            at = end + len(step)
            word = False
            continue
        if isinstance(step, list):
            end = _walk(step, message, at, texts)
            if end == _ASK:
                return _ASK
            at = max(at, end)
        elif step is None:
            return _ASK
        elif step[1] is None:
            free, begin = step[0], at
        else:
            match = step[1].match(message, at)
            while match is None and before is not None:  # what stands before the literal may be longer
                end = message.find(before[1], at - len(before[1]) + 1)
                if end < 0:
                    return _ASK
                texts[before[0]] = message[begin:end]
                at = end + len(before[1])
                match = step[1].match(message, at)
            if match is None:
                return failed
            texts[step[0]] = match[0]
            begin, at = at, match.end()
        before = None
        word = isinstance(step, tuple) and step[2]
    if free is not None:
        texts[free] = message[begin:]
        return len(message)
    return at


def has_literals(steps: Sequence[Any], message: str) -> bool:
    """Whether the literals stand in the message in this order: without them no expression needs to be asked."""
    at = 0
    for step in steps:
        if isinstance(step, str):
            at = message.find(step, at)
            if at < 0:
                return False
            at += len(step)
    return True
