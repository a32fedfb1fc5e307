"""From the decoded lines of a log to its records, and to the messages that should be one and are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vlogcheck._anchors import SUSPICIOUS
from vlogcheck._mended import Mender
from vlogcheck._requests import REQUEST_MESSAGE
from vlogcheck._reworded import Reworded
from vlogcheck._unknown import HALVES, is_lone_word, is_message, looks_like_memory
from vlogcheck.lines import LogLine, Splitter
from vlogcheck.recognise import Recogniser
from vlogcheck.records import EngineConfig, EngineStats, Ready, ServerArgs, ServerVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck._metrics_line import Figures
    from vlogcheck.template import Record

__all__ = ["Messages", "Sink"]

_AFTER = 64
"""Lines after the first line of a multi-line message in which its continuation is looked for."""

_WHOLE = 4096
"""Lines of a start-up that are looked at whatever is in them, so that no wording goes by which a release changed."""

_STARTS = (ServerVersion, ServerArgs, EngineConfig)
_SERVES = (Ready, EngineStats)
_SPEAKING = (*SUSPICIOUS, *HALVES)


class Sink(Protocol):
    """Where records can go as they come: `startup.Collector`, or what stands in front of one."""

    def add(self, record: Record) -> object:
        """Take a record."""

    def add_figures(self, line: int, figures: Figures) -> bool:
        """Take a metrics line as mere figures; False when its record is needed."""


class Messages:
    """Splits lines into messages, recognises and mends them; records go to `tell` in the order of the log.

    `after` is how many of the next lines must be looked at because a message may go on there, `whole` how many because the
    server has not come up yet. `unrecognised` counts the messages that `on_unrecognised` is called with.
    """

    def __init__(
        self, tell: Callable[[Record], object], on_unrecognised: Callable[[LogLine], None] | None = None
    ) -> None:
        self.unrecognised = 0
        self.after = 0
        self.whole = _WHOLE
        self._give = tell
        self._on_unrecognised = on_unrecognised
        self._recogniser = Recogniser()
        self.splitter = Splitter()
        self._mender = Mender(self._recogniser.recognise)
        self._bare: LogLine | None = None  # a prefix alone: its message comes later
        self._reworded = Reworded(self._recogniser.templates, self._recogniser.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is always there of each template."""
        return self._recogniser.texts

    def follow(self, left: Splitter) -> None:
        """Go on with what was split before of this log."""
        self.splitter = left
        self.after = _AFTER if self.unfinished else 0

    def take(self, number: int, text: str, cut: bool) -> None:
        """Take a physical line; `cut` says that the log ends in the middle of it."""
        waiting = self.unfinished
        for line in self.splitter.split(number, text, cut):
            self._message(line)
        still = self.unfinished
        if not still:
            self.after = 0
        elif still > waiting:
            self.after = _AFTER
        else:
            self.after -= 1
            if not self.after:
                self.give_up(number)

    @property
    def unfinished(self) -> int:
        """How many messages wait for a line they may go on in."""
        return self._recogniser.unfinished + self.splitter.unfinished + self._mender.unfinished

    def give_up(self, number: int) -> None:
        """Handle what waits for a continuation that does not come; `number` is that of the last line."""
        self.after = 0
        for line in self.splitter.flush(number):
            self._message(line)
        self._recogniser.forget()
        for first in self._recogniser.dropped():
            self._tell(first)
        for part in self._mender.forget():
            self._tell(part)

    def _message(self, line: LogLine) -> None:
        record = self._recogniser.recognise(line)
        for first in self._recogniser.dropped():
            self._tell(first)
        if record is None and self._recogniser.waits:
            return
        bare, self._bare = self._bare, None
        if bare is not None and record is not None and _takes_any_end(record):
            self._report(bare)
        if self._recogniser.torn:
            if not line.message.strip():
                self._bare = line
            elif REQUEST_MESSAGE.match(line.message) is None:
                self._report(line)
            return
        for part in self._mender.take(line, record):
            self._tell(part)

    def _tell(self, part: Record | LogLine) -> None:
        """Hand over a record, or a message that makes none, where it is worth telling."""
        if not isinstance(part, LogLine):
            if isinstance(part, _STARTS):
                self.whole = _WHOLE
            elif isinstance(part, _SERVES):
                self.whole = 0
            self._give(part)
        elif self._worth_telling(part.message):
            self._report(part)

    def _report(self, line: LogLine) -> None:
        self.unrecognised += 1
        if self._on_unrecognised is not None:
            nearest = self._reworded.nearest(line.message)
            self._on_unrecognised(line if nearest is None else line._replace(nearest=nearest.record.__name__))

    def _worth_telling(self, message: str) -> bool:
        """Whether to report a message no template knows: it speaks of memory, or is a known one but for a few words."""
        if REQUEST_MESSAGE.match(message) is not None:
            return False
        if any(word in message for word in _SPEAKING) and looks_like_memory(message):
            return True
        if not is_message(message):
            return False
        return is_lone_word(message) or self._reworded.nearest(message) is not None


def _takes_any_end(record: Record) -> bool:
    """Whether the message may go on in any words, and so with what somebody else wrote."""
    pieces = record.template.parsed() if record.template is not None else ()
    return next((piece.kind for piece in reversed(pieces) if piece.kind != "close"), None) == "hole"
