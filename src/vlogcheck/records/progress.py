"""From the first shard to the first request: progress bars, capture, initialisation, ready."""

from __future__ import annotations

from typing import Any

from vlogcheck.template import Address, Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "EngineInit",
    "EngineReady",
    "GraphCapture",
    "Progress",
    "Ready",
    "Route",
    "ServerStarting",
    "UvicornRunning",
]


class Progress(Record):
    """One state of a progress bar, as it was drawn: shards read or graphs captured by one rank."""

    stage: Word
    """weights or graphs."""
    kind: str | None = None
    """Checkpoint format, or which graphs."""
    done: int
    """Shards or graphs finished."""
    total: int
    """Shards or graphs to do."""
    percent: int
    """Share finished."""
    elapsed: Word
    """Time since the bar began, as drawn."""
    seconds: int | None = None
    """The same in seconds."""

    templates = (
        Template(
            "Loading {kind} checkpoint shards:{_} {percent}% Completed | {done}/{total} [{elapsed}<{_}",
            versions=">=0.4.3",
            example="Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.45it/s]",
            source="tqdm",
            values={"stage": "weights"},
        ),
        Template(
            "Capturing CUDA graphs ({kind}):{_} {percent}%|{_}| {done}/{total} [{elapsed}<{_}",
            versions=">=0.10.1",
            example="Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██████████| 51/51 [00:03<00:00, 15.40it/s]",
            source="tqdm",
            values={"stage": "graphs"},
        ),
        Template(
            "Capturing ACL graphs ({kind}):{_} {percent}%|{_}| {done}/{total} [{elapsed}<{_}",
            versions="",
            example="Capturing ACL graphs (decode, FULL): 100%|██████████| 3/3 [00:03<00:00, 15.40it/s]",
            source="vllm-ascend",
            values={"stage": "graphs"},
        ),
        Template(
            "Capturing CUDA graphs:{_} {percent}%|{_}| {done}/{total} [{elapsed}<{_}",
            versions=">=0.12.0,<0.17",
            example="Capturing CUDA graphs: 100%|██████████| 51/51 [00:03<00:00, 15.40it/s]",
            source="tqdm",
            values={"stage": "graphs"},
        ),
        Template(
            "Capturing CUDA graph shapes:{_} {percent}%|{_}| {done}/{total} [{elapsed}<{_}",
            versions=">=0.6.6,<0.11",
            example="Capturing CUDA graph shapes: 100%|██████████| 35/35 [00:21<00:00,  1.63it/s]",
            source="tqdm",
            values={"stage": "graphs"},
        ),
        Template(
            "Capturing CUDA graph{_}: {percent}% {done}/{total} [{elapsed}<{_}",
            versions="",
            example="Capturing CUDA graph shapes: 100% 35/35 [00:21<00:00,  1.63it/s]",
            source="notebook",
            values={"stage": "graphs"},
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn the clock into seconds."""
        parts = str(values["elapsed"]).split(":")
        if len(parts) > 4 or not all(part.isdecimal() and len(part) < 10 for part in parts):
            return values
        seconds = 0
        for part in parts:
            seconds = seconds * 60 + int(part)
        return {**values, "seconds": seconds}


class GraphCapture(Record):
    """Graph capture of one rank finished. The V2 runner (0.29 and later) prints a sample first, then the real one."""

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
            versions=">=0.2.6,<0.6.4",
            example="Graph capturing finished in 14 secs.",
        ),
    )


class EngineInit(Record):
    """Engine initialisation (profile, KV cache, warm-up) finished."""

    seconds: float
    """Time taken."""
    compilation_seconds: float | None = None
    """Part of it that was torch.compile, from 0.20.2."""
    encoder_compilation_seconds: float | None = None
    """Part of that for the encoder, where it is compiled."""

    templates = (
        Template(
            "init engine (profile, create kv cache, warmup model) took {seconds} seconds",
            versions=">=0.6.5,<0.20",
            example="init engine (profile, create kv cache, warmup model) took 67.19 seconds",
        ),
        Template(
            "init engine (profile, create kv cache, warmup model) took {seconds} s"
            "[[ (compilation: {compilation_seconds} s[[ — language_model: {_} s, encoder: {encoder_compilation_seconds} s]])]]",
            versions=">=0.20.0",
            example="init engine (profile, create kv cache, warmup model) took 67.19 s (compilation: 21.50 s)",
        ),
    )


class EngineReady(Record):
    """One of several engines is ready (v1/engine/core_client.py, 0.8.4 and 0.8.5)."""

    engine: Word
    """Engine index."""

    templates = (
        Template(
            "Core engine process {engine} ready.",
            versions=">=0.8.4,<0.9",
            example="Core engine process 0 ready.",
        ),
    )


class ServerStarting(Record):
    """The API server is about to listen (entrypoints)."""

    url: Address
    """Address it will listen on."""
    server: Word | None = None
    """Index of the API server, from 0.9.1 to 0.17."""

    templates = (
        Template(
            "Starting vLLM server on {url}",
            versions=">=0.18.0",
            example="Starting vLLM server on http://0.0.0.0:8000",
        ),
        Template(
            "Starting vLLM API server on {url}",
            versions=">=0.7.3,<0.9.1",
            example="Starting vLLM API server on http://0.0.0.0:8000",
        ),
        Template(
            "Starting vLLM API server {server} on {url}",
            versions=">=0.9.1,<0.18",
            example="Starting vLLM API server 0 on http://0.0.0.0:8000",
        ),
    )


class Route(Record):
    """One address the server answers, or the heading of their list (entrypoints/launcher.py)."""

    route: str | None = None
    """The path; None in the heading of the list."""
    methods: str | None = None
    """HTTP methods."""
    endpoint: Word | None = None
    """Function, for what is no HTTP method, from 0.16."""

    templates = (
        Template(
            "Route: {route}, Methods: {methods}",
            versions=">=0.5.2",
            example="Route: /v1/chat/completions, Methods: POST",
        ),
        Template(
            "Route: {route}, Endpoint: {endpoint}",
            versions=">=0.16.0",
            example="Route: /v1/realtime, Endpoint: realtime_endpoint",
        ),
        Template("Available routes are:", versions=">=0.5.2", example="Available routes are:"),
    )


class UvicornRunning(Record):
    """uvicorn's lines around the start that say nothing of readiness."""

    url: str | None = None
    """Address, where the line has it."""
    server_pid: int | None = None
    """Process, where the line has it."""

    templates = tuple(
        Template(prefix + text, versions="", source="uvicorn", example=prefix + example)
        for prefix in ("INFO:     ", "")
        for text, example in (
            (
                "Uvicorn running on {url} (Press CTRL+C to quit)",
                "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
            ),
            ("Started server process [{server_pid}]", "Started server process [4242]"),
            ("Waiting for application startup.", "Waiting for application startup."),
        )
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
