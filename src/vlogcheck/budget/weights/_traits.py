"""What a decoder layer is made of, where ``config.json`` alone does not say it.

A :class:`Traits` holds the structural choices a family's code makes (biases, norms, gates). The factories in the
modules beside this one read the keys that steer them; families that share a factory share vLLM's class or its
structure. Source: ``vllm/model_executor/models/*.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Traits", "through_transformers"]


@dataclass(frozen=True, slots=True)
class Traits:
    """Structural choices of a family.

    Attributes:
        norm: kind of the layer norms: ``rms`` (weight), ``layer`` (weight and bias), ``none`` (no parameters).
        norms: full-width norms in a layer.
        qkv_bias: bias on the fused query/key/value projection.
        o_bias: bias on the output projection.
        qk_norm: query/key norms: ``head`` (one head wide each), ``heads`` (a weight per head on the rank), ``row``
            (all heads, cut over ranks), ``whole`` (all heads, on every rank), ``latent`` none here.
        qk_norm_kind: kind of those norms.
        gated: three matrices in the feed-forward layer instead of two.
        mlp_bias: bias on the feed-forward matrices.
        head_bias: bias on the output head.
        head: when the output head has a tensor of its own: ``untied``, ``always``, ``never``.
        head_item: bytes per element of the output head, ``None`` for the model's type.
        head_all: the head, where it has one, is built on every pipeline stage.
        embedding: pipeline stages with an embedding: ``ends`` (first, and last where tied), ``first``, ``all``.
        final_everywhere: the closing norm is built on every pipeline stage.
        tied: what ``tie_word_embeddings`` means when the key is absent.
        router_item: bytes per router weight, ``None`` for the model's type.
        router_bias: bias on the router itself.
        correction_item: bytes per entry of a per-expert score correction, 0 without one.
        expert_bias: biases inside the routed experts.
        shared_bias: bias on the shared expert's matrices, ``None`` for the dense layers' choice.
        shared_gate: a one-column gate on the shared expert.
        sinks: one attention sink per query head.
        query_gate: the query projection is doubled by an output gate.
        router_quantised: the router follows the quantisation (unless the checkpoint excludes it).
        activation_scalars: learned scalars of the activation, with as many scalar buffers.
        positions: rows of a learned position table.
        embed_norm: a norm behind the embedding.
        normalizer: one scalar buffer that scales the embedding.
        transformers_since: the release from which the model runs through the Transformers backend, which keeps rotary
            frequencies instead of a cache.
        absorbed: latent attention keeps its cache compressed and absorbs the up-projections (vLLM's MLA).
        rope: whether positions are rotary.
        rope_item: bytes per element of the rotary cache, ``None`` for the model's type.

    """

    norm: str = "rms"
    norms: int = 2
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: str = ""
    qk_norm_kind: str = "rms"
    gated: bool = True
    mlp_bias: bool = False
    head_bias: bool = False
    head: str = "untied"
    head_item: int | None = None
    head_all: bool = False
    embedding: str = "ends"
    final_everywhere: bool = False
    tied: bool = False
    router_item: int | None = None
    router_bias: bool = False
    correction_item: int = 0
    expert_bias: bool = False
    shared_bias: bool | None = None
    shared_gate: bool = False
    sinks: bool = False
    query_gate: bool = False
    router_quantised: bool = False
    activation_scalars: int = 0
    positions: int = 0
    embed_norm: bool = False
    normalizer: bool = False
    transformers_since: str | None = None
    absorbed: bool = True
    rope: bool = True
    rope_item: int | None = None


def through_transformers(traits: Traits) -> Traits:
    """Return the traits as the Transformers backend builds them.

    Tables and the closing norm sit on their own stages there, and norms over all heads are whole on every rank.
    """
    norm = "whole" if traits.qk_norm == "row" else traits.qk_norm
    return replace(traits, embedding="ends", final_everywhere=False, head_all=False, head_bias=False, qk_norm=norm)
