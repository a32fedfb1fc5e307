"""torch.compile: where the time between loading and capture goes."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["CompileCache", "CompileTime", "DynamoTime", "GraphCached", "GraphCompiled", "GraphLoaded", "WarmupSize"]

_TAG = "[[[{tag}] ]]"


class DynamoTime(Record):
    """Time torch.compile spent tracing the model (compilation/backends.py)."""

    seconds: float
    """Time taken."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "Dynamo bytecode transform time: {seconds} s",
            versions=">=0.6.5",
            example="[backbone] Dynamo bytecode transform time: 5.11 s",
        ),
    )


class GraphCompiled(Record):
    """One graph was compiled, or its compilation began in 0.6.3 and 0.6.4 (compilation/backends.py)."""

    shape: str
    """Batch size, a range of them, or general."""
    seconds: float | None = None
    """Time taken."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "Compiling a graph for compile range {shape} takes {seconds} s",
            versions=">=0.13.0",
            example="Compiling a graph for compile range (1, 8192) takes 12.34 s",
        ),
        Template(
            "Compiling a graph for dynamic shape takes {seconds} s",
            versions=">=0.10.0,<0.13",
            example="Compiling a graph for dynamic shape takes 12.34 s",
            values={"shape": "general"},
        ),
        Template(
            "Compiling a graph for general shape takes {seconds} s",
            versions=">=0.6.5,<0.10",
            example="Compiling a graph for general shape takes 12.34 s",
            values={"shape": "general"},
        ),
        Template(
            "Compiling a graph for shape {shape} takes {seconds} s",
            versions=">=0.6.4,<0.13.0",
            example="Compiling a graph for shape 8 takes 3.21 s",
        ),
        Template(
            "Compiling a graph for general shape[[s]]",
            versions=">=0.6.3,<0.6.5",
            example="Compiling a graph for general shapes",
            values={"shape": "general"},
        ),
        Template(
            "Compiling a graph for shape[[s]] {shape}",
            versions=">=0.6.3,<0.13.0",
            example="Compiling a graph for shape 8",
        ),
    )


class GraphLoaded(Record):
    """A compiled graph came from the cache (compilation/backends.py, decorators.py)."""

    shape: str | None = None
    """Batch size, a range of them, or general."""
    seconds: float | None = None
    """Time taken."""
    file: str | None = None
    """The file of a model compiled ahead of time."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "Directly load the compiled graph(s) for compile range {shape} from the cache, took {seconds} s",
            versions=">=0.13.0",
            example="Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 1.234 s",
        ),
        Template(
            _TAG + "Directly load AOT compilation from path {file}",
            versions=">=0.11.1",
            example="Directly load AOT compilation from path /root/.cache/vllm/torch_aot_compile/ab12/rank_0_0/model",
        ),
        Template(
            "Directly load the compiled graph(s) for dynamic shape from the cache, took {seconds} s",
            versions=">=0.10.0,<0.13",
            example="Directly load the compiled graph(s) for dynamic shape from the cache, took 3.210 s",
            values={"shape": "general"},
        ),
        Template(
            "Directly load the compiled graph(s) for shape {shape} from the cache, took {seconds} s",
            versions=">=0.8.5,<0.13",
            example="Directly load the compiled graph(s) for shape None from the cache, took 3.210 s",
        ),
        Template(
            "Directly load the compiled graph for shape {shape} from the cache",
            versions=">=0.7.3,<0.8.5",
            example="Directly load the compiled graph for shape None from the cache",
        ),
        Template(
            "Directly lookup the graph for shape {shape} from the cache",
            versions=">=0.6.5,<0.7.3",
            example="Directly lookup the graph for shape None from the cache",
        ),
    )


class GraphCached(Record):
    """A compiled graph is kept for the next start (compilation/backends.py)."""

    shape: str
    """Batch size, a range of them, or general."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "Cache the graph of compile range {shape} for later use",
            versions=">=0.13.0",
            example="Cache the graph of compile range (1, 8192) for later use",
        ),
        Template(
            "Cache the graph for dynamic shape for later use",
            versions=">=0.10.0,<0.13",
            example="Cache the graph for dynamic shape for later use",
            values={"shape": "general"},
        ),
        Template(
            "Cache the graph of shape {shape} for later use",
            versions=">=0.6.5,<0.13",
            example="Cache the graph of shape None for later use",
        ),
    )


class CompileCache(Record):
    """Folder of the compile cache (compilation/backends.py)."""

    folder: str
    """The folder."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "Using cache directory: {folder} for vLLM's torch.compile",
            versions=">=0.6.5",
            example="Using cache directory: /root/.cache/vllm/torch_compile_cache/ab12/rank_0_0 for vLLM's torch.compile",
        ),
    )


class CompileTime(Record):
    """Time torch.compile took, or the profile run it belongs to (compilation/monitor.py, decorators.py)."""

    seconds: float
    """Time taken."""
    covers: Word
    """compile, profile (the profile run without it) or both."""
    tag: Word | None = None
    """The part of the model, from 0.32."""

    templates = (
        Template(
            _TAG + "torch.compile took {seconds} s in total",
            versions=">=0.18.0",
            example="torch.compile took 17.45 s in total",
            values={"covers": "compile"},
        ),
        Template(
            "torch.compile takes {seconds} s in total",
            versions=">=0.6.5,<0.18",
            example="torch.compile takes 17.45 s in total",
            values={"covers": "compile"},
        ),
        Template(
            _TAG + "torch.compile and initial profiling/warmup run together took {seconds} s in total",
            versions=">=0.18.0",
            example="torch.compile and initial profiling/warmup run together took 21.30 s in total",
            values={"covers": "both"},
        ),
        Template(
            _TAG + "Initial profiling/warmup run took {seconds} s",
            versions=">=0.18.0",
            example="Initial profiling/warmup run took 3.85 s",
            values={"covers": "profile"},
        ),
    )


class WarmupSize(Record):
    """A batch size is compiled and warmed up ahead of use (gpu_worker.py; worker.py in V0)."""

    batch_tokens: int
    """The size in tokens."""

    templates = (
        Template(
            "Compile and warming up model for size {batch_tokens}",
            versions=">=0.7.0",
            example="Compile and warming up model for size 8",
        ),
    )
