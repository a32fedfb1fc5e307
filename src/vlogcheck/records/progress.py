"""Capture, initialisation, ready."""

from __future__ import annotations

from vlogcheck.template import Record, Template
from vlogcheck.units import GiB

__all__ = ["EngineInit", "GraphCapture", "Ready"]


class GraphCapture(Record):
    """Graph capture of one rank finished."""

    seconds: float
    """Time taken."""
    gib: GiB | None = None
    """Memory taken; can be printed negative; not printed before 0.6.4."""

    templates = (
        Template(
            "Graph capturing finished in {seconds} secs, took {gib} GiB",
            versions=">=0.6.4",
            example="Graph capturing finished in 21 secs, took 0.52 GiB",
        ),
        Template(
            "Graph capturing finished in {seconds} secs.",
            versions=">=0.2.7,<0.6.4",
            example="Graph capturing finished in 14 secs.",
        ),
    )


class EngineInit(Record):
    """Engine initialisation (profile, KV cache, warm-up) finished."""

    seconds: float
    """Time taken."""
    compilation_seconds: float | None = None
    """Part of it that was torch.compile, from 0.20.2."""

    templates = (
        Template(
            "init engine (profile, create kv cache, warmup model) took {seconds} seconds",
            versions=">=0.6.5,<0.20",
            example="init engine (profile, create kv cache, warmup model) took 67.19 seconds",
        ),
        Template(
            "init engine (profile, create kv cache, warmup model) took {seconds} s"
            "[[ (compilation: {compilation_seconds} s[[ — {_}]])]]",
            versions=">=0.20.2",
            example="init engine (profile, create kv cache, warmup model) took 67.19 s (compilation: 21.50 s)",
        ),
    )


class Ready(Record):
    """The server answers requests (uvicorn's start-up line)."""

    templates = (
        Template(
            "INFO:     Application startup complete.",
            versions="",
            source="uvicorn",
            example="INFO:     Application startup complete.",
        ),
        Template(
            "Application startup complete.",
            versions="",
            source="uvicorn",
            example="Application startup complete.",
        ),
    )
