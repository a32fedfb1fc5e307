"""Remedies of VL0xx: a log that is given whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.remedies._case import BANNER, LOADED, MEMORY, READY, Case, remedy
from tests.test_pages import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block


@remedy("VL001")
def no_startup(case: Case) -> Iterator[Block]:
    case.told(r"(\d+) lines? and no start-up", len(case.lines()))
    yield case.with_log(BANNER + case.log)


@remedy("VL002")
def never_ready(case: Case) -> Iterator[Block]:
    seconds = [int(text) for text in re.findall(r"03-01 10:00:(\d\d)", case.log)]
    took = seconds[-1] - seconds[0]
    minutes = max(2 * took, 600) // 60
    case.told(r"\((\d+) s so far\), watch it with `vlogcheck --follow --timeout (\d+)m`", took, minutes)
    case.told(r"nothing follows line (\d+) yet", len(case.lines()))
    case.told(r"\(([\d.]+) GiB here\)", f"{case.read('took ([0-9.]+) GiB'):.2f}")
    # The start-up ends in the last second of that time.
    yield case.with_log(case.log + READY.replace("10:00:12", f"10:{minutes - 1:02}:59"))


@remedy("VL003")
def cut(case: Case) -> Iterator[Block]:
    number = len(case.lines())
    case.told(r"from line (\d+) on", number)
    whole = [*case.lines()[: number - 1], case.lines()[-1] + "ze: 63,584 tokens\n", READY]
    yield case.with_log("".join(whole))


@remedy("VL004")
def loop(case: Case) -> Iterator[Block]:
    starts = [n for n, line in enumerate(case.lines(), 1) if "Initializing" in line]
    first, second = (int(text) for text in re.findall(r"10:00:(\d\d) \[core.py:58\]", case.log))
    case.told(
        r"in (\d+) rounds, one every (\d+) s, so round (\d+) will fail too",
        len(starts),
        second - first,
        len(starts) + 1,
    )
    case.told(r"lines (\d+) to (\d+)", starts[-1], len(case.lines()))
    # What the findings on those lines say to change is changed: the third round comes to its end.
    due = [f for f in run(case.block).findings if f.line and f.line >= starts[-1] and "tensor_parallel_size" in f.fix]
    assert due
    size = due[0].fix["tensor_parallel_size"]
    assert isinstance(size, int)
    third = BANNER.replace("max_seq_len=4096", f"max_seq_len=4096, tensor_parallel_size={size}")
    yield case.with_log(case.log + third + LOADED.format(f"{7.1342 / size:.4f}") + MEMORY.format("3.10") + READY)


@remedy("VL005")
def failed_before(case: Case) -> Iterator[Block]:
    starts = [n for n, line in enumerate(case.lines(), 1) if "Initializing" in line]
    case.told(r"from (\d+) and from (\d+)", *starts)
    yield case.with_log("".join(case.lines()[: starts[1] - 1]))
    yield case.with_log("".join(case.lines()[starts[1] - 1 :]))


@remedy("VL006")
def two_values(case: Case) -> Iterator[Block]:
    printed = {int(text.replace(",", "")): text for text in re.findall(r"size: ([\d,]+) tokens", case.log)}
    smallest = min(printed)
    case.told(r"smallest, ([\d,]+) tokens \(line (\d+)\)", smallest, case.line_of(printed[smallest]))
    for text in printed.values():  # each server's log of its own
        yield case.without(f"size: {text} tokens")


@remedy("VL007")
def release_unknown(case: Case) -> Iterator[Block]:
    case.told(r"before line (\d+)", 1)
    case.told(r"utilization ([\d.]+) is taken", "0.92")  # of 0.33.0, as of all from 0.20.2 on
    yield case.with_log(BANNER + case.log)


@remedy("VL008")
def foreign_wording(case: Case) -> Iterator[Block]:
    number = case.line_of("tokens, Maximum concurrency")  # both in one line: from 0.28 on
    case.told(r"line (\d+)", number)
    yield case.with_log("".join(line for n, line in enumerate(case.lines(), 1) if n != number))


@remedy("VL009")
def unknown_figure(case: Case) -> Iterator[Block]:
    case.told(r"see line (\d+)", case.line_of("6.92 GiB"))
    yield case.again(
        ("Set 6.92 GiB apart for the plug-in of our own", "Available KV cache memory: 6.92 GiB")
    )  # a known wording


@remedy("VL010")
def torn_line(case: Case) -> Iterator[Block]:
    case.told(r"look at line (\d+)", case.line_of(r"\d(?=INFO)"))
    # a stream for each process
    if "54.2INFO" in case.log:
        yield case.again(("54.2INFO", "54.20 GiB\nINFO"))
    else:
        yield case.again(("20INFO", "2048\nINFO"), ("x\n48\n", "x\n"))
