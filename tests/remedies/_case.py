"""A finding of a check's page, its remedy's figures, and the log of the same server after doing what the remedy says."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.test_pages import Block
from vlogcheck.expect import Expectation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vlogcheck.registry import Finding

    Doing = Callable[["Case"], Iterator[Block]]

REMEDIES: dict[str, Doing] = {}
"""For each code: a generator that checks the remedy's figures and yields what it says to do, one block for each way."""

BANNER = (
    "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m', dtype=torch.bfloat16,"
    " max_seq_len=4096\n"
)
LOADED = "INFO 03-01 10:00:05 [gpu_model_runner.py:2392] Model loading took {} GiB and 4.861336 seconds\n"
MEMORY = "INFO 03-01 10:00:09 [gpu_worker.py:298] Available KV cache memory: {} GiB\n"
READY = (
    "INFO 03-01 10:00:12 [core.py:218] init engine (profile, create kv cache, warmup model) took 12.19 seconds\n"
    "INFO:     Application startup complete.\n"
)


def remedy(*codes: str) -> Callable[[Doing], Doing]:
    """Register what doing the remedy of a code means."""

    def register(doing: Doing) -> Doing:
        for code in codes:
            assert code not in REMEDIES, code
            REMEDIES[code] = doing
        return doing

    return register


class Case:
    """One finding in one block of a page."""

    def __init__(self, block: Block, finding: Finding) -> None:
        self.block = block
        self.finding = finding
        self.log = block.log
        self.told_figures = 0
        self.silent = ""
        """Why the check has nothing left to look at once the remedy is done, where that is so."""

    def told(self, pattern: str, *figures: object) -> None:
        """Assert that the remedy says these figures, which the test computed from the example."""
        match = re.search(pattern, self.finding.remedy)
        assert match is not None, f"{pattern!r} is not in: {self.finding.remedy}"
        said = [text.replace(",", "").rstrip(".") for text in match.groups()]
        assert said == [str(figure).replace(",", "") for figure in figures], self.finding.remedy
        self.told_figures += len(said)

    def fixed(self, name: str, figure: object) -> None:
        """Assert that the remedy for programs says the same."""
        assert self.finding.fix[name] == figure, self.finding.fix

    def read(self, pattern: str, nth: int = 0) -> Any:
        """Return the figure (or figures, for several groups) that the log prints."""
        match = list(re.finditer(pattern, self.log))[nth]
        found = [Decimal(text.replace(",", "")) for text in match.groups()]
        return found[0] if len(found) == 1 else found

    def lines(self) -> list[str]:
        """Return the log's lines with their ends."""
        return self.log.splitlines(keepends=True)

    def with_log(self, log: str) -> Block:
        """Return the block with another log."""
        return self.block._replace(log=log)

    def again(self, *changes: tuple[str, str]) -> Block:
        """Return the block with parts of its log printed anew: (expression, replacement), each of which must occur."""
        log = self.log
        for pattern, new in changes:
            assert re.search(pattern, log), f"{pattern!r} is not in the log"
            log = re.sub(pattern, new, log)
        return self.with_log(log)

    def without(self, pattern: str, then: str = "") -> Block:
        """Return the block without the lines that match, and with what is printed in their place."""
        kept = [line for line in self.lines() if not re.search(pattern, line)]
        assert len(kept) < len(self.lines()), f"{pattern!r} is not in the log"
        return self.with_log("".join(kept) + then)

    def stating(self, **changed: Any) -> Block:
        """Return the block with other expectations."""
        expect = self.block.arguments.get("expect") or Expectation()
        stated = {name: getattr(expect, name) for name in expect.stated}
        return self.block._replace(arguments={**self.block.arguments, "expect": Expectation(**{**stated, **changed})})

    def line_of(self, pattern: str) -> int:
        """Return the number of the first line that matches."""
        return next(number for number, line in enumerate(self.lines(), 1) if re.search(pattern, line))


def down(value: Decimal, places: int = 2) -> str:
    """Return a figure rounded down, without zeros at its end."""
    unit = Decimal(1).scaleb(-places)
    return f"{(value // unit * unit).normalize():f}"
