"""A model's ``config.json``: found, read and checked; its language model's part told from the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vlogcheck.budget._defaults import filled_keys, with_class_defaults
from vlogcheck.budget._model_config import ModelConfig
from vlogcheck.budget._values import ModelConfigError, Values

__all__ = ["ModelConfig", "ModelConfigError", "load_model_config", "overridden"]

#: Where multimodal wrappers keep the language model's own configuration, in the order they are tried.
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "llm")

#: Outer shells that hold a whole model with its own text part (Qwen2.5-Omni and kin).
_SHELL_KEYS = ("thinker_config",)


def overridden(model: ModelConfig, overrides: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration with the keys of ``--hf-overrides`` replaced; nested text parts are merged.

    Raises:
        ModelConfigError: the overrides leave no object.

    """
    changed = dict(model.raw)
    for key, value in overrides.items():
        inner = changed.get(key)
        if key in (*_TEXT_KEYS, *_SHELL_KEYS) and isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = {**inner, **value}
        changed[key] = value
    return _build(changed, model.directory)


def _text_part(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    values = Values(raw)
    for key in _SHELL_KEYS:
        if values.has(key):
            return _text_part(values.object(key).data)
    for key in _TEXT_KEYS:
        inner = raw.get(key)
        if isinstance(inner, Mapping) and inner:
            return inner
    return raw


_LARGEST_FILE = 32 << 20
"""Bytes of a configuration that are read: the largest published ones are below 1 MiB."""


def load_model_config(source: str | Path | Mapping[str, Any]) -> ModelConfig:
    """Read a model configuration.

    Args:
        source: path of a ``config.json``, a directory that holds one, or the JSON object itself.

    Raises:
        ModelConfigError: missing, unreadable or absurdly large file, not JSON, not an object.

    """
    if isinstance(source, Mapping):
        return _bounded(source, None, "the model configuration")
    if not isinstance(source, (str, Path, os.PathLike)):
        raise ModelConfigError(f"a model configuration is a path or a mapping, not {type(source).__name__}")
    path = Path(source)
    try:
        if path.is_dir():
            path = path / "config.json"
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ModelConfigError(f"no model configuration at {path}") from None
    except OSError as error:
        raise ModelConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise ModelConfigError(f"cannot read {str(path)!r}: {error}") from None
    if len(data) > _LARGEST_FILE:
        raise ModelConfigError(f"{path} is larger than {_LARGEST_FILE >> 20} MiB: no model configuration")
    try:
        content = json.loads(data)
    except RecursionError:
        raise ModelConfigError(f"{path} is nested too deeply") from None
    except ValueError as error:  # bad JSON, bad encoding, an integer of too many digits
        raise ModelConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise ModelConfigError(f"{path} holds {type(content).__name__}, not a JSON object")
    return _bounded(content, path.parent, str(path))


def _bounded(content: Mapping[str, Any], directory: Path | None, name: str) -> ModelConfig:
    try:
        return _build(content, directory)
    except RecursionError:
        raise ModelConfigError(f"{name} is nested too deeply") from None


def _build(content: Mapping[str, Any], directory: Path | None) -> ModelConfig:
    wrapped = content.get("hf_config")
    if isinstance(wrapped, Mapping) and not {"architectures", "model_type", "hidden_size"} & content.keys():
        content = wrapped  # a configuration filed with a note of where it came from
    if not content:
        raise ModelConfigError("the model configuration is an empty object")
    raw = MappingProxyType(dict(content))
    text = _text_part(raw)
    if text is raw:
        raw = text = MappingProxyType(with_class_defaults(content))
    else:
        text = MappingProxyType(with_class_defaults(text))
    return ModelConfig(raw, text, directory, tuple(filled_keys(_text_part(content))))
