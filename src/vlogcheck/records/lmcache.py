"""LMCache, a KV cache outside the device that runs inside vLLM's processes: what it holds and moves."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["LMCachePoolFull", "LMCacheStep"]

_MOVED = "size: {size_gib} {_}, cost {milliseconds} ms, throughput: {_} GB/s[[;{_}]]"


class LMCacheStep(Record):
    """LMCache looked tokens up, stored or retrieved them (LMCache 0.2 to 0.4: cache_engine.py, vllm_v1_adapter.py)."""

    step: Word
    """lookup, stored or retrieved."""
    tokens: int
    """Tokens found, stored or retrieved."""
    total_tokens: int | None = None
    """Tokens of the request, or that were to be moved."""
    request: Word | None = None
    """The request."""
    size_gib: GiB | None = None
    """KV cache moved. The line says GB and means GiB."""
    milliseconds: float | None = None
    """Time it took."""

    templates = (
        Template(
            "Reqid: {request}, Total tokens {total_tokens},[[ Inference Engine computed tokens: {_},]] LMCache hit tokens:"
            " {tokens}, need to load: {_}",
            versions="",
            source="lmcache",
            example="Reqid: cmpl-71, Total tokens 2048, Inference Engine computed tokens: 0, LMCache hit tokens: 1792, need to"
            " load: 1792",
            values={"step": "lookup"},
        ),
        Template(
            "Stored {tokens} out of total {total_tokens} tokens. " + _MOVED,
            versions="",
            source="lmcache",
            example="Stored 1792 out of total 1792 tokens. size: 0.2461 GB, cost 18.25 ms, throughput: 13.4850 GB/s;"
            " offload_time: 18.1000 ms, put_time: 0.1500 ms",
            values={"step": "stored"},
        ),
        Template(
            "Retrieved {tokens} out of {total_tokens} required tokens[[ (from {_} total tokens)]].[[ " + _MOVED + "]]",
            versions="",
            source="lmcache",
            example="Retrieved 1792 out of 1792 required tokens (from 2048 total tokens). size: 0.2461 gb, cost 14.32 ms,"
            " throughput: 17.1850 GB/s;",
            values={"step": "retrieved"},
        ),
        Template(
            "Retrieved {tokens} out of[[ total]] {total_tokens} out of total {_} tokens[[. " + _MOVED + "]]",
            versions="",
            source="lmcache",
            example="Retrieved 1002 out of total 1002 out of total 1002 tokens. size: 0.1223 gb, cost 60.35 ms, throughput:"
            " 2.0265 GB/s;",
            values={"step": "retrieved"},
        ),
        Template(
            "Retrieved {tokens} tokens in {_} seconds",
            versions="",
            source="lmcache",
            example="Retrieved 768 tokens in 0.010 seconds",
            values={"step": "retrieved"},
        ),
    )


class LMCachePoolFull(Record):
    """LMCache's pool has no room: blocks are not kept outside the device (LMCache 0.2 to 0.4: cache_engine.py)."""

    templates = (
        Template(
            "Failed to allocate memory for the KV cache.",
            versions="",
            source="lmcache",
            example="Failed to allocate memory for the KV cache.",
        ),
        Template(
            "The KV cache will not be stored.[[ ({_})]]",
            versions="",
            source="lmcache",
            example="The KV cache will not be stored. (cache_engine.py:200:lmcache.v1.cache_engine)",
        ),
    )
