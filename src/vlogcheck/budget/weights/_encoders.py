"""Models that are not a stack of decoder layers: Whisper, BERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget.weights._build import Builder
from vlogcheck.budget.weights._dimensions import NotModelled, layers_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

__all__ = ["WHOLE"]

_A = "attention"


def _whisper(build: Builder, model: ModelConfig) -> None:
    """Whisper: encoder and decoder with cross-attention; the vocabulary table is neither padded nor cut (0.13 on)."""
    values = model.values
    if not build.share.first or not build.share.last:
        raise NotModelled("Whisper does not run in pipeline stages")
    hidden = model.hidden_size
    part = "encoder"
    for n_in in (values.need("num_mel_bins", minimum=1), hidden):
        build.plain(part, 3 * n_in, hidden, bias=True)
    for _ in range(layers_in(values, "encoder_layers")):
        _attention(build, part, hidden)
        _feed_forward(build, part, hidden, values.need("encoder_ffn_dim"))
        for _ in range(2):
            build.norm(hidden, "layer", part)
    build.norm(hidden, "layer", part)
    build.add(part, values.need("max_source_positions") * hidden)
    build.add("embedding", model.vocab_size * hidden)
    build.add("embedding", values.need("max_target_positions") * hidden)
    for _ in range(layers_in(values, "decoder_layers")):
        _attention(build, _A, hidden)
        build.column(_A, "encoder_attn.q_proj", hidden, [hidden], bias=True)
        build.column(_A, "encoder_attn.kv_proj", hidden, [hidden, hidden], bias=True)
        build.row(_A, "encoder_attn.out_proj", hidden, hidden, bias=True)
        _feed_forward(build, "mlp", hidden, values.need("decoder_ffn_dim"))
        for _ in range(3):
            build.norm(hidden, "layer")
        for _ in range(2):
            build.attention_scales()
    build.norm(hidden, "layer")


def _attention(build: Builder, part: str, hidden: int) -> None:
    build.column(part, "self_attn.qkv_proj", hidden, [hidden, hidden, hidden], bias=True)
    build.row(part, "self_attn.out_proj", hidden, hidden, bias=True)


def _feed_forward(build: Builder, part: str, hidden: int, inner: int) -> None:
    build.column(part, "mlp.fc1", hidden, [inner], bias=True)
    build.row(part, "mlp.fc2", inner, hidden, bias=True)


def _bert(build: Builder, model: ModelConfig) -> None:
    """BERT and RoBERTa as embedding models: tables padded to 64 rows, no pooler."""
    values = model.values
    hidden = model.hidden_size
    positions = values.need("max_position_embeddings", minimum=1)
    for rows in (model.vocab_size, positions, values.integer("type_vocab_size") or 0):
        if rows:
            build.table("embedding", rows, hidden)
    build.norm(hidden, "layer")
    build.buffer("embedding", 8 * positions)
    for _ in range(model.num_layers):
        build.column(_A, "self.qkv_proj", hidden, [hidden, hidden, hidden], bias=True)
        build.row(_A, "output.dense", hidden, hidden, bias=True)
        build.norm(hidden, "layer")
        _feed_forward(build, "mlp", hidden, values.need("intermediate_size"))
        build.norm(hidden, "layer")
        build.attention_scales()


#: Architectures built as a whole.
WHOLE: dict[str, Callable[[Builder, ModelConfig], None]] = {
    "BertModel": _bert,
    "WhisperForConditionalGeneration": _whisper,
}
