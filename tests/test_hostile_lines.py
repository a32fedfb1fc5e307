"""Lines that were made to cost: of a known wording but for a word, or beginnings of messages that never go on.

Each is of a size at which anything but one pass over it would take minutes.
"""

from __future__ import annotations

import pytest

import vlogcheck

P = "INFO 02-20 00:01:02 [core.py:77] "


def told(log: str) -> list[str]:
    """Return the messages that are told of as unrecognised."""
    seen: list[str] = []
    list(vlogcheck.parse(log.encode(), on_unrecognised=lambda line: seen.append(line.message)))
    return seen


@pytest.mark.parametrize("wording", ["exit code {}", "{} by SIGKILL", "CUDA {} out of memory", "MPS backend {} memory"])
def test_a_reworded_line_with_one_very_long_word(wording: str) -> None:
    lines = [
        wording.format(f"{chr(97 + first)}{chr(97 + second)}" + "x" * 900) for first in range(26) for second in range(8)
    ]
    assert told("".join(f"{P}{line}\n" for line in lines)) == lines
