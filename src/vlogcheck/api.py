"""The library's front door: parse a log, check a log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vlogcheck._reading import LogSource, parse, read
from vlogcheck._report import Report
from vlogcheck.context import Context, LogFacts
from vlogcheck.expected import Model
from vlogcheck.registry import Check, Severity, all_checks, run_checks
from vlogcheck.startup import Startup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vlogcheck._attached import Source
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.expect import Expectation

__all__ = ["Inquiry", "Report", "check", "parse"]


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


def _model_of(startup: Startup) -> Model | None:
    """Return the configuration in the model path the log names, where it exists here."""
    path = startup.model
    if path and (path.startswith(("/", "./")) or os.path.isdir(path)):
        return Model.find(path)
    return None
