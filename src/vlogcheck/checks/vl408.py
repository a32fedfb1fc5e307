"""VL408: the expected concurrency never appeared at run time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vlogcheck.checks._load import average_tokens, counted, per_engine, seqs_reached
from vlogcheck.context import ConcurrencyCeiling, Context
from vlogcheck.expect import Expectation
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.runtime import RunTime


@check("the expected concurrency never appeared at run time", Severity.ERROR)
def concurrency_never_appeared(
    runtime: RunTime, expected: Expectation, ceiling: ConcurrencyCeiling | None, context: Context
) -> Iterator[Finding]:
    """Compare the most requests that ever ran with the expectation, and say which limit held."""
    if expected.concurrency is None:
        raise Missing("no concurrency was expected: give --expect-concurrency")
    peak = runtime.peak_running
    if peak is None or not runtime.busy:
        raise Missing("the log shows no request running")
    engines = max(ceiling.engines if ceiling is not None else 1, len(runtime.engines) or 1)
    if runtime.summed > 1:
        engines = 1  # a line is the sum of all engines
    wanted = per_engine(expected.concurrency, engines)
    if peak.running >= wanted:
        return
    on = " on one engine" if engines > 1 else ""
    if not runtime.queued:
        cap = seqs_reached(context, peak)
        yield Finding(
            f"never more than {counted(peak.running)} ran at once{on}, and none ever waited",
            line=peak.line,
            expected=f"{expected.concurrency:g} requests at once"
            + (f", {wanted} on each engine" if engines > 1 else ""),
            observed=f"{peak.running} at most, {peak.usage:g} % of the KV cache in use then",
            remedy=f"send {wanted} requests at once to test the promise: so far the clients set the limit"
            " (connections, rate, a proxy)"
            + (", not the server" if cap is None else f"; --max-num-seqs {wanted} first, or the server will"),
            explanation="neither the KV cache nor max_num_seqs was reached"
            if cap is None
            else f"max_num_seqs={cap} was reached, but no request had to wait for it",
            severity=Severity.NOTE,
        )
        return
    yield _limited(runtime, context, expected.concurrency, wanted, on)


def _limited(runtime: RunTime, context: Context, total: float, wanted: int, on: str) -> Finding:
    peak = runtime.peak_running
    assert peak is not None
    queue = runtime.peak_full or runtime.peak_queued
    assert queue is not None
    cap = seqs_reached(context, runtime.peak_queued or queue)
    fix: dict[str, int | float | str] = {}
    severity = Severity.ERROR
    if cap is not None:
        line, limit = (runtime.peak_queued or queue).line, f"max_num_seqs={cap} held"
        remedy, fix = f"--max-num-seqs {wanted} or more", {"max_num_seqs": wanted}
    elif runtime.full:
        line, limit = queue.line, "the KV cache was full"
        running = Fraction(runtime.full_running, runtime.full)
        average = average_tokens(context, running, runtime.full_usage / runtime.full) if running else None
        if average is not None:
            limit += f": {average.text}"
            planned = context.expectation.context
            if planned is not None and average.tokens > planned:
                limit += f", {average.tokens / planned:.2f} times the planned {planned:,}"
            remedy = (
                f"plan for {int(running)} requests of that length, or make them"
                f" {float(running / wanted):.2f} times as long, or give the"
                f" KV cache {float(wanted / running):.2f} times the memory"
            )
        else:
            remedy = (
                f"plan for {queue.running} requests, or give the KV cache"
                f" {wanted / max(queue.running, 1):.2f} times the memory"
            )
    else:
        line, limit, severity = (
            queue.line,
            f"neither the KV cache ({queue.usage:g} % used) nor max_num_seqs",
            Severity.WARNING,
        )
        remedy = (
            "requests waited for their prompts to be processed (--max-num-batched-tokens), for an adapter, a"
            " grammar or the encoder; a"
            f" ramp of {wanted} requests sent over several seconds shows the steady state"
        )
    return Finding(
        f"at most {peak.running} of {total:g} expected requests ran at once{on} while others waited",
        line=line,
        expected=f"{total:g} requests at once",
        observed=f"{peak.running} running (line {peak.line}); on line {queue.line} {queue.running} running,"
        f" {queue.waiting} waiting,"
        f" {queue.usage:g} % of the KV cache used",
        remedy=remedy,
        explanation=f"what held: {limit}",
        fix=fix,
        severity=severity,
    )
