"""Who serves what: engine banner, API server version and arguments."""

from __future__ import annotations

from typing import Any

from vlogcheck._literals import read_call, read_keywords
from vlogcheck.template import Literal, Record, Template, Word

__all__ = ["EngineConfig", "ServerArgs", "ServerVersion"]


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

    templates = (
        Template(
            "Initializing a V1 LLM engine (v{version}) with config: {config}",
            versions=">=0.7.1",
            example="Initializing a V1 LLM engine (v0.12.0) with config: model='m', dtype=torch.bfloat16, max_seq_len=4096",
            values={"engine_generation": "V1"},
        ),
        Template(
            "Initializing a V0 LLM engine (v{version}) with config: {config}",
            versions=">=0.7.1,<0.11",
            example="Initializing a V0 LLM engine (v0.8.5) with config: model='m', dtype=torch.bfloat16, max_seq_len=4096",
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
        """Take the configuration apart; `version` may be glued to it in old wordings."""
        text = values["config"]
        if isinstance(text, str):
            config = (
                (read_call(text) or {})
                if text.startswith("VllmConfig(")
                else read_keywords(text.rstrip(")") + ")" * (text.count("(") - text.rstrip(")").count(")")))
            )
        else:
            config = text if isinstance(text, dict) else {}
        named = {
            "model": _text(config.get("model")),
            "dtype": _text(config.get("dtype")),
            "kv_cache_dtype": _text(config.get("kv_cache_dtype")),
            "max_model_len": _whole(config.get("max_seq_len", config.get("max_model_len"))),
            "tensor_parallel_size": _whole(config.get("tensor_parallel_size")),
            "pipeline_parallel_size": _whole(config.get("pipeline_parallel_size")),
            "data_parallel_size": _whole(config.get("data_parallel_size")),
            "quantization": _text(config.get("quantization")),
            "enforce_eager": _flag(config.get("enforce_eager")),
            "enable_prefix_caching": _flag(config.get("enable_prefix_caching")),
            "speculative_config": config.get("speculative_config"),
        }
        return {**values, "config": config, **{name: value for name, value in named.items() if value is not None}}


class ServerArgs(Record):
    """The arguments the server was started with (api_server.py; entrypoints/utils.py from 0.10.1)."""

    args: Literal
    """Argument names to values: only those that differ from the default in newer releases."""
    version: Word | None = None
    """Release, where the same line names it."""

    templates = (
        Template(
            "non-default args: {args}",
            versions=">=0.10.1",
            example="non-default args: {'model': 'm', 'max_model_len': 4096}",
        ),
        Template(
            "args: {args}",
            versions=">=0.2.0,<0.12",
            example="args: Namespace(host=None, port=8000, model='m')",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Keep what can be read of an argument list that is not a dict."""
        args = values["args"]
        if isinstance(args, str):
            args = read_call(args) or read_keywords(args.strip("{}"))
        return {**values, "args": args if isinstance(args, dict) else {}}


class ServerVersion(Record):
    """The API server's version line or banner (api_server.py; the logo's first lines from 0.15)."""

    version: Word
    """vLLM release."""

    templates = (
        Template(
            "vLLM API server version {version}",
            versions=">=0.3.3",
            example="vLLM API server version 0.8.4",
        ),
        Template(
            "vLLM server version {version}",
            versions=">=0.12",
            example="vLLM server version 0.20.2",
        ),
        Template(
            "{_}  version {version}",
            versions=">=0.14",
            example="  █▄█▀ █     █     █     █  version 0.15.1",
        ),
    )


def _text(value: Any) -> str | None:
    if value is None or value == "None":
        return None
    return str(value).removeprefix("torch.")


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
