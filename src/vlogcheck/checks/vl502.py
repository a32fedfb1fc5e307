"""VL502: one rank has less KV cache memory than the others, though the weights are even."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._memory import VLLM_BUFFER, DeviceWorkers, Worker, request_bytes, signed_gib, worth
from vlogcheck.checks._ranks import Reading, even, stages
from vlogcheck.registry import Finding, Missing, Severity, check
from vlogcheck.startup import Startup
from vlogcheck.units import Interval, format_gib

_OWN = {"activation": "its profile run peaked higher", "graph_estimate": "its graph estimate is larger"}
"""Terms that are the rank's own: the first rank also samples."""
_SHARED = {
    "non_torch": "its non-torch memory is larger: communication buffers, or another process that grew meanwhile",
    "consumed": "it consumed more: communication buffers, or another process that grew meanwhile",
}


@check("one rank has less KV cache memory than the others, though the weights are even", Severity.WARNING)
def uneven_kv_memory(workers: DeviceWorkers, startup: Startup) -> Iterator[Finding]:
    """Flag ranks of a stage whose KV cache memory differs by a request or more with even weights."""
    groups = stages(workers, startup, "kv_cache")
    if not groups:
        raise Missing("no two ranks of one stage print their KV cache memory")
    for ranks in groups:
        tightest = min(ranks, key=lambda pair: pair[1].mid)
        roomiest = max(ranks, key=lambda pair: pair[1].mid)
        spread = roomiest[1].lo - tightest[1].hi
        if spread <= 0 or not even(ranks, "weights"):
            continue
        one = request_bytes(tightest[0])
        if spread < max(one[0] if one is not None else 0, VLLM_BUFFER):
            continue
        yield _finding(tightest, roomiest, ranks, spread)
        return


def _finding(tightest: Reading, roomiest: Reading, ranks: list[Reading], spread: int) -> Finding:
    worker = tightest[0]
    own = _larger(worker, roomiest[0], _OWN)
    idle = sum(seen.mid - tightest[1].mid for _, seen in ranks)
    gain = f"every rank gains up to {format_gib(spread)}{worth(worker, spread)}"
    if own:
        why, severity = own, Severity.NOTE
        remedy = (
            f"no other process: with a smaller --max-num-seqs or --max-num-batched-tokens its peak falls, and {gain}"
        )
    else:
        why, severity = _larger(worker, roomiest[0], _SHARED) or _other_process(worker), None
        remedy = (
            f"look who else is on the card of {worker.name} (nvidia-smi, rocm-smi --showpids, fuser -v /dev/kfd"
            f" /dev/dri/*) and start again without: {gain}; until then {format_gib(idle)} lie idle on the other cards"
        )
    return Finding(
        f"{worker.name} has {format_gib(spread)} less for the KV cache than {roomiest[0].name}",
        line=worker.ledger["kv_cache"].line,
        expected="the same on every rank: the weights are even",
        observed=", ".join(f"{w.name} {format_gib(seen.mid)}" for w, seen in ranks),
        remedy=remedy,
        explanation=f"the tightest card sizes the pool of all; {why}",
        severity=severity,
    )


def _larger(tight: Worker, roomy: Worker, terms: dict[str, str]) -> str:
    """Return which printed terms are larger on the tight rank, if any."""
    found = []
    for key, text in terms.items():
        mine, theirs = tight.ledger[key].interval, roomy.ledger[key].interval
        if mine is not None and theirs is not None and mine.lo > theirs.hi:
            found.append(f"{text} ({signed_gib(_gap(mine, theirs))} more)")
    return "; ".join(found)


def _other_process(worker: Worker) -> str:
    if worker.rank.rule.others_charged:
        return "this release charges what other processes hold on the card"
    return "another process took memory on that card while it profiled"


def _gap(mine: Interval, theirs: Interval) -> int:
    return mine.mid - theirs.mid
