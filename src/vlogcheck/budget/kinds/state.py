"""Layers that keep a state of fixed size: Mamba, gated delta nets, linear attention and short convolutions.

Shapes are per tensor-parallel rank (``MambaStateShapeCalculator``, vllm/model_executor/layers/mamba/mamba_utils.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlogcheck.budget._layer import MAMBA, LayerSpec
from vlogcheck.budget._settings import ELEMENT_BYTES, Settings
from vlogcheck.budget._values import ModelConfigError
from vlogcheck.budget.kinds._base import Context, builds

if TYPE_CHECKING:
    from vlogcheck.budget.model import ModelConfig


@dataclass(frozen=True)
class State:
    """The tensors of one state: element counts and types."""

    elements: tuple[int, ...]
    dtypes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of one state."""
        return sum(count * ELEMENT_BYTES[kind] for count, kind in zip(self.elements, self.dtypes, strict=True))


def state_of(kind: str, model: ModelConfig, settings: Settings) -> State:
    """Return the state a layer of ``kind`` keeps.

    Raises:
        ModelConfigError: the config lacks a size, or the tensor-parallel size does not divide one.

    """
    return _STATES[kind](model, settings)


def keeps_checkpoints(kind: str, model: ModelConfig, settings: Settings) -> bool:
    """Whether a prefill writes states out on its way, for which one more is kept (``get_prefill_checkpoint_alignment``).

    Mamba-2 from 0.32.0 on; Qwen's gated delta nets from 0.33.0 on where FlashInfer runs their prefill: on Hopper, and on
    Blackwell with keys of 128 elements and CUDA 13.
    """
    release = settings.release
    if settings.mamba_mode != "align":
        return False
    if kind == "mamba2":
        return release.since("0.32.0")
    if kind != "gdn" or release.before("0.33.0") or model.text_model_type == "olmo_hybrid":
        return False
    if str(settings.options.unused.get("gdn_prefill_backend") or "auto").lower() not in {"auto", "flashinfer"}:
        return False
    capability = settings.device.capability
    return capability == 90 or (capability // 10 in {10, 12} and model.values.integer("linear_key_head_dim") == 128)


def _builder(kind: str) -> None:
    @builds(kind)
    def build(context: Context, index: int) -> LayerSpec:
        settings = context.settings
        state = state_of(kind, context.model, settings)
        checkpoints = int(keeps_checkpoints(kind, context.model, settings))
        speculative = settings.num_speculative_tokens if settings.release.since("0.10.2") else 0
        return LayerSpec(
            kind=MAMBA,
            block_size=context.state_block_size,
            content_bytes=state.size,
            dtype=state.dtypes[-1],
            page_padded=context.state_page,
            speculative_blocks=speculative,
            checkpoint_blocks=checkpoints,
            mode=settings.mamba_mode,
            variant=kind,
        )


def _divide(value: int, ranks: int, what: str) -> int:
    if value % ranks:
        raise ModelConfigError(f"{what} ({value}) cannot be divided over {ranks} tensor-parallel ranks")
    return value // ranks


def _conv_type(settings: Settings) -> str:
    chosen = settings.options.mamba_cache_dtype
    return settings.dtype if chosen == "auto" else _element(chosen)


def _state_type(model: ModelConfig, settings: Settings) -> str:
    chosen = settings.options.mamba_ssm_cache_dtype
    kind = model.text_model_type
    if chosen == "auto" and kind == "nemotron_h" and settings.release.since("0.13.0"):
        chosen = model.values.text("mamba_ssm_cache_dtype") or _nemotron_state(settings)
    elif chosen == "auto" and kind.startswith("qwen3_5"):
        chosen = model.values.text("mamba_ssm_dtype") or "auto"
    return _conv_type(settings) if chosen == "auto" else _element(chosen)


def _nemotron_state(settings: Settings) -> str:
    """Return the state type of Nemotron-H checkpoints that name none."""
    return "float32" if settings.release.since("0.20.0") else "float16"


def _element(name: str) -> str:
    if name not in ELEMENT_BYTES:
        raise ModelConfigError(f"state element type {name[:40]!r} is not known")
    return name


def _speculated(settings: Settings, since: str) -> int:
    return settings.num_speculative_tokens if settings.release.since(since) else 0


def _mamba1(model: ModelConfig, settings: Settings) -> State:
    values = model.values
    inner = values.integer("intermediate_size") if model.text_model_type in {"mamba", "falcon_mamba"} else None
    if inner is None:
        inner = (values.integer("mamba_expand", "expand") or 2) * model.hidden_size
    inner = _divide(inner, settings.tp, "the state's width")
    kernel = values.integer("mamba_d_conv", "conv_kernel", minimum=1) or 4
    width = values.integer("mamba_d_state", "state_size", minimum=1) or 16
    conv = _conv_type(settings)
    return State(((kernel - 1) * inner, inner * width), (conv, _state_type(model, settings)))


def _mamba2(model: ModelConfig, settings: Settings) -> State:
    values = model.values
    heads = values.need("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads", minimum=1)
    stated = values.integer("mamba_d_head", "mamba_head_dim", "mamba_headdim", minimum=1)
    if stated is None:
        stated = values.need("head_dim", minimum=1)
    expand = values.number("mamba_expand", "expand")
    if model.text_model_type == "nemotron_h":
        inner = heads * stated
    elif values.has("mamba_d_ssm"):
        inner = values.need("mamba_d_ssm", minimum=1)
    elif expand is not None:
        inner = int(expand * model.hidden_size)
    else:
        inner = heads * stated
    groups = values.integer("mamba_n_groups", "mamba_ngroups", "n_groups")
    groups = 1 if groups is None else groups
    width = values.need("mamba_d_state", "ssm_state_size", "state_size", minimum=1)
    kernel = values.integer("mamba_d_conv", "conv_kernel", minimum=1) or 4
    if groups % settings.tp:
        groups = settings.tp  # groups are replicated so that every head has one
    conv = _divide(inner + 2 * groups * width, settings.tp, "the convolution's width")
    rows = kernel - 1 + _speculated(settings, "0.17.1")
    heads = _divide(heads, settings.tp, "the number of state heads")
    return State((rows * conv, heads * stated * width), (_conv_type(settings), _state_type(model, settings)))


def _gdn(model: ModelConfig, settings: Settings) -> State:
    values = model.values
    key_heads = values.need("linear_num_key_heads", minimum=1)
    value_heads = values.need("linear_num_value_heads", minimum=1)
    key, value = values.need("linear_key_head_dim", minimum=1), values.need("linear_value_head_dim", minimum=1)
    kernel = values.integer("linear_conv_kernel_dim", minimum=1) or 4
    conv = _divide(2 * key * key_heads + value * value_heads, settings.tp, "the convolution's width")
    rows = kernel - 1 + settings.num_speculative_tokens
    heads = _divide(value_heads, settings.tp, "the number of state heads")
    # the state took the convolution's type until 0.17.0, whatever --mamba-ssm-cache-dtype said
    state = _state_type(model, settings) if settings.release.since("0.17.0") else _conv_type(settings)
    return State((rows * conv, heads * value * key), (_conv_type(settings), state))


def _kda(model: ModelConfig, settings: Settings) -> State:
    linear = model.values.object("linear_attn_config")
    heads, size = linear.need("num_heads", minimum=1), linear.need("head_dim", minimum=1)
    kernel = linear.integer("short_conv_kernel_size", minimum=1) or 4
    conv = _divide(3 * heads * size, settings.tp, "the convolution's width")
    rows = kernel - 1 + _speculated(settings, "0.11.1")
    heads = _divide(heads, settings.tp, "the number of state heads")
    chosen = settings.options.mamba_ssm_cache_dtype if settings.release.since("0.30.0") else "auto"
    return State(
        (rows * conv, heads * size * size), (_conv_type(settings), "float32" if chosen == "auto" else _element(chosen))
    )


def _conv(model: ModelConfig, settings: Settings) -> State:
    values = model.values
    width = values.integer("conv_dim", minimum=1) or model.hidden_size
    kernel = values.integer("conv_L_cache", minimum=1) or 3
    return State(((kernel - 1) * _divide(width, settings.tp, "the convolution's width"),), (_conv_type(settings),))


def _linear(model: ModelConfig, settings: Settings) -> State:
    heads = model.num_attention_heads // settings.tp
    size = model.head_dim
    return State((heads * size * size,), (_conv_type(settings),))


_STATES = {"mamba1": _mamba1, "mamba2": _mamba2, "gdn": _gdn, "kda": _kda, "conv": _conv, "linear": _linear}

for _kind in _STATES:
    _builder(_kind)
