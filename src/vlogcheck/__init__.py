"""Reconcile the memory ledger a vLLM server prints while starting with the one computed by hand.

`parse` turns a log into typed records, `check` holds it against its own arithmetic, the model's configuration and what was
expected. Everything is imported at first use: a script that only needs one of them pays for one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlogcheck._reading import parse
    from vlogcheck.api import Report, check
    from vlogcheck.budget.model import ModelConfigError
    from vlogcheck.compare import Diff, diff
    from vlogcheck.expect import Expectation, ExpectationError
    from vlogcheck.files import LogFileError
    from vlogcheck.live import awatch, watch
    from vlogcheck.registry import Finding, Severity, Skipped
    from vlogcheck.scan import Parser, parse_lines
    from vlogcheck.startup import Startup
    from vlogcheck.template import Record
    from vlogcheck.units import SizeError

__all__ = [
    "Diff",
    "Expectation",
    "ExpectationError",
    "Finding",
    "LogFileError",
    "ModelConfigError",
    "Parser",
    "Record",
    "Report",
    "Severity",
    "SizeError",
    "Skipped",
    "Startup",
    "awatch",
    "check",
    "diff",
    "parse",
    "parse_lines",
    "watch",
]

__version__ = "0.1.0"

_HOME = {
    "Diff": "compare",
    "Expectation": "expect",
    "ExpectationError": "expect",
    "Finding": "registry",
    "LogFileError": "files",
    "ModelConfigError": "budget.model",
    "Parser": "scan",
    "Record": "template",
    "Report": "api",
    "Severity": "registry",
    "SizeError": "units",
    "Skipped": "registry",
    "Startup": "startup",
    "awatch": "live",
    "check": "api",
    "diff": "compare",
    "parse": "_reading",
    "parse_lines": "scan",
    "watch": "live",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
