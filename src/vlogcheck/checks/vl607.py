"""VL607: another engine or attention back end than asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vlogcheck.checks._options import asked, whole
from vlogcheck.records import AttentionBackend, EngineFallback
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup

_STEP, _CHUNKED = 2048, 32768
"""Tokens V0 takes at least in a step without chunked prefill, and the length above which it chunks by itself."""


@check("another engine or attention back end than asked for", Severity.WARNING)
def engine_or_backend_fallback(startup: Startup) -> Iterator[Finding]:
    """Flag the fallback to the V0 engine, and an attention back end that is not the one asked for."""
    fallback = startup.last(EngineFallback)
    if fallback is not None:
        yield Finding(
            f"the V0 engine starts instead of V1: {fallback.feature}",
            line=fallback.line,
            expected="the V1 engine",
            observed="the V0 engine",
            remedy=f"remove {fallback.feature} to get V1; V0 captures graphs outside the budget (1 to 3 GiB per card), profiles"
            f" {_step(startup)} and prints blocks instead of tokens",
        )
    stated = asked(startup, "attention_backend")
    used = startup.last(AttentionBackend)
    if isinstance(stated, str) and used is not None and stated.lower() != "auto" and not _same(stated, used.backend):
        yield Finding(
            f"the attention back end {stated} was asked for, {used.backend} is used",
            line=used.line,
            expected=stated,
            observed=used.backend,
            remedy=f"find out why line {used.line} says so, or state --attention-backend {used.backend}: block size and KV cache"
            " type belong to the back end, and with them the bytes per token",
            fix={"attention_backend": used.backend},
        )


def _step(startup: Startup) -> str:
    """Return the tokens of V0's profile run (config.py, arg_utils.py of 0.8): the longest prompt, to 32,768 tokens."""
    length = startup.config.max_model_len if startup.config is not None else None
    stated = whole(asked(startup, "max_num_batched_tokens"))
    if stated is None and length:
        stated = max(length, _STEP) if length <= _CHUNKED else _STEP
    seqs = whole(asked(startup, "max_num_seqs")) or 256
    return f"{stated:,} tokens of at most {seqs} requests" if stated else f"at most {seqs} requests of whole prompts"


def _same(stated: str, used: str) -> bool:
    def plain(name: str) -> str:
        name = re.sub(r"[^a-z0-9]", "", name.rsplit(".", 1)[-1].lower())
        return name.replace("flashattention", "flashattn").replace("v1", "").replace("vllm", "").replace("backend", "")

    one, other = plain(stated), plain(used)
    return one in other or other in one
