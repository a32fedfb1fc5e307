"""VL917: vLLM refused an option."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.failures import Outcome
from vlogcheck.records import (
    BatchedTokensMismatch,
    GraphModeUnsupported,
    InvalidKVCacheSpace,
    MambaBlocksTooFew,
    MaxModelLenTooLarge,
    SwapSpaceTooLarge,
    UtilizationOutOfRange,
)
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

Fix = dict[str, "int | float | str"]


@check("refused to start: an option does not fit the model, the host or another option", Severity.ERROR)
def option_refused(outcome: Outcome, startup: Startup) -> Iterator[Finding]:
    """Flag a start-up that ended because of an option, with the value that would do."""
    failure = outcome.failure
    if failure is None or failure.kind != "option" or isinstance(failure.record, MambaBlocksTooFew):
        return  # too few state slots: VL405 has the figures
    record, version = failure.record, startup.version
    fix: Fix = {}
    if isinstance(record, MaxModelLenTooLarge):
        limit = record.derived_max_model_len or record.model_max_length
        expected = (
            f"at most {limit:,} tokens ({record.derived_from})"
            if limit
            else f"at most the model's {record.derived_from}"
        )
        observed = f"max_model_len {record.max_model_len:,}"
        remedy = f"--max-model-len {limit}" if limit else "a length within the model's own"
        remedy += (
            "; a longer one needs RoPE scaling that the model was made for, not VLLM_ALLOW_LONG_MAX_MODEL_LEN alone"
        )
        fix = {"max_model_len": limit} if limit else {}
        message = f"the length asked for ({record.max_model_len:,}) is longer than the model's"
    elif isinstance(record, BatchedTokensMismatch):
        message, expected, observed, remedy, fix = _batch(record)
    elif isinstance(record, UtilizationOutOfRange):
        message = f"the utilization asked for is {record.gpu_memory_utilization:g}"
        expected, observed = "a share below 1.0", f"{record.gpu_memory_utilization:g}"
        share = default_utilization(parse_release(version))
        remedy, fix = f"--gpu-memory-utilization {share:g}, the default", {"gpu_memory_utilization": share}
    elif isinstance(record, SwapSpaceTooLarge):
        message = f"the swap space takes {record.swap_gib} of the host's {record.total_gib} GiB"
        expected, observed = "at most 70 % of the host's memory", f"{100 * record.swap_gib / record.total_gib:.0f} %"
        least = int(0.7 * record.total_gib)
        remedy = f"--swap-space such that all ranks of this host take at most {least} GiB together"
    elif isinstance(record, GraphModeUnsupported):
        message = f"{record.backend} cannot capture graphs in mode {record.mode}"
        expected, observed = f"a mode it supports ({record.support})", record.mode
        remedy = f"another cudagraph_mode than line {record.line}'s, such as PIECEWISE, or --enforce-eager"
    else:
        assert isinstance(record, InvalidKVCacheSpace)
        message = "VLLM_CPU_KVCACHE_SPACE is no size"
        expected, observed, remedy = (
            "a positive whole number of GiB",
            record.value,
            f"VLLM_CPU_KVCACHE_SPACE={_space(record)}",
        )
    yield Finding(
        f"refused to start: {message}", line=record.line, expected=expected, observed=observed, remedy=remedy, fix=fix
    )


def _batch(record: BatchedTokensMismatch) -> tuple[str, str, str, str, Fix]:
    tokens = record.max_num_batched_tokens
    if record.max_num_seqs is not None:
        return (
            f"a step of {tokens:,} tokens cannot hold {record.max_num_seqs:,} requests",
            f"at least {record.max_num_seqs:,} tokens",
            f"max_num_batched_tokens {tokens:,}",
            f"--max-num-seqs {tokens}, or --max-num-batched-tokens {record.max_num_seqs}",
            {"max_num_seqs": tokens},
        )
    longest = record.max_model_len or record.reachable_tokens or tokens
    return (
        f"a step of {tokens:,} tokens does not fit requests of {longest:,}",
        f"{longest:,} tokens",
        f"max_num_batched_tokens {tokens:,}",
        f"--max-num-batched-tokens {longest}, or --max-model-len {tokens}, or chunked prefill",
        {"max_num_batched_tokens": longest},
    )


def _space(record: InvalidKVCacheSpace) -> int:
    """Return the whole GiB nearest to what was asked for, else vLLM's default of 4."""
    try:
        return min(max(round(abs(float(record.value))), 1), 1024)
    except (ValueError, OverflowError):
        return 4
