"""The expected ledger: what the model's configuration and the flags say, by the rules of the release in the log."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlogcheck.budget.model import ModelConfig, ModelConfigError, load_model_config

if TYPE_CHECKING:
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger

__all__ = ["Model"]


class Model:
    """A model's configuration, to be planned with the flags and the release of a log."""

    def __init__(self, config: ModelConfig, origin: str) -> None:
        self.config = config
        self.origin = origin
        """Where the configuration came from."""

    @classmethod
    def load(cls, source: Any) -> Model:
        """Read a configuration (path, directory, mapping or `ModelConfig`). Raises `ModelConfigError`."""
        if isinstance(source, ModelConfig):
            return cls(source, "given")
        if isinstance(source, Model):
            return source
        return cls(load_model_config(source), str(source) if not isinstance(source, dict) else "given")

    @classmethod
    def find(cls, path: str) -> Model | None:
        """Read the configuration in the log's own model path, or None where there is none that can be read."""
        directory = Path(path).expanduser()
        try:
            if not (directory / "config.json").is_file():
                return None
            return cls(load_model_config(directory), f"found in {path}")
        except (ModelConfigError, OSError):
            return None

    def concurrency(self, context: Context, engine: EngineLedger, length: int) -> tuple[Fraction, Fraction] | None:
        """Return the bounds of the requests of `length` tokens that the engine's pool holds, or None if unknown."""
        return None
