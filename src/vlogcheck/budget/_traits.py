"""What kind of model a configuration describes, asked by the parts that follow vLLM's own decisions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vlogcheck.budget._pattern import ATTENTION_KINDS, STATE_KINDS, layer_kinds
from vlogcheck.budget._values import Values

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.releases import Release

#: Text model types whose latent attention vLLM keeps as one latent (``is_deepseek_mla``); others with a
#: ``kv_lora_rank``
#: (MiniCPM3) are run as ordinary attention.
_MLA_TYPES = frozenset({
    "axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_mtp", "glm_moe_dsa", "glm4_moe_lite", "hy_v4",
    "glm4_moe_lite_mtp", "kimi_k2", "kimi_k25", "kimi_linear", "longcat_flash", "pangu_ultra_moe",
    "pangu_ultra_moe_mtp",
    "bailing_hybrid", "deepseek_vl_v2",
})  # fmt: skip

#: Architectures of models that embed, rank or classify.
_POOLING_ENDINGS = (
    "ForSequenceClassification", "ForTokenClassification", "ForMaskedLM", "EmbeddingModel", "ForRewardModel",
    "BertModel", "RobertaModel",
)  # fmt: skip

#: Model types whose attention looks both ways: nothing is kept between steps.
_ENCODER_TYPES = frozenset({
    "bert", "roberta", "xlm-roberta", "modernbert", "nomic_bert", "distilbert", "albert", "electra", "deberta",
    "deberta-v2",
    "new", "gte", "jina_bert", "mpnet", "camembert",
})  # fmt: skip

#: Model types whose classes follow ``is_causal`` in the configuration.
_ASKED_FOR_CAUSALITY = frozenset({"llama", "qwen2", "qwen3", "gemma3_text", "apertus", "seed_oss"})

#: Connectors that follow several KV-cache groups, with the first release that leaves the hybrid manager on for them.
_GROUP_CONNECTORS = {
    "NixlConnector": "0.22.1", "MooncakeConnector": "0.22.1", "SimpleCPUOffloadConnector": "0.22.1",
    "OffloadingConnector": "0.22.1", "DecodeBenchConnector": "0.22.1", "ExampleHiddenStatesConnector": "0.22.1",
    "MooncakeStoreConnector": "0.22.1", "NixlPullConnector": "0.22.1", "NixlPushConnector": "0.22.1",
    "MoRIIOConnector": "0.30.0", "HiSparseConnector": "0.31.0",
}  # fmt: skip

_FP8_NAMES = {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}


@lru_cache(maxsize=64)
def _kinds(model: ModelConfig) -> frozenset[str]:
    return frozenset(kind for layer in layer_kinds(model) for kind in layer)


def is_mla(model: ModelConfig, release: Release) -> bool:
    """Whether vLLM keeps one latent per token for this model's attention (V1, and V0 from 0.7.1; Kimi-K2 from 0.10.0)."""
    kind = model.text_model_type
    return model.is_mla and kind in _MLA_TYPES and release.since("0.10.0" if kind == "kimi_k2" else "0.7.1")


def has_latents_alone(model: ModelConfig, release: Release) -> bool:
    """Whether the model's class has no other attention for ``VLLM_MLA_DISABLE`` to choose."""
    sparse = model.values.has("index_topk") and release.since("0.29.0")
    return sparse or model.text_model_type == "pangu_ultra_moe"


def is_pooling(model: ModelConfig) -> bool:
    """Whether the architecture is one that vLLM serves without generating."""
    return (model.architecture or "").endswith(_POOLING_ENDINGS) or is_encoder_only(model)


def is_encoder_only(model: ModelConfig) -> bool:
    """Whether the model keeps no KV cache at all."""
    kind = model.text_model_type or model.model_type
    if model.architecture == "Gemma3TextModel" and model.text.get("use_bidirectional_attention") is True:
        return True
    return kind in _ENCODER_TYPES or (kind in _ASKED_FOR_CAUSALITY and model.raw.get("is_causal") is False)


