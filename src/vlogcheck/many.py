"""Many logs at once: all cores, flat memory, a table at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from vlogcheck._tuples import NamedTuple

__all__ = ["Summary", "check_many", "table"]

_ORDER = {"error": 0, "fail": 1, "inconclusive": 2, "pass": 3}


class Summary(NamedTuple):
    """One log's verdict, small enough to keep thousands."""

    path: str
    verdict: str
    """`pass`, `fail`, `inconclusive`, or `error` for a log that cannot be read."""
    exit_code: int
    version: str | None
    model: str | None
    concurrency: str | None
    """Requests at once that the log promises, for people."""
    concurrency_low: float | None
    concurrency_high: float | None
    """Its bounds: equal up to the printed rounding where the log settles it."""
    context: int | None
    code: str | None
    """The finding that decides, or the worst."""
    line: int | None
    message: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        return self._asdict()


_MOST_JOBS = 61
"""Processes at once: as many as every system can wait for."""
_INQUIRY: Any = None


def _begin(arguments: dict[str, Any]) -> None:
    """Prepare a worker process: what is asked is made once."""
    global _INQUIRY
    import signal

    from vlogcheck.api import Inquiry

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends its workers
    _INQUIRY = Inquiry(**arguments)


def _one(paths: tuple[str, ...]) -> Summary:
    return summarise(paths, _INQUIRY)


def _name(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[-1]} (+{len(paths) - 1})"


def _failed(paths: Sequence[str], why: str) -> Summary:
    return Summary(_name(paths), "error", 2, None, None, None, None, None, None, None, None, why)


def summarise(paths: Sequence[str], inquiry: Any) -> Summary:
    """Check one log (several paths are its rotated parts) and keep what the table needs."""
    from vlogcheck._reading import read
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.registry import Missing, Severity
    from vlogcheck.report._summary import decisive

    name = _name(paths)
    try:
        report = inquiry.report(read(list(paths)))
    except OSError as error:
        return _failed(paths, str(error))
    context = report.contexts[-1] if report.contexts else None
    ceiling = None
    if context is not None:
        try:
            ceiling = context.get(ConcurrencyCeiling)
        except Missing:
            ceiling = None
    worst = decisive(report)
    if report.verdict == "inconclusive" and worst is not None and worst.severity is Severity.NOTE:
        worst = None  # a note beside it decides nothing: the reason does
    return Summary(
        path=name, verdict=report.verdict, exit_code=report.exit_code,
        version=context.startup.version if context else None, model=context.startup.model if context else None,
        concurrency=ceiling.text if ceiling else None, concurrency_low=float(ceiling.lo) if ceiling else None,
        concurrency_high=float(ceiling.hi) if ceiling else None, context=ceiling.context if ceiling else None,
        code=worst.code if worst else None, line=worst.line if worst else None,
        message=worst.message if worst else report.inconclusive,
    )  # fmt: skip


def check_many(
    logs: Iterable[Sequence[str]], arguments: dict[str, Any], *, jobs: int | None = None,
    on_done: Callable[[Summary], None] | None = None,
) -> Iterator[Summary]:  # fmt: skip
    """Yield a summary for each log, in the order given. `arguments` are those of `Inquiry`; `jobs` defaults to the cores.

    Raises what `Inquiry` raises. Where a worker process dies (out of memory, say), the logs that are left are errors.
    """
    from vlogcheck.api import Inquiry

    work = [tuple(paths) for paths in logs]
    count = min(jobs or os.cpu_count() or 1, len(work), _MOST_JOBS)
    inquiry = Inquiry(**arguments)  # what is wrong with the arguments is said here, not by every worker
    if count <= 1:
        yield from _told((summarise(paths, inquiry) for paths in work), on_done)
    else:
        yield from _told(_spread(work, arguments, count), on_done)


def _spread(work: list[tuple[str, ...]], arguments: dict[str, Any], count: int) -> Iterator[Summary]:
    """Share the logs out among processes."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Workers are started afresh, not forked: a library must not copy its caller's threads and files.
    pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (arguments,))
    done = 0
    try:
        for summary in pool.map(_one, work, chunksize=max(1, min(16, len(work) // (8 * count)))):
            done += 1
            yield summary
    except BrokenProcessPool:
        for paths in work[done:]:
            yield _failed(paths, "not checked: a worker process died, out of memory perhaps (fewer --jobs)")
    finally:
        pool.shutdown(cancel_futures=True)


def _told(results: Iterable[Summary], on_done: Callable[[Summary], None] | None) -> Iterator[Summary]:
    for result in results:
        if on_done is not None:
            on_done(result)
        yield result


def table(summaries: Iterable[Summary]) -> list[str]:
    """Return the table for people, worst first."""
    ranked = sorted(summaries, key=lambda s: (_ORDER[s.verdict], s.path))
    header = ("verdict", "log", "vLLM", "ceiling", "finding")
    rows = [header]
    for item in ranked:
        ceiling = "–" if item.concurrency is None else f"{item.concurrency} × {item.context:,}"
        where = (
            f"{getattr(item.line, 'path', item.path)}:{item.line}" if item.line else item.path
        )  # of several parts, the line's
        finding = " ".join(part for part in (item.code, item.message) if part)
        rows.append((item.verdict, where, item.version or "–", ceiling, finding))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    out = ["  ".join([*(f"{cell:<{widths[i]}}" for i, cell in enumerate(row[:4])), row[4]]).rstrip() for row in rows]
    counts: dict[str, int] = {}
    for item in ranked:
        counts[item.verdict] = counts.get(item.verdict, 0) + 1
    out.append("")
    out.append(", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()) or "no logs")
    return out
