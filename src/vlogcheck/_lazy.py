"""Regular expressions that are compiled when they are first used.

Most logs need a handful of the hundred expressions for wrappers, cards and options: compiling all of them at import took a
fifth of the whole run of a small log.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["pattern"]


class _Pattern:
    """Stands for a compiled pattern and becomes as fast as one after the first use of each method."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        # Comes here only for what the instance does not have yet; re keeps the compiled expression.
        value = getattr(re.compile(self._source, self._flags), name)
        self.__dict__[name] = value
        return value


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for `re.compile(source, flags)` that compiles at first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))
