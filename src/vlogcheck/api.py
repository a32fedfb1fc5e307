"""The library's front door: parse a log, check a log."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Union

from vlogcheck._collector import Collector
from vlogcheck.context import Context, LogFacts
from vlogcheck.expected import Model
from vlogcheck.files import LogFile, open_log
from vlogcheck.registry import Check, Finding, Severity, Skipped, all_checks, run_checks
from vlogcheck.scan import Parser
from vlogcheck.startup import Startup
from vlogcheck.wrappers import WIDEST, is_hard_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vlogcheck._attached import Source
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.expect import Expectation
    from vlogcheck.lines import LogLine
    from vlogcheck.template import Record

__all__ = ["Inquiry", "Report", "check", "parse"]

CHUNK = 1 << 18
SNIFF = 1 << 16
"""Bytes from which it is told whether a terminal cut every line."""
KEEP_UNRECOGNISED = 200

LogSource = Union[str, "os.PathLike[str]", bytes, IO[bytes]]
"""A path (`-` is standard input), the log's bytes, or a binary file."""


def _open(source: LogSource) -> LogFile:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return open_log(io.BytesIO(source))
    if isinstance(source, io.TextIOBase):
        raise TypeError("a log is read as bytes: open it with mode 'rb'")
    return open_log(source)  # type: ignore[arg-type]


def _head(stream: LogFile) -> bytes:
    """Read the beginning of a log."""
    head = b""
    while len(head) < SNIFF and (chunk := stream.read(CHUNK)):
        head += chunk
    return head


def _wrapped_at(head: bytes) -> int | None:
    """Return the column at which a terminal cut every line of a log, or None."""
    lines = head[:SNIFF].split(b"\n")
    if len(lines) > 1 and max(map(len, lines)) > 4 * WIDEST:  # wider than any terminal, whatever the characters
        return None
    return is_hard_wrapped([line.decode("utf-8", "replace") for line in lines[:-1] or lines])


def parse(
    source: LogSource, *, on_unrecognised: Callable[[LogLine], None] | None = None,
    on_end: Callable[[int], None] | None = None,
) -> Iterator[Record]:  # fmt: skip
    """Yield the records of a log as it is read: constant memory, any size.

    `source` is a path (also compressed, `-` for standard input), the bytes themselves or a binary file. `on_unrecognised` is
    called with each memory-looking or reworded line that no template knows, `on_end` with the number of lines once all are
    read. Raises `LogFileError` for a file that cannot be read; log content never raises.
    """
    with _open(source) as stream:
        head = _head(stream)
        parser = Parser(on_unrecognised=on_unrecognised, wrapped_at=_wrapped_at(head))
        yield from parser.feed(head)
        for chunk in stream.chunks(CHUNK):
            yield from parser.feed(chunk)
    yield from parser.close()
    if on_end is not None:
        on_end(parser.lines)


