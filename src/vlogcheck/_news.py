"""What the checks say about the new one of two start-ups and did not say about the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.registry import Finding

__all__ = ["news"]

_ABOUT_THE_LOG = "VL0"


def news(old: Context, new: Context) -> list[Finding]:
    """Return warnings and errors of the new start-up whose check found nothing in the old one, worst first.

    Checks of the log itself (VL0xx) are left out: they say nothing of the server.
    """
    from vlogcheck.registry import Severity, all_checks, run_checks

    checks = [item for code, item in all_checks().items() if not code.startswith(_ABOUT_THE_LOG)]
    before = {(f.code, f.severity) for f in run_checks(old, checks)[0]}
    found = [f for f in run_checks(new, checks)[0] if (f.code, f.severity) not in before]
    kept = [f for f in found if f.severity is not None and f.severity is not Severity.NOTE]
    return sorted(kept, key=lambda f: (-(f.severity.weight if f.severity else 0), f.code))
