"""Remedies of VL6xx: what vLLM made of the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.remedies._case import MEMORY, Case, remedy
from tests.remedies._kv import concurrency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.test_pages import Block


def asking(case: Case, **options: object) -> Block:
    """Return the block of a server that was started with more options."""
    if "non-default args" in case.log:
        more = ", ".join(f"'{name}': {value!r}" for name, value in options.items())
        return case.again((r"\{'model': 'm'", f"{{'model': 'm', {more}"))
    args = f"INFO 03-01 09:59:59 [api_server.py:1] non-default args: { {'model': 'm', **options} }\n"
    return case.with_log(args + case.log)


@remedy("VL601")
def length_changed(case: Case) -> Iterator[Block]:
    if "User-specified" in case.log:
        asked, longest = case.read(r"max_model_len \((\d+)\).*max_position_embeddings=(\d+)")
        case.told(r"--max-model-len (\d+)", longest)
        case.fixed("max_model_len", longest)
        yield Case(case.without("User-specified"), case.finding).again(
            (f"max_seq_len={asked}", f"max_seq_len={longest}")
        )
        return
    used = case.read(r"max_seq_len=(\d+)")
    case.told(r"requests of ([\d,]+) tokens", used)
    yield case.again((r"'max_model_len': \d+", f"'max_model_len': {used}"))


@remedy("VL602")
def type_changed(case: Case) -> Iterator[Block]:
    if "'dtype': 'float32'" in case.log:
        case.told(r"(\d) bytes per element were planned, (\d) are used: recompute with (\w+)", 4, 2, "bfloat16")
        yield case.again((r"'dtype': 'float32'", "'dtype': 'bfloat16'"))
        yield case.again(
            (r"dtype=torch\.bfloat16", "dtype=torch.float32")
        )  # what kept it from being taken is put right
        return
    width = {"torch.float32": 4, "torch.bfloat16": 2}
    before, after = (width[word.strip(".\n")] for word in case.lines()[0].split() if word.startswith("torch."))
    case.told(r"plan with (\d) bytes per element, not the (\d)", after, before)
    yield asking(case, dtype=case.finding.fix["dtype"])


@remedy("VL603")
def quantised_cache(case: Case) -> Iterator[Block]:
    case.told(r"by (\d) and say so", 16 // 8)  # fp8
    case.told(r"--kv-cache-dtype (fp8_e4m3), or undo it with --kv-cache-dtype (bfloat16)", "fp8_e4m3", "bfloat16")
    yield asking(case, kv_cache_dtype=case.finding.fix["kv_cache_dtype"])
    yield Case(asking(case, kv_cache_dtype="bfloat16"), case.finding).again(("=fp8_e4m3", "=bfloat16"))


@remedy("VL604")
def block_size(case: Case) -> Iterator[Block]:
    size = case.read(r"block size to (\d+) for")
    case.told(
        r"next (\d+) tokens: up to (\d+) of its last block are lost, ([\d,]+) for 256", size, size - 1, 256 * (size - 1)
    )
    case.told(r"--block-size (\d+)", size)
    yield asking(case, block_size=int(case.finding.fix["block_size"]))


@remedy("VL605")
def no_prefix_caching(case: Case) -> Iterator[Block]:
    length = case.read(r"max_seq_len=(\d+)")
    case.told(r"share ([\d,]+) tokens hold ([\d,]+), not ([\d,]+)", length, 2 * length, length)
    assert case.finding.fix["enable_prefix_caching"] == "false"
    yield asking(case, enable_prefix_caching=False)


@remedy("VL606")
def no_chunked_prefill(case: Case) -> Iterator[Block]:
    length = case.read(r"max_seq_len=(\d+)")
    case.told(r"--no-enable-chunked-prefill --max-num-batched-tokens (\d+): .*\(([\d,]+) tokens\)", length, length)
    stated = {"enable_chunked_prefill": False, "max_num_batched_tokens": case.finding.fix["max_num_batched_tokens"]}
    block = case.again((r", 'enable_chunked_prefill': True", ""))
    yield asking(Case(block, case.finding), **stated)


@remedy("VL607")
def older_engine(case: Case) -> Iterator[Block]:
    if "attention_backend" in case.log:
        case.told(r"why line (\d+) says so, or state --attention-backend (\w+)", case.line_of("Using"), "FLASH_ATTN")
        yield case.again((r"'attention_backend': 'FLASHINFER'", "'attention_backend': 'FLASH_ATTN'"))
        yield case.again((r"Using FLASH_ATTN", "Using FLASHINFER"))  # what kept it from being taken is put right
        return
    length = int(case.read(r"max_seq_len=(\d+)"))
    case.told(r"profiles ([\d,]+) tokens of at most (\d+) requests", max(length, 2048), 256)
    newer = (r"\[llm_engine.py:240\] Initializing a V0", "[core.py:58] Initializing a V1")
    yield Case(case.without("Falling back to V0"), case.finding).again(newer)


@remedy("VL608")
def no_graphs(case: Case) -> Iterator[Block]:
    if "CUDAGraphMode" in case.log:
        line, graphs = case.line_of("CUDAGraphMode"), case.read(r"took ([\d.]+) GiB")
        case.told(r"cudagraph_mode (\w+) says the same without the detour of line (\d)", "FULL_AND_PIECEWISE", line)
        case.told(r"([\d.]+) GiB here \(line (\d)\)", graphs, case.line_of("Graph capturing"))
        stated = asking(case, compilation_config={"cudagraph_mode": case.finding.fix["cudagraph_mode"]})
        yield Case(stated, case.finding).without("is not supported with")
        return
    case.told(r"steps of up to (\d+) requests", 256)  # the default before 0.8
    yield asking(case, enforce_eager=bool(case.finding.fix["enforce_eager"]))


@remedy("VL611")
def default_limit(case: Case) -> Iterator[Block]:
    if "exceeds max_num_seqs" in case.log:
        reachable = case.read(r"max_model_len \((\d+)\)")
        case.told(r"--max-num-batched-tokens (\d+)", reachable)
        stated = asking(case, max_num_batched_tokens=int(reachable))
        yield Case(stated, case.finding).without("exceeds max_num_seqs")  # it is equal now
        return
    _, requests = concurrency(case)
    case.told(r"--max-num-seqs (\d+)", int(requests))
    yield asking(case, max_num_seqs=int(case.finding.fix["max_num_seqs"]))


@remedy("VL612")
def fixed_size(case: Case) -> Iterator[Block]:
    free, size = case.read(r"free memory ([\d.]+) GiB, reserved ([\d.]+) GiB")
    case.told(r"is (\d+) % of the KV cache", f"{100 / size:.0f}")
    # Without the option the utilization decides: of the free memory, what weights and the rest leave.
    block = case.without("skipped memory profiling", MEMORY.format(f"{free - size:.2f}"))
    yield Case(block, case.finding).again((r", 'kv_cache_memory_bytes': \d+", ""))