class Report:
    """The result of checking one log (or one set of rotated files)."""

    def __init__(
        self, path: str, startups: list[Startup], contexts: list[Context], findings: list[Finding],
        skipped: list[Skipped], facts: LogFacts, *, fail_on: Severity = Severity.ERROR, strict: bool = False,
        stopped: str | None = None, made: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.path = path
        self.startups = startups
        """All start-ups in the log."""
        self.contexts = contexts
        """The start-ups that were judged, with their ledgers: the last one of each server."""
        self.findings = findings
        self.skipped = skipped
        self.facts = facts
        self.fail_on = fail_on
        self.strict = strict
        self.stopped = stopped
        """Why reading ended before the log did (a time-out), or None."""
        self.made = frozenset(made)
        """Codes of the checks that were chosen (`select`, `ignore`); `skipped` says which of them could not be made."""

    @property
    def failing(self) -> list[Finding]:
        """The findings at or above the severity that fails."""
        return [f for f in self.findings if f.severity is not None and f.severity.weight >= self.fail_on.weight]

    @property
    def verdict(self) -> str:
        """`fail`, `inconclusive` (the log ends before what an expectation needs, or is no vLLM log) or `pass`."""
        if self.failing:
            return "fail"
        if self.inconclusive:
            return "inconclusive"
        return "pass"

    @property
    def inconclusive(self) -> str | None:
        """Why the log decides nothing, or None."""
        if self.stopped:
            return self.stopped
        if not self.contexts:
            return "no vLLM start-up found in the log"
        if self.facts.unjudged:
            return (
                f"the log holds {self.facts.unjudged:,} servers more than the {len(self.contexts):,} that are judged:"
                " give it in parts"
            )
        for context in self.contexts:
            if (why := _undecided(context)) is not None:
                return why
        if (why := self._nothing_judged()) is not None:
            return why
        if self.strict and self.skipped:
            return f"{len(self.skipped)} checks were skipped (--strict)"
        return None

    def _nothing_judged(self) -> str | None:
        """Why the only figure that was stated could not be judged, or None. Silence never passes."""
        expectation = self.contexts[-1].expectation
        judged = {"concurrency", "tokens", "weights"} & set(expectation.stated)
        if expectation.size("kv_bytes_per_token") is None or judged:
            return None
        reasons = [item.reason for item in self.skipped if item.code == "VL307"]
        return f"{reasons[0]}: the stated KV bytes per token cannot be judged" if reasons else None

    @property
    def summary(self) -> str:
        """What decides the verdict, in one sentence: the worst finding, why nothing is decided, or what was kept."""
        from vlogcheck.report._summary import summary

        return summary(self)

    @property
    def ok(self) -> bool:
        """Whether the verdict is `pass`."""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON: the contract of `vlogcheck LOG --format json`."""
        from vlogcheck.report.json import report_dict

        return report_dict(self)

    def __str__(self) -> str:
        from vlogcheck.report.text import render

        return render(self)

    def __repr__(self) -> str:
        count = len(self.findings)
        return f"<Report {self.path}: {self.verdict}, {count} finding{'s' if count != 1 else ''}>"


def _undecided(context: Context) -> str | None:
    """Why a start-up's log does not decide what was asked of it, or None."""
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.registry import Missing

    expectation = context.expectation
    if not context.startup.usable and context.startup.refusal is None and not expectation.stated:
        return f"the log ends while {context.startup.phase}: the start-up is not complete"
    if expectation.concurrency is not None:
        try:
            ceiling = context.get(ConcurrencyCeiling)
        except Missing as missing:
            return f"{missing}, so the expected concurrency cannot be judged"
        if ceiling.lo < expectation.concurrency <= ceiling.hi:
            return (
                f"at {ceiling.context:,} tokens the log bounds the concurrency between {float(ceiling.lo):.2f} and"
                f" {float(ceiling.hi):.2f}: give --model-config to compute it"
            )
    if expectation.tokens is not None and not any("tokens" in e.ledger for e in context.observation.engines):
        return "the log prints no KV cache size, so the expected tokens cannot be judged"
    if expectation.size("weights") is not None and not any("weights" in r.ledger for r in context.observation.ranks):
        return "the log prints no weights, so the expected weights cannot be judged"
    return None


def check(
    log: LogSource | Sequence[LogSource], expect: Expectation | None = None,
    model: str | os.PathLike[str] | Mapping[str, Any] | ModelConfig | None = None, *, select: Iterable[str] = (),
    ignore: Iterable[str] = (), fail_on: Severity | str = Severity.ERROR, strict: bool = False,
    smi: Source | None = None, metrics: Source | None = None,
) -> Report:  # fmt: skip
    """Check a log against its own arithmetic, a model's configuration and an expectation.

    `log` is a path, the bytes or a binary file; several are read as one log in the order given. `model` is a `config.json`,
    a directory holding one, or its content; by default the log's own model path is used where it exists here. `select` and
    `ignore` name checks by code or by the beginning of one (`VL4`). `smi` is the saved output of nvidia-smi, rocm-smi or
    npu-smi and `metrics` a saved `/metrics` page, both from the serving state. Raises `LogFileError` for a log,
    `ModelConfigError` for a configuration, `OSError` or `ValueError` for a card reading or metrics page that cannot be read, and
    `ValueError` for a check or severity that does not exist; log content never raises.
    """
    return Inquiry(
        expect, model, select=select, ignore=ignore, fail_on=fail_on, strict=strict, smi=smi, metrics=metrics
    ).report(read(log))


class Inquiry:
    """What is asked of a log: expectation, model, checks. Made once, it can judge any number of logs.

    The arguments are those of `check`; everything that can be wrong about them raises here, before a log is read.
    """

    def __init__(
        self, expect: Expectation | None = None, model: Any = None, *, select: Iterable[str] = (),
        ignore: Iterable[str] = (), fail_on: Severity | str = Severity.ERROR, strict: bool = False,
        smi: Source | None = None, metrics: Source | None = None,
    ) -> None:  # fmt: skip
        if expect is not None and not hasattr(expect, "stated"):
            raise TypeError(f"expect is an Expectation, not {type(expect).__name__}")
        self.expect = expect
        self.checks = choose_checks(select, ignore)
        self.fail_on = Severity(fail_on)
        self.strict = strict
        self._beside = _read_beside(smi, metrics)
        self._model = Model.load(model) if model is not None else None

    def report(self, facts: LogFacts, stopped: str | None = None) -> Report:
        """Judge what was read of a log; `stopped` is why reading ended before the log did, if it did."""
        contexts = [self._context(facts, number) for number in facts.judged]
        whole = contexts[-1] if contexts else Context(Startup(0), expectation=self.expect, facts=facts)
        findings, skipped = run_checks(whole, self.checks, per_log=True)
        for context in contexts:
            more, left = run_checks(context, self.checks)
            findings += more
            skipped += left
        findings.sort(key=lambda f: (-(f.severity or Severity.NOTE).weight, f.startup or 0, f.code, f.line or 0))
        return Report(
            facts.path, facts.startups, contexts, findings, skipped, facts, fail_on=self.fail_on, strict=self.strict,
            stopped=stopped, made=[item.code for item in self.checks],
        )  # fmt: skip

    def _context(self, facts: LogFacts, number: int) -> Context:
        startup = facts.startups[number]
        model = self._model or _model_of(startup)
        context = Context(startup, number + facts.forgotten, expectation=self.expect, model=model, facts=facts)
        for value in self._beside:
            context.attach(value)
        return context


def _read_beside(smi: Source | None, metrics: Source | None) -> list[object]:
    """Read what accompanies the log. Raises `AttachedFileError` or `OSError`."""
    found: list[object] = []
    if smi is not None:
        from vlogcheck.smi import read_smi

        found.append(read_smi(smi))
    if metrics is not None:
        from vlogcheck.metrics_page import read_metrics

        found.append(read_metrics(metrics))
    return found


def _codes(given: Iterable[str]) -> list[str]:
    """Return codes as a list; a single text holds one, or several with commas."""
    codes = given.split(",") if isinstance(given, str) else list(given)
    for code in codes:
        if not isinstance(code, str):
            raise TypeError(f"a check's code is text such as VL401, not {code!r}")
    return codes


def choose_checks(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Check]:
    """Return the checks whose code begins with one of `select` (all when empty) and with none of `ignore`.

    Raises `ValueError` naming a code that no check has, or when no check is left.
    """
    checks = all_checks()
    select, ignore = _codes(select), _codes(ignore)
    wanted = [code.strip().upper() for code in select if code.strip()]
    unwanted = [code.strip().upper() for code in ignore if code.strip()]
    for code in (*wanted, *unwanted):
        if not any(known.startswith(code) for known in checks):
            raise ValueError(f"no check is called {code}: see `vlogcheck list checks`")
    chosen = [
        item
        for code, item in checks.items()
        if (not wanted or any(code.startswith(w) for w in wanted)) and not any(code.startswith(u) for u in unwanted)
    ]
    if not chosen:
        raise ValueError(
            "no check is left: what is selected is also ignored"
        )  # a pass without a check would be silence
    return chosen


def read(log: LogSource | Sequence[LogSource]) -> LogFacts:
    """Read a log into its start-ups. Several sources are one log in the order given."""
    several = isinstance(log, Sequence) and not isinstance(log, (str, bytes, bytearray, memoryview))
    sources: list[LogSource] = list(log) if several else [log]  # type: ignore[arg-type, list-item]
    if not sources:
        raise ValueError("no log was given")
    collector = Collector()
    seen: list[tuple[int, str]] = []

    def note(line: LogLine) -> None:
        if len(seen) < KEEP_UNRECOGNISED:
            seen.append((line.number, line.message[:1000]))

    lines = unrecognised = 0
    truncated = False
    damage = None
    for source in sources:
        collector.path = source_name(source) if len(sources) > 1 else None
        with _open(source) as stream:
            head = _head(stream)
            parser = Parser(on_unrecognised=note, wrapped_at=_wrapped_at(head), collector=collector)
            parser.feed(head)
            for chunk in stream.chunks(CHUNK):
                parser.feed(chunk)
            damage = damage or stream.damage
        parser.close()
        lines += parser.lines
        unrecognised += parser.unrecognised
        truncated = parser.truncated
    return facts_of(
        ", ".join(source_name(source) for source in sources), collector, lines=lines, truncated=truncated,
        unrecognised=unrecognised, unrecognised_lines=seen, damage=damage,
    )  # fmt: skip


def facts_of(
    path: str, collector: Collector, *, lines: int, truncated: bool = False, unrecognised: int = 0,
    unrecognised_lines: Sequence[tuple[int, str]] = (), damage: str | None = None, growing: bool = False,
) -> LogFacts:  # fmt: skip
    """Return what was read so far as the facts that are judged."""
    startups = [s for s in collector.startups if s.identified or s.has_ledger]
    return LogFacts(
        path, lines, truncated, unrecognised, list(unrecognised_lines), damage, startups, judged(startups), growing,
        collector.forgotten + collector.lost, collector.lost,
    )  # fmt: skip


def source_name(source: LogSource) -> str:
    """Return what to call a log in messages."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def judged(startups: list[Startup]) -> list[int]:
    """Return which start-ups count: the last one of each server (container and model), in order."""
    last: dict[tuple[str | None, str | None], int] = {}
    for number, startup in enumerate(startups):
        last[(startup.container, startup.model)] = number
    named = {container for container, model in last if model is not None}
    return sorted(n for (container, model), n in last.items() if model is not None or container not in named)


def _model_of(startup: Startup) -> Model | None:
    """Return the configuration in the model path the log names, where it exists here."""
    path = startup.model
    if path and (path.startswith(("/", "./")) or os.path.isdir(path)):
        return Model.find(path)
    return None
