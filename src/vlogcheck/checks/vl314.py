"""VL314: the number of blocks was set by hand."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._kv import override_of
from vlogcheck.checks._memory import args_line
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.registry import Finding, Missing, Severity, check


@check("the number of KV cache blocks was set by hand", Severity.WARNING)
def blocks_override(context: Context) -> Iterator[Finding]:
    """Flag `--num-gpu-blocks-override`: the pool is not what the memory allows."""
    startup = context.startup
    record = override_of(startup)
    asked = stated(startup, "num_gpu_blocks_override")
    if record is None and not (isinstance(asked, int) and not isinstance(asked, bool)):
        raise Missing("no number of blocks was set by hand")
    blocks = record.blocks if record is not None else int(asked)
    profiled = record.profiled_blocks if record is not None else None
    line = record.line if record is not None else args_line(startup)
    if profiled is None:
        yield Finding(
            f"the KV cache was set to {blocks:,} blocks by hand",
            line=line,
            expected="as many blocks as the memory holds",
            observed=f"--num-gpu-blocks-override {blocks}",
            remedy=f"leave it out: the option is for tests and keeps the pool at {blocks:,} blocks whatever the memory",
            fix={"num_gpu_blocks_override": "none"},
        )
        return
    if profiled == blocks:
        return
    ratio = Fraction(blocks, profiled)
    risk = blocks > profiled
    yield Finding(
        f"{blocks:,} blocks were set by hand, the memory holds {profiled:,}",
        line=line,
        expected=f"{profiled:,} blocks, as profiling found",
        observed=f"{blocks:,} blocks, {float(ratio):.2%} of it",
        remedy=f"leave out --num-gpu-blocks-override: {profiled:,} blocks fit"
        + (
            f"; {blocks - profiled:,} blocks are more than there is room for and will end in out of memory"
            if risk
            else f", {float(1 / ratio):.2f} times the concurrency"
            if blocks
            else ""
        ),
        explanation="the capacity lines after this one speak of the blocks set by hand",
        fix={"num_gpu_blocks_override": "none"},
    )
