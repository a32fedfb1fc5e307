"""Which kinds of cache each decoder layer keeps, read from a model's configuration.

The result is one tuple of kind names per decoder layer: most layers keep one cache, Falcon-H1's two, MLP-only layers and
layers that share another layer's cache none. Models that say it layer by layer (``layer_types``) are read as they say it; for
the rest the rule of the model type's configuration class in transformers is in the tables below, one short rule a model type:
that makes the file long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlogcheck.budget._values import MAX_MODULES, ModelConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.model import ModelConfig

#: Kinds whose cache grows with the context.
ATTENTION_KINDS = frozenset(
    {"full", "sliding", "chunked", "mla", "sparse", "sparse_shared", "cross", "v4_window", "loop"}
)

#: Kinds that keep a state of fixed size.
STATE_KINDS = frozenset({"mamba1", "mamba2", "gdn", "kda", "conv", "linear"})

Layers = tuple[tuple[str, ...], ...]

_TYPE_NAMES = {
    "full_attention": ("full",), "attention": ("full",), "sliding_attention": ("sliding",),
    "local_attention": ("sliding",),
    "chunked_attention": ("chunked",), "linear_attention": ("gdn",), "conv": ("conv",), "short_conv": ("conv",),
    "mamba": ("mamba2",), "mamba2": ("mamba2",), "moe": (), "mlp": (), "hybrid": ("full", "mamba2"),
}  # fmt: skip

#: Every n-th layer is full attention, the others slide, when the config lists no layers: model type -> default n.
_EVERY_NTH = {
    "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gemma3n": 5, "gemma3n_text": 5, "gemma4": 6, "gemma4_text": 6,
    "cohere2": 4,
    "olmo3": 4, "exaone4": 4, "gpt_oss": 2,
}  # fmt: skip


def layer_kinds(model: ModelConfig) -> Layers:
    """Return the kinds of cache of every decoder layer.

    Raises:
        ModelConfigError: the pattern is missing, names an unknown kind or does not fit the number of layers.

    """
    kind = model.text_model_type
    if model.is_encoder_decoder:
        return (("full", "cross"),) * model.num_layers
    rule = _RULES.get(kind)
    layers = rule(model) if rule is not None else _plain(model)
    shared = model.values.integer("num_kv_shared_layers") or 0
    if shared and kind.startswith(("gemma3n", "gemma4")):
        if shared > len(layers):
            raise ModelConfigError("config key 'num_kv_shared_layers' exceeds the number of layers")
        layers = layers[: len(layers) - shared] + ((),) * shared
    return layers


def _plain(model: ModelConfig) -> Layers:
    """Attention models: latent, listed, every n-th, a window for all layers, or full."""
    count = model.num_layers
    if model.is_mla and model.values.has("qk_rope_head_dim"):
        return _sparse(model) if model.values.has("index_topk") else (("mla",),) * count
    if model.values.has("block_configs"):
        return _block_configs(model)
    if model.text_model_type == "gpt_oss":
        return tuple(("sliding",) if i % 2 == 0 else ("full",) for i in range(count))
    listed = model.layer_types
    if listed is not None:
        return _windowless(model, _named(model, listed))
    every = _EVERY_NTH.get(model.text_model_type)
    if every is not None:
        return _windowless(model, _every_nth(model, every))
    windows = model.text.get("sliding_window")
    if isinstance(windows, list) and windows:
        repeated = (windows * (count // len(windows) + 1))[:count]
        return tuple(("sliding",) if window else ("full",) for window in repeated)
    return (("sliding",) if whole_model_window(model) else ("full",),) * count


def _sparse(model: ModelConfig) -> Layers:
    """Sparse latent attention: some layers follow the choice of an earlier layer and keep no index of their own."""
    count, values = model.num_layers, model.values
    listed = values.strings("indexer_types") if model.text_model_type == "hy_v4" else None
    if listed is not None:
        if len(listed) != count:
            raise ModelConfigError(f"config lists {len(listed)} indexer types for {count} layers")
        shared = [name == "shared" for name in listed]
    elif (pattern := values.first("index_topk_pattern")) is not None:
        letters = pattern[1] if isinstance(pattern[1], str | list) else ""
        shared = [i < len(letters) and letters[i] == "S" for i in range(count)]
    else:
        every = values.integer("index_topk_freq", minimum=1) or 1
        stated = values.integer("index_skip_topk_offset")
        offset = 2 if stated is None else stated
        shared = [max(i - offset + 1, 0) % every != 0 for i in range(count)]
    return tuple(("sparse_shared",) if follows else ("sparse",) for follows in shared)


def whole_model_window(model: ModelConfig) -> int | None:
    """Return the window all layers have when the config names one and no pattern, ``None`` where its class drops it."""
    values = model.values
    if values.has("use_sliding_window") and not values.flag("use_sliding_window"):
        return None
    if values.flag("use_sliding_window") and model.text_model_type in {"qwen2", "qwen3"}:
        first = values.integer("max_window_layers")  # the layers from here on slide
        return None if first is not None and first >= model.num_layers else model.sliding_window
    if model.text_model_type in {
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen2_vl_text",
        "qwen2_5_vl_text",
        "smollm3",
    } and not (values.flag("use_sliding_window")):
        return None
    return model.sliding_window


def _windowless(model: ModelConfig, layers: Layers) -> Layers:
    """Without a window the layers that would slide do not."""
    if model.sliding_window is None:
        return tuple(tuple("full" if kind == "sliding" else kind for kind in layer) for layer in layers)
    return layers


def _named(model: ModelConfig, listed: tuple[str, ...]) -> Layers:
    if len(listed) < model.num_layers:
        raise ModelConfigError(f"config lists {len(listed)} layer types for {model.num_layers} layers")
    try:
        named = [_TYPE_NAMES[name] for name in listed[: model.num_layers]]
        if model.text_model_type.startswith("gemma4"):
            named[-1] = ("full",)  # its class does not let the last layer slide
        return tuple(named)
    except KeyError as error:
        raise ModelConfigError(f"layer type {str(error.args[0])[:40]!r} is not known") from None


def _mamba2_named(model: ModelConfig, listed: tuple[str, ...]) -> Layers:
    """Return the model's linear layers are Mamba-2 ones, whatever name the list gives them."""
    return tuple(tuple("mamba2" if k == "gdn" else k for k in layer) for layer in _named(model, listed))


