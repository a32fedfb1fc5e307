"""Who serves what: engine banner, API server version and arguments."""

from __future__ import annotations

from typing import Any

from vlogcheck._lazy import pattern
from vlogcheck._literals import read_arguments, read_config
from vlogcheck.template import Literal, Record, Template, Word

__all__ = ["EngineConfig", "EngineDump", "ServedModel", "ServerArgs", "ServerVersion"]


class EngineConfig(Record):
    """The engine's banner: release and resolved configuration (llm_engine.py; v1/engine/core.py from 0.6.4)."""

    config: Literal
    """The whole configuration as printed: names to values."""
    version: Word | None = None
    """vLLM release; not printed before 0.4."""
    engine_generation: Word | None = None
    """`V0` or `V1` where the wording says so."""
    model: str | None = None
    """Model name or path."""
    dtype: Word | None = None
    """Weight and activation type, such as `bfloat16`."""
    kv_cache_dtype: Word | None = None
    """Type of the KV cache; `auto` means the model's."""
    max_model_len: int | None = None
    """Longest context in tokens (printed as `max_seq_len`)."""
    tensor_parallel_size: int | None = None
    """Ranks a layer is split over."""
    pipeline_parallel_size: int | None = None
    """Stages the layers are split over."""
    data_parallel_size: int | None = None
    """Engines that serve side by side."""
    quantization: Word | None = None
    """Quantisation method of the weights."""
    enforce_eager: bool | None = None
    """Whether graph capture is off."""
    enable_prefix_caching: bool | None = None
    """Whether prefix caching is on."""
    speculative_config: Literal | None = None
    """Drafter, where there is one."""
    decode_context_parallel_size: int | None = None
    """Ranks one request's KV cache is spread over."""
    enable_chunked_prefill: bool | None = None
    """Whether long prompts are processed in parts."""
    device: Word | None = None
    """Kind of device: cuda, cpu, tpu and so on."""

    templates = (
        Template(
            "Initializing a V1 LLM engine (v{version}) with config: {config}",
            versions=">=0.7.1",
            example="Initializing a V1 LLM engine (v0.12.0) with config: model='m', dtype=torch.bfloat16,"
            " max_seq_len=4096",
            values={"engine_generation": "V1"},
        ),
        Template(
            "Initializing a V0 LLM engine (v{version}) with config: {config}",
            versions=">=0.7.1,<0.11",
            example="Initializing a V0 LLM engine (v0.8.5) with config: model='m', dtype=torch.bfloat16,"
            " max_seq_len=4096",
            values={"engine_generation": "V0"},
        ),
        Template(
            "Initializing an LLM engine (v{version}) with config: {config}",
            versions=">=0.4.0,<0.7.1",
            example="Initializing an LLM engine (v0.6.3) with config: model='m', dtype=torch.float16, max_seq_len=4096",
        ),
        Template(
            "Initializing an LLM engine with config: {config}",
            versions="<0.4",
            example="Initializing an LLM engine with config: model='m', dtype=torch.float16, max_seq_len=2048)",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take the configuration apart."""
        return _with_config(values, cls._types)


class EngineDump(Record):
    """A step of the engine failed and it prints its configuration once more: not another start.

    logging_utils/dump_input.py.
    """

    config: Literal
    """The whole configuration as printed: names to values."""
    version: Word
    """vLLM release."""

    templates = (
        Template(
            "Dumping input data for V1 LLM engine (v{version}) with config: {config}",
            versions=">=0.9.2",
            example="Dumping input data for V1 LLM engine (v0.12.0) with config: model='m', dtype=torch.bfloat16,"
            " max_seq_len=4096,",
        ),
        Template(
            "V1 LLM engine (v{version}) with config: {config}",
            versions=">=0.9.0,<0.9.2",
            example="V1 LLM engine (v0.9.1) with config: model='m', dtype=torch.bfloat16, max_seq_len=4096,",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take the configuration apart."""
        return _with_config(values, cls._types)


class ServerArgs(Record):
    """The arguments the server was started with (api_server.py; entrypoints/utils.py from 0.10.1)."""

    args: Literal
    """Argument names to values: only those that differ from the default in newer releases."""
    version: Word | None = None
    """Release, where the same line names it."""

    templates = (
        Template(
            "non-default args: {args}",
            versions=">=0.9.0",
            example="non-default args: {'model': 'm', 'max_model_len': 4096}",
        ),
        Template(
            "args: {args}",
            versions=">=0.2.0",
            example="args: Namespace(host=None, port=8000, model='m')",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the arguments; a text that starts like this line but holds something else is not recognised."""
        args = values["args"]
        if not isinstance(args, dict):
            args = read_arguments(str(args))
        if args is None:
            raise ValueError("no arguments")
        return {**values, "args": args}


class ServerVersion(Record):
    """The API server's version: a line, or the logo's second line from 0.15 (entrypoints/common/startup.py)."""

    version: Word
    """vLLM release."""
    model: str | None = None
    """Model name or path, where the same line names it."""

    templates = (
        Template(
            "vLLM API server version {version}",
            versions=">=0.4.0,<0.25.0",
            example="vLLM API server version 0.8.4",
        ),
        Template(
            "vLLM server version {version}[[, serving model {model}]]",
            versions=">=0.15.0",
            example="vLLM server version 0.20.2, serving model Qwen/Qwen3-0.6B",
        ),
        Template(
            "{_} ▀▄▀ █  version {version}",
            versions=">=0.15.0",
            example=" ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.15.1",
        ),
    )


class ServedModel(Record):
    """The model on the logo's third line."""

    model: str
    """Model name or path."""

    templates = (
        Template(
            "{_} █  model   {model}",
            versions=">=0.15.0",
            example="  █▄█▀ █     █     █     █  model   Qwen/Qwen3-0.6B",
        ),
    )


_NAMES = {
    "max_model_len": ("max_seq_len", "max_model_len"),
    "kv_cache_dtype": ("kv_cache_dtype", "cache_dtype"),
    "device": ("device_config", "device"),
    "enable_chunked_prefill": ("enable_chunked_prefill", "chunked_prefill_enabled"),
}
"""Names under which the configuration prints a field, where they differ from the field's."""
_PATH = pattern(r"(?:Pure)?(?:Posix|Windows)?Path\('([^']+)'\)")  # a program that gave a path for the name


def _with_config(values: dict[str, Any], types: dict[str, str]) -> dict[str, Any]:
    """Read the configuration and take the fields out of it that are printed."""
    text = values["config"]
    config = text if isinstance(text, dict) else read_config(str(text))
    sections = [config]
    if isinstance(text, dict) or str(text).startswith("VllmConfig("):
        # a repr() of the dataclass: the values stand in its parts
        sections += [part for part in config.values() if isinstance(part, dict)]
    named = {}
    for field, kind in types.items():
        if field in ("config", "version", "engine_generation"):
            continue
        for name in _NAMES.get(field, (field,)):
            value = next((part[name] for part in sections if part.get(name) is not None), None)
            if (value := _as(kind, value)) is not None:
                named[field] = value
                break
    return {**values, "config": config, **named}


def _as(kind: str, value: Any) -> Any:
    """Return a configuration's value if it is what the field holds, else None."""
    if value is None or value == "None":
        return None
    if kind.startswith("int"):
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind.startswith("bool"):
        return value if isinstance(value, bool) else None
    if kind.startswith("Literal"):
        return value
    text = str(value).removeprefix("torch.")
    return path[1] if (path := _PATH.fullmatch(text)) else text
