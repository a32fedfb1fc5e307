"""VL004: a restart loop."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck._clock import between, duration
from vlogcheck.context import LogFacts
from vlogcheck.failures import failure_of, reason, stop_of
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_SHOWN = 6


@check("the server failed to start several times in a row", Severity.WARNING, per_log=True)
def restart_loop(log: LogFacts) -> Iterator[Finding]:
    """Flag two or more rounds of one server that did not come to their end, the last one among them."""
    for rounds in servers(log):
        failed: list[Startup] = []
        for startup in reversed(rounds):
            if startup.usable or stop_of(startup) is not None:
                break
            failed.insert(0, startup)
        if len(failed) < 2:
            continue
        reasons = [reason(startup) for startup in failed]
        same = len(set(reasons)) == 1
        stated = sum(failure_of(startup) is not None for startup in failed)
        if not stated and len(failed[-1].phases) > max(len(startup.phases) for startup in failed[:-1]):
            continue  # a second banner, and what follows it is still on its way: further than any round before
        shown = [f"line {s.first_line}: {why}" for s, why in zip(failed, reasons, strict=True)]
        if len(shown) > _SHOWN:
            shown = [*shown[: _SHOWN - 1], f"… {len(shown) - _SHOWN} more", shown[-1]]
        yield Finding(
            f"{failed[-1].model or 'the server'} failed to start {len(failed)} times in a row",
            line=failed[-1].first_line,
            expected="a start-up that comes to its end",
            observed="; ".join(shown),
            remedy=f"stop the loop: the numbers were the same each time in {len(failed)} rounds{_pace(failed)}, so round"
            f" {len(failed) + 1} will fail too until an option changes (the findings on lines {failed[-1].first_line} to"
            f" {failed[-1].last_line} say which)"
            if same
            else f"the numbers changed over {len(failed)} rounds{_pace(failed)}: if memory is being given back, a longer pause"
            " between the rounds is enough",
            severity=Severity.ERROR if stated > 1 else None,
        )


def _pace(failed: list[Startup]) -> str:
    """Return how long the loop takes for a round, from the first start to the last."""
    took = between(failed[0].records[:1], failed[-1].records[:1]) if all(s.records for s in failed) else None
    return f", one every {duration(took / (len(failed) - 1))}" if took else ""


def servers(log: LogFacts) -> list[list[Startup]]:
    """Return the start-ups of each server (container, model and release), in order."""
    rounds: dict[tuple[str | None, ...], list[Startup]] = {}
    for startup in log.startups:
        rounds.setdefault((startup.container, startup.model, startup.version), []).append(startup)
    return list(rounds.values())
