"""pytest plugin: recorded start-up logs as regression tests.

    def test_production_log(vlogcheck):
        report = vlogcheck.assert_serves("logs/serve.log", concurrency=16, context=4096)
        assert report.startups[-1].version == "0.12.0"

The fixture's failure message is the text report, so a failing run shows the ledger, the line and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vlogcheck._reading import LogSource
    from vlogcheck.api import Report

__all__ = ["LogAsserts", "assert_serves", "vlogcheck"]


def assert_serves(
    log: LogSource, concurrency: float | None = None, context: int | None = None, *, model: Any = None, **options: Any
) -> Report:
    """Fail the test unless the log shows a server that keeps the promise; return the report.

    `log`, `model` and the options are those of `vlogcheck.check`; the expectations (`tokens`, `weights`, `total_memory`, …) are
    those of `vlogcheck.Expectation`. A log that decides nothing (missing, no start-up, cut off before the capacity lines) fails
    too: silence is no evidence.
    """
    __tracebackhide__ = True
    from vlogcheck.api import check
    from vlogcheck.expect import Expectation
    from vlogcheck.files import LogFileError

    stated = {name: options.pop(name) for name in Expectation._fields if name in options}
    expect = Expectation(concurrency=concurrency, context=context, **stated)
    report, unreadable = None, ""
    try:
        report = check(log, expect, model, **options)
    except LogFileError as error:
        unreadable = (
            f"the log cannot be read: {error}"  # told below: here, pytest would show this error's traceback too
        )
    if report is None or not report.ok:
        pytest.fail(unreadable or str(report), pytrace=False)
    return report


class LogAsserts:
    """What the `vlogcheck` fixture gives: the library's functions for one test."""

    def assert_serves(
        self, log: LogSource, concurrency: float | None = None, context: int | None = None, **options: Any
    ) -> Report:
        """See `assert_serves`."""
        __tracebackhide__ = True
        return assert_serves(log, concurrency, context, **options)

    def check(self, log: LogSource, expect: Any = None, model: Any = None, **options: Any) -> Report:
        """See `vlogcheck.check`."""
        from vlogcheck.api import check

        return check(log, expect, model, **options)

    def records(self, log: LogSource) -> list[dict[str, Any]]:
        """Return the log's records as plain data, to compare with a recorded `.jsonl`."""
        from vlogcheck.api import parse

        return [record.to_dict() for record in parse(log)]


@pytest.fixture
def vlogcheck() -> LogAsserts:
    """Check recorded vLLM logs: `vlogcheck.assert_serves(log, concurrency=16, context=4096)`."""
    return LogAsserts()