def _every_nth(model: ModelConfig, default: int) -> Layers:
    pattern = model.text.get("sliding_window_pattern", model.text.get("_sliding_window_pattern"))
    if isinstance(pattern, str):  # "LLLG": local, local, local, global
        if not pattern:
            return (("full",),) * model.num_layers
        return tuple(("sliding",) if pattern[i % len(pattern)] == "L" else ("full",) for i in range(model.num_layers))
    every = model.values.integer("sliding_window_pattern", "_sliding_window_pattern", minimum=1) or default
    layers = [("full",) if (i + 1) % every == 0 else ("sliding",) for i in range(model.num_layers)]
    if model.text_model_type.startswith("gemma4"):
        layers[-1] = ("full",)
    return tuple(layers)


def _block_configs(model: ModelConfig) -> Layers:
    """NAS models (Nemotron): a list of blocks, some without attention."""
    layers: list[tuple[str, ...]] = []
    for block in model.values.items("block_configs") or []:
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            raise ModelConfigError("config key 'block_configs' holds a block without 'attention'")
        layers.append(() if attention.get("no_op") or attention.get("replace_with_linear") else ("full",))
    return tuple(layers)


def _all(*kinds: str) -> Callable[[ModelConfig], Layers]:
    def rule(model: ModelConfig) -> Layers:
        return (kinds,) * model.num_layers

    return rule


def _jamba(model: ModelConfig) -> Layers:
    period = model.values.integer("attn_layer_period", minimum=1) or 8
    offset = model.values.integer("attn_layer_offset") or 0
    return tuple(("full",) if i % period == offset else ("mamba1",) for i in range(model.num_layers))


def _mimo_v2(model: ModelConfig) -> Layers:
    """Sliding layers where ``hybrid_layer_pattern`` says 1, with their own heads and sizes."""
    pattern = model.values.integers("hybrid_layer_pattern")
    if pattern is None:
        return _plain(model)
    if len(pattern) < model.num_layers:
        raise ModelConfigError("config key 'hybrid_layer_pattern' is shorter than the number of layers")
    return tuple(("sliding",) if slides else ("full",) for slides in pattern[: model.num_layers])


def _indices(model: ModelConfig) -> Layers:
    if model.layer_types is not None:
        return _mamba2_named(model, model.layer_types)
    full = set(model.values.integers("attn_layer_indices") or [])
    return tuple(("full",) if i in full else ("mamba2",) for i in range(model.num_layers))


def _nemotron_h(model: ModelConfig) -> Layers:
    if model.layer_types is not None and not model.values.has("hybrid_override_pattern"):
        return _mamba2_named(model, model.layer_types)
    letters = {"M": ("mamba2",), "*": ("full",), "-": (), "E": ()}
    pattern = model.values.text("hybrid_override_pattern") or ""
    if len(pattern) != model.num_layers or set(pattern) - letters.keys():
        raise ModelConfigError("config key 'hybrid_override_pattern' does not describe the model's layers")
    return tuple(letters[letter] for letter in pattern)


def _zamba2(model: ModelConfig) -> Layers:
    hybrid = set(model.values.integers("hybrid_layer_ids") or [])
    listed = model.layer_types
    if listed is not None:
        hybrid |= {i for i, name in enumerate(listed) if name in {"hybrid", "g"}}
    return tuple(("full", "mamba2") if i in hybrid else ("mamba2",) for i in range(model.num_layers))


