"""The comparison of two start-ups for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlogcheck.report.difference import decides

if TYPE_CHECKING:
    from vlogcheck._compared import Side
    from vlogcheck.compare import Diff
    from vlogcheck.context import ConcurrencyCeiling

__all__ = ["diff_dict"]


def diff_dict(diff: Diff) -> dict[str, Any]:
    """Return the comparison for JSON."""
    loss = diff.loss
    return {
        "verdict": diff.verdict,
        "reason": decides(diff) if diff.verdict == "inconclusive" else None,
        "old": _side_dict(diff.old, diff.ceilings[0]),
        "new": _side_dict(diff.new, diff.ceilings[1]),
        "max_loss": diff.max_loss,
        "loss": None
        if loss is None
        else {
            "what": loss.what,
            "old": float(loss.old),
            "new": float(loss.new),
            "low": float(loss.lo),
            "high": float(loss.hi),
        },
        "new_findings": [finding.to_dict() for finding in diff.news],
        "two_lengths": None
        if diff.two_lengths is None
        else {
            "lengths": list(diff.two_lengths.lengths),
            "divided": float(diff.two_lengths.divided),
            "fixed_share": float(diff.two_lengths.fixed_share),
            "proportional": diff.two_lengths.proportional,
        },
        "culprit": diff.culprit.key if diff.culprit is not None else None,
        "terms": [
            {
                "key": t.key,
                "label": t.label,
                "old": t.old.to_dict() if t.old.known else None,
                "new": t.new.to_dict() if t.new.known else None,
                "changed": t.changed,
                "tokens": None if t.tokens is None else [float(t.tokens[0]), float(t.tokens[1])],
            }
            for t in diff.terms
        ],
        "options": [{"name": o.name, "old": o.old, "new": o.new, "why": o.why} for o in diff.options],
        "known": [
            {"since": c.since, "text": c.text, "source": c.source, "touches": diff.explains(c)} for c in diff.known
        ],
    }


def _side_dict(side: Side, ceiling: ConcurrencyCeiling | None) -> dict[str, Any]:
    return {
        "path": side.context.path,
        "version": side.version,
        "model": side.context.startup.model,
        "ceiling": None
        if ceiling is None
        else {
            "context": ceiling.context,
            "low": float(ceiling.lo),
            "high": float(ceiling.hi),
            "max_num_seqs": ceiling.max_num_seqs,
            "engines": ceiling.engines,
        },
    }
