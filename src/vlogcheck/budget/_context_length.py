"""How long a context a model's configuration allows, and which one a release takes unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlogcheck.budget._values import Values, as_int

if TYPE_CHECKING:
    from vlogcheck.budget._model_config import ModelConfig
    from vlogcheck.budget.releases import Release

__all__ = ["default_context", "longest_context"]

#: Keys that carry a length the model was trained for; vLLM takes the smallest one present.
_LENGTH_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
#: Overrides the others where it is present (Command-R; from 0.8.0 on).
_OWN_LENGTH = "model_max_length"
#: Scalings that vLLM does not multiply the length by: the config's length already includes them.
_UNSCALED_ROPE = frozenset({"su", "longrope", "llama3", "mrope", "default"})
_YARN = frozenset({"yarn", "deepseek_yarn"})
#: From here on a YaRN model's length is taken as stated instead of being stretched again.
_YARN_AS_STATED = "0.30.0"


def default_context(model: ModelConfig, release: Release) -> int:
    """Return the context length a release uses when ``--max-model-len`` is not given, in tokens.

    The smallest length key present (2048 without any), times the rope factor for scalings that stretch it. YaRN stretched
    ``original_max_position_embeddings`` until 0.31.0; later releases take the length as stated. LongRoPE models ("su" is its
    older name) default to their original length. Source: ``_get_and_verify_max_len``, vllm/config/model.py.
    """
    kinds = {rope.text("rope_type", "type") for rope in _ropes(model)}
    original = model.values.integer("original_max_position_embeddings", minimum=1)
    if kinds & {"longrope", "su"} and original is not None and release.since("0.10.0"):
        return original
    return longest_context(model, scales_yarn=release.before(_YARN_AS_STATED))


def _ropes(model: ModelConfig) -> list[Values]:
    nested = [Values(value, "rope_parameters") for value in model.rope.data.values() if isinstance(value, Mapping)]
    return nested or [model.rope]


def longest_context(model: ModelConfig, *, scales_yarn: bool = False) -> int:
    """Return the longest context the configuration allows, in tokens; ``scales_yarn`` for releases that stretch YaRN's."""
    lengths = [n for n in (model.values.integer(key) for key in _LENGTH_KEYS) if n]
    derived = model.values.integer(_OWN_LENGTH) or (min(lengths) if lengths else 2048)
    if "gemma3" in model.model_type:
        return derived
    for rope in _ropes(model):
        kind = rope.text("rope_type", "type")
        if kind is None or kind in _UNSCALED_ROPE or (kind in _YARN and not scales_yarn):
            continue
        factor = rope.number("factor")
        if kind in _YARN:
            derived = rope.integer("original_max_position_embeddings", minimum=1) or derived
        if factor is not None:
            derived = int(derived * factor)
    return as_int(derived, "max_position_embeddings", minimum=1)