def _lfm2(model: ModelConfig) -> Layers:
    if model.layer_types is not None:
        return _named(model, model.layer_types)
    full = model.values.integers("full_attn_idxs")
    if full is None:
        raise ModelConfigError("config lacks 'layer_types'")
    return tuple(("full",) if i in set(full) else ("conv",) for i in range(model.num_layers))


def _gdn(model: ModelConfig) -> Layers:
    if model.layer_types is not None:
        return _named(model, model.layer_types)
    every = model.values.integer("full_attention_interval", minimum=1) or 4
    return tuple(("full",) if (i + 1) % every == 0 else ("gdn",) for i in range(model.num_layers))


def _kimi_linear(model: ModelConfig) -> Layers:
    kda = set(model.values.object("linear_attn_config").integers("kda_layers") or [])  # counted from 1
    return tuple(("kda",) if i + 1 in kda else ("mla",) for i in range(model.num_layers))


def _bailing_hybrid(model: ModelConfig) -> Layers:
    """Linear attention but for the last layer of each group of ``layer_group_size``; without groups all are full."""
    every = model.values.integer("layer_group_size")
    every = 1 if every is None else every
    return tuple(("linear",) if every > 0 and (i + 1) % every else ("mla",) for i in range(model.num_layers))


def _loop_coder(model: ModelConfig) -> Layers:
    """Layers that are run several times: each round after the first keeps a window of its own."""
    rounds = model.values.integer("loop_num", minimum=1) or 2
    if rounds > MAX_MODULES:
        raise ModelConfigError(f"config key 'loop_num' is {rounds}: no model has that many rounds")
    return (("full", *("loop",) * (rounds - 1)),) * model.num_layers


def _minimax(model: ModelConfig) -> Layers:
    kinds = model.values.integers("attn_type_list", "decoder_attention_types")
    if kinds is not None:
        if len(kinds) < model.num_layers:
            raise ModelConfigError("config key 'attn_type_list' is shorter than the number of layers")
        return tuple(("full",) if kind else ("linear",) for kind in kinds[: model.num_layers])
    if model.layer_types is not None:
        names = {"full_attention": ("full",), "linear_attention": ("linear",)}
        return tuple(names.get(name, ("full",)) for name in model.layer_types[: model.num_layers])
    raise ModelConfigError("config lacks 'attn_type_list'")


def _deepseek_v4(model: ModelConfig) -> Layers:
    """Every layer keeps a window of latents, those with a ratio above 1 also a compressed cache and a state."""
    ratios = model.values.integers("compress_ratios") or []
    kinds = {
        4: ("v4_window", "v4_index", "v4_index_state", "v4_compressed", "v4_state"),
        0: ("v4_window",),
        1: ("v4_window",),
    }
    layers: list[tuple[str, ...]] = []
    for index in range(model.num_layers):
        ratio = ratios[index] if index < len(ratios) else 1
        layers.append(kinds.get(ratio, ("v4_window", "v4_compressed", "v4_state")))
    return tuple(layers)


def _llama4(model: ModelConfig) -> Layers:
    chunked = ("chunked",) if (model.values.integer("attention_chunk_size") or 0) > 0 else ("full",)
    rope = model.values.integers("no_rope_layers")
    if rope:  # 1: the layer has positions and attends within its chunk
        if len(rope) < model.num_layers:
            raise ModelConfigError("config key 'no_rope_layers' is shorter than the number of layers")
        return tuple(chunked if has else ("full",) for has in rope[: model.num_layers])
    every = model.values.integer("no_rope_layer_interval", minimum=1) or 4
    return tuple(chunked if (i + 1) % every else ("full",) for i in range(model.num_layers))


_RULES: dict[str, Callable[[ModelConfig], Layers]] = {
    "jamba": _jamba,
    "mamba": _all("mamba1"),
    "falcon_mamba": _all("mamba1"),
    "mamba2": _all("mamba2"),
    "bamba": _indices,
    "granitemoehybrid": _indices,
    "nemotron_h": _nemotron_h,
    "falcon_h1": _all("full", "mamba2"),
    "zamba2": _zamba2,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2,
    "mimo_v2": _mimo_v2,
    "mimo_v2_flash": _mimo_v2,
    "olmo_hybrid": _gdn,
    "qwen3_next": _gdn,
    "qwen3_5": _gdn,
    "qwen3_5_text": _gdn,
    "qwen3_5_moe": _gdn,
    "qwen3_5_moe_text": _gdn,
    "kimi_linear": _kimi_linear,
    "bailing_hybrid": _bailing_hybrid,
    "longcat_flash": _all("mla", "mla"),
    "iquestloopcoder": _loop_coder,
    "minimax": _minimax,
    "minimax_text_01": _minimax,
    "minimax_m1": _minimax,
    "deepseek_v4": _deepseek_v4,
    "llama4": _llama4,
    "llama4_text": _llama4,
}
