"""Recognise: the first template that matches a whole message makes it a record.

Candidates come from a multi-pattern search for the templates' literals, so a message costs one pass over its text whatever
the number of templates, and a template's expression is compiled only when its literal has been seen.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vlogcheck._anchors import fixed_texts
from vlogcheck._lazy import pattern
from vlogcheck._requests import REQUEST_MESSAGE
from vlogcheck._torn import Tears
from vlogcheck._tuples import NamedTuple
from vlogcheck._unfinished import Unfinished
from vlogcheck.template import Record, Template, all_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vlogcheck.lines import LogLine

__all__ = ["Recogniser"]

_RAISED = pattern(
    r"\W*(?:(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?:\([\w.]+\))?: |(?:Value|Assertion) error, )"
)
"""An error's class in front of its text; pydantic repeats the text of a validator's error in its own words."""
_CALM = ("INFO", "DEBUG")
_ANCHOR = 12
"""Characters of a template's longest literal that are looked for: more cost more to prepare than they save."""
_DEEPEST = 3
"""How many messages that quote another message are opened, one inside the other."""


class Recogniser:
    """Turns messages into records. Holds the unfinished multi-line message of each process, nothing else."""

    def __init__(self, templates: Iterable[Template] | None = None) -> None:
        if templates is None:
            templates = [template for record in all_records().values() for template in record.templates]
        self.templates, self.texts, self._by_anchor, self._find = _prepared(tuple(templates))
        self._pending = Unfinished()
        self._tears = Tears(self.templates, self.candidates)
        self.waits = False
        """Whether the last line that was asked about is part of an unfinished message."""
        self.torn = False
        """Whether it cannot be told apart from what another process wrote at the same time."""

    @property
    def unfinished(self) -> int:
        """How many messages wait for their next line."""
        return len(self._pending)

    def forget(self) -> None:
        """Wait no more: the next lines are not coming."""
        self._pending.forget()

    def dropped(self) -> list[LogLine]:
        """Return, once, the first lines of messages that began as a known one and went on otherwise."""
        return self._pending.dropped()

    def candidates(self, message: str) -> list[Template]:
        """Return the templates whose literal stands in the message, in the order they are tried."""
        hits = self._find(message)
        if not hits:
            return []
        order: set[int] = set()
        for hit in hits:
            order.update(self._by_anchor[hit])
        return [self.templates[index] for index in sorted(order)]

    def recognise(self, line: LogLine) -> Record | None:
        """Return the record a message makes, or None while it is unknown or unfinished. Never raises."""
        self.waits = self.torn = False
        if self._pending and ((record := self._continue(line)) or self.waits):
            return record
        message = line.message
        found = self._match(line, message) if line.source is None or not REQUEST_MESSAGE.match(message) else None
        if found is None and (raised := _RAISED.match(message)):
            found = self._match(line, message[raised.end() :])
        self.torn = self._tears.tell(line, found)
        return None if self.torn else found

    def _match(self, line: LogLine, message: str, depth: int = 0) -> Record | None:
        multiline: list[Template] = []
        embedded: list[Template] = []
        for template in self.candidates(message):
            if template.embedded:
                embedded.append(template)
                continue
            if not message.startswith(template.head):
                continue  # most candidates end here, before their expression is ever compiled
            if "\n" in template.text:
                if template.lines()[0].fullmatch(message):
                    multiline.append(template)
                continue
            if (texts := template.take(message)) is not None:
                if template.wraps is not None and depth < _DEEPEST:
                    inner = texts.get(template.wraps) or ""
                    raised = _RAISED.match(inner)
                    if (record := self._match(line, inner[raised.end() :] if raised else inner, depth + 1)) is not None:
                        return record
                return self._build(template, texts, line)
        if multiline:
            self._pending.begin(line._replace(message=message), multiline)
            self.waits = True
            return None
        if line.source is not None and line.level in _CALM:
            return None  # what a request or a note quotes is no failure
        for template in embedded:
            if (match := template.lines()[0].search(message)) is not None:
                return self._build(template, match.groupdict(), line)
        return None

    def _continue(self, line: LogLine) -> Record | None:
        pending = self._pending.go_on(line)
        if pending is None:
            return None
        self.waits = True
        if (template := pending.complete()) is None:
            return None
        return self._build(template, template.match("\n".join(pending.lines)) or {}, pending.first)

    def _build(self, template: Template, groups: Mapping[str, Any], line: LogLine) -> Record | None:
        record = template.record
        try:
            values = record.complete(template.read({k: v for k, v in groups.items() if v is not None}))
        except (ValueError, KeyError, OverflowError):
            return None  # a number too long or a payload out of shape: the line stays unrecognised
        made = record(
            line=line.number, time=line.time or line.wrapper_time, level=line.level, process=line.process, pid=line.pid,
            rank=line.rank, source=line.source, wrapper_time=line.wrapper_time, container=line.container, **values,
        )  # fmt: skip
        made.__dict__["template"] = template
        return made


class _Prepared(NamedTuple):
    """What can be said of templates before a line is seen."""

    templates: tuple[Template, ...]
    texts: tuple[str, ...]
    """What is always there of each template."""
    by_anchor: list[list[int]]
    find: Any
    """From a text to the indexes of `by_anchor` whose anchor is in it."""


@lru_cache(maxsize=2)
def _prepared(templates: tuple[Template, ...]) -> _Prepared:
    """Prepare the search for templates: once for thousands of logs."""
    texts = tuple(fixed_texts(templates))
    by_anchor: dict[str, list[int]] = {}
    for index, text in enumerate(texts):
        literal = max(text.partition("\n")[0].split("\0"), key=len)
        by_anchor.setdefault(literal[:_ANCHOR], []).append(index)
    anchors = sorted(by_anchor)
    return _Prepared(templates, texts, [by_anchor[anchor] for anchor in anchors], _finder(anchors))


def _finder(anchors: list[str]) -> Any:
    """Return a function from a text to the indexes of the anchors in it (overlapping ones too)."""
    try:
        from ahocorasick_rs import AhoCorasick, Implementation
    except ImportError:  # no wheel for this platform: the standard library does it, slower
        return lambda text: [index for index, anchor in enumerate(anchors) if anchor in text]
    automaton = AhoCorasick(anchors, implementation=Implementation.NoncontiguousNFA)
    return lambda text: {hit[0] for hit in automaton.find_matches_as_indexes(text, overlapping=True)}