def has_state(model: ModelConfig) -> bool:
    """Whether some layer keeps a state of fixed size per request."""
    return bool(_kinds(model) & STATE_KINDS)


def is_hybrid(model: ModelConfig) -> bool:
    """Whether vLLM runs the model as one with states and attention, even where no layer of it attends."""
    return has_state(model) and model.text_model_type not in {"mamba", "mamba2", "falcon_mamba"}


def has_attention(model: ModelConfig) -> bool:
    """Whether some layer's cache grows with the context."""
    return bool(_kinds(model) & ATTENTION_KINDS)


def has_chunked(model: ModelConfig, release: Release) -> bool:
    """Whether the model states a chunk for local attention (``attention_chunk_size``)."""
    if model.text_model_type.startswith("mimo_v2") and release.since("0.21.0"):
        return False  # it states a chunk and has none
    return release.since("0.10.0") and (model.values.integer("attention_chunk_size") or 0) > 0


def caches_every_state(model: ModelConfig) -> bool:
    """Whether the model class supported keeping every block's state (``supports_mamba_prefix_caching``, to 0.27.1)."""
    return model.text_model_type in {
        "mamba", "mamba2", "falcon_mamba", "jamba", "bamba", "nemotron_h", "granitemoehybrid", "falcon_h1", "zamba2",
    }  # fmt: skip


def checkpoint_cache_dtype(model: ModelConfig, release: Release) -> str | None:
    """Return the KV-cache type a checkpoint asks for in its ``quantization_config``, where ``auto`` follows it.

    ModelOpt checkpoints (``kv_cache_quant_algo``) from 0.14.1, compressed-tensors ones (``kv_cache_scheme``) from
    0.16.0.
    """
    config = model.quantization_config
    if config is None:
        return None
    values = Values(config, "quantization_config")
    method = model.quantization_method or ""
    inner = values.object("quantization") if isinstance(config.get("quantization"), Mapping) else values
    if method.startswith("modelopt") and release.since("0.14.1"):
        found = inner.first("kv_cache_scheme", "kv_cache_quant_algo") or values.first(
            "kv_cache_scheme", "kv_cache_quant_algo"
        )
        if found is None:
            return None
        if isinstance(found[1], Mapping):
            return _scheme(found[1])
        return _FP8_NAMES.get(str(found[1]).lower())
    if (
        method == "compressed-tensors"
        and release.since("0.16.0")
        and isinstance(config.get("kv_cache_scheme"), Mapping)
    ):
        return "fp8"
    return None


def _scheme(scheme: Mapping[str, Any]) -> str | None:
    if scheme.get("num_bits") == 8 and scheme.get("type") == "float" and scheme.get("dynamic") is False:
        return "fp8_e4m3"
    return "nvfp4" if scheme.get("num_bits") == 4 and scheme.get("type") == "float" else None


def uses_v2_runner(model: ModelConfig, options: ServeOptions, release: Release, env: Mapping[str, str]) -> bool:
    """Whether the second model runner drives the model: with pipelines it keeps one more batch in flight."""
    chosen = env.get("VLLM_USE_V2_MODEL_RUNNER")
    if chosen is not None and chosen.strip() in {"0", "1"}:
        return chosen.strip() == "1"
    if release.before("0.31.0"):
        return False
    method = str((options.speculative_config or {}).get("method") or "")
    return method not in {"suffix", "medusa", "mlp_speculator", "custom_class"}


def connector_handles_groups(transfer: Mapping[str, Any], release: Release) -> bool:
    """Whether a ``--kv-transfer-config`` leaves several KV-cache groups possible without being asked."""
    name = str(transfer.get("kv_connector"))
    if name == "MultiConnector" and release.since("0.22.1"):
        extra = transfer.get("kv_connector_extra_config")
        inner = extra.get("connectors") if isinstance(extra, Mapping) else None
        if not isinstance(inner, list):
            return False
        return all(isinstance(part, Mapping) and connector_handles_groups(part, release) for part in inner)
    first = _GROUP_CONNECTORS.get(name)
    return first is not None and release.since(first)
