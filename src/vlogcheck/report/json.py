"""The report for programs. The shape is a contract: see docs/json.md and the published schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlogcheck.api import Report
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger

__all__ = ["render", "report_dict"]


def render(report: Report, *, colour: bool = False, verbose: bool = False, width: int | None = None) -> str:
    """Return the report as one JSON object."""
    return json.dumps(report_dict(report), ensure_ascii=False, indent=2, default=str)


def report_dict(report: Report) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "path": report.path,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "reason": report.inconclusive if report.verdict == "inconclusive" else None,
        "summary": report.summary,
        "lines": report.facts.lines,
        "unrecognised": report.facts.unrecognised,
        "startups_found": len(report.startups) + report.facts.forgotten,
        "startups": [_startup(context) for context in report.contexts],
        "findings": [finding.to_dict() for finding in report.findings],
        "skipped": [item.to_dict() for item in report.skipped],
    }


def _startup(context: Context) -> dict[str, Any]:
    startup = context.startup
    config = startup.config
    runtime = startup.runtime
    return {
        "number": context.number,
        "first_line": startup.first_line,
        "last_line": startup.last_line,
        "path": startup.path,
        "container": startup.container,
        "version": startup.version,
        "model": startup.model,
        "config": config.own_values() if config is not None else None,
        "args": startup.args,
        "phase": startup.phase,
        "phases": [phase._asdict() for phase in startup.phases],
        "ready": startup.ready is not None,
        "usable": startup.usable,
        "model_config": context.model.origin if context.model is not None else None,
        "concurrency": _ceiling(context),
        **_curve(context),
        "runtime": {
            "samples": runtime.samples,
            "peak_running": runtime.peak_running._asdict() if runtime.peak_running else None,
            "peak_waiting": runtime.peak_waiting._asdict() if runtime.peak_waiting else None,
            "peak_usage": runtime.peak_usage._asdict() if runtime.peak_usage else None,
            "preemptions": runtime.preemptions,
        },
        "engines": [_engine(context, engine) for engine in context.observation.engines],
        "records": dict(startup.counts),
    }


def _ceiling(context: Context) -> dict[str, Any] | None:
    from vlogcheck.context import ConcurrencyCeiling
    from vlogcheck.registry import Missing

    try:
        ceiling = context.get(ConcurrencyCeiling)
    except Missing:
        return None
    return {
        "context": ceiling.context,
        "low": float(ceiling.lo),
        "high": float(ceiling.hi),
        "kv_low": float(ceiling.kv_lo),
        "kv_high": float(ceiling.kv_hi),
        "engines": ceiling.engines,
        "max_num_seqs": ceiling.max_num_seqs,
        "capped": ceiling.capped,
        "line": ceiling.line,
        "basis": ceiling.basis,
    }


def _curve(context: Context) -> dict[str, Any]:
    from vlogcheck.curve import capacity_curve

    curve = capacity_curve(context)
    points = [{"context": p.context, "low": float(p.low), "high": float(p.high)} for p in curve.points]
    return {"curve": points, "curve_unknown": curve.unknown or None}


def _expected(context: Context, engine: EngineLedger) -> dict[str, Any] | None:
    from vlogcheck.registry import Missing

    if context.model is None:
        return None
    try:
        return context.model.expected(context, engine).ledger.to_dict()
    except Missing:
        return None


def _engine(context: Context, engine: EngineLedger) -> dict[str, Any]:
    return {
        "index": engine.engine.index,
        "ledger": engine.ledger.to_dict(),
        "expected": _expected(context, engine),
        "ranks": [
            {
                "name": rank.rank.name,
                "process": rank.rank.process,
                "pid": rank.rank.pid,
                "rank": rank.rank.number,
                "ledger": rank.ledger.to_dict(),
            }
            for rank in engine.ranks
        ],
    }
