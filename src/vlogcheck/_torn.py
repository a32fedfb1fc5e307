"""Torn: messages that processes wrote into each other, and values of which a piece may be missing or belong to another.

Where a message begins behind another one in a physical line, the one before may have lost its end: to the end of the line, or
to the next one. What ends with fixed words shows whether it is whole. What ends with a value does not, so it is not read.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vlogcheck.lines import LogLine
    from vlogcheck.template import Record, Template

__all__ = ["Tears"]

_REST = 8
"""Lines among which the end of a message may be that another process wrote into."""
_TELLING = 12
"""Characters of the beginning of a wording that no other text has by chance."""
_ENDS = (".", "!", "…")
"""How a sentence ends: what is cut at a blank hardly ever is cut there."""


class Tears:
    """Remembers the last message that was written into; `candidates` finds the templates whose literal a text holds."""

    def __init__(self, templates: Sequence[Template], candidates: Callable[[str], list[Template]]) -> None:
        self._templates = templates
        self._candidates = candidates
        self._heads: list[str] = []
        self._last: tuple[int, str | None] | None = None  # physical line and container, while the rest may follow

    def tell(self, line: LogLine, record: Record | None) -> bool:
        """Whether a message is torn and what it seems to say must not be used. To be asked about each, in order."""
        torn = record is not None and (line.glued or self._last is not None) and self._may_be_cut(line, record.template)
        if line.glued:
            self._last = line.number, line.container
            return torn or record is None
        if (
            line.followed and record is None and not line.message.endswith(_ENDS) and self._is_piece(line.message)
        ):  # cut at a blank
            self._last = line.number, line.container
            return True
        return torn

    def _may_be_cut(self, line: LogLine, template: Template | None) -> bool:
        if template is None:
            return False
        if line.glued:
            return template.open_end
        if self._last is None or self._last[1] != line.container:
            return False
        number = self._last[0]
        if line.number == number:  # the last message of the line may have got the end of the one before
            return template.open_end and not line.followed
        self._last = None  # what stands without a prefix may be that end
        return line.number < number + _REST and line.source is None and line.level is None and template.open_start

    def _is_piece(self, message: str) -> bool:
        """Whether a text and a blank could be the beginning of a known wording; a short one says too little to rule it out."""
        if len(message) < _TELLING:
            return True
        if not self._heads:
            self._heads = sorted({template.head for template in self._templates})
        at = bisect_left(self._heads, message + " ")
        if at < len(self._heads) and self._heads[at].startswith(message + " "):
            return True
        known = any(len(head) >= _TELLING and message.startswith(head) for head in self._heads)
        return known or bool(self._candidates(message + " "))
