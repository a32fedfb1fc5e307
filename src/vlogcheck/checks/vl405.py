"""VL405: the state slots cap the requests that run at once."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.context import Context
from vlogcheck.records import MambaBlocksTooFew
from vlogcheck.registry import Finding, Severity, check


@check("fewer state slots (Mamba blocks) than requests may run", Severity.WARNING)
def capped_by_state_slots(record: MambaBlocksTooFew, context: Context) -> Iterator[Finding]:
    """Flag a start-up whose states have fewer slots than `max_num_seqs`."""
    slots = record.mamba_blocks
    stated = context.startup.args.get("max_num_seqs")
    asked = record.max_num_seqs or (stated if isinstance(stated, int) else None)
    refused = record.max_num_seqs is not None
    yield Finding(
        f"{slots:,} state slots for {asked:,} requests" if asked else f"{slots:,} state slots cap the requests",
        line=record.line,
        expected=f"a slot for each of {asked:,} requests" if asked else "a slot for each request that may run at once",
        observed=f"{slots:,} slots" + (", the start was refused" if refused else ""),
        remedy=f"--max-num-seqs {slots} starts" if refused else f"--max-num-seqs {slots} says what can run",
        explanation="every running request of a model with states (Mamba, linear attention) holds a slot,"
        " however short it is",
        fix={"max_num_seqs": slots},
        severity=Severity.ERROR if refused else None,
    )
