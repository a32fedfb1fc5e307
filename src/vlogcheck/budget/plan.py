"""The expected KV cache of a deployment: one entry point over model, flags, release and card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from vlogcheck.budget import _settings, _traits
from vlogcheck.budget._admission import check_layers
from vlogcheck.budget._device import parse_device
from vlogcheck.budget._errors import PlanError, not_supported
from vlogcheck.budget._group import CannotGroupError, Group
from vlogcheck.budget._known import is_known_name, unknown_reason
from vlogcheck.budget._layer import SLIDING
from vlogcheck.budget.flags import ServeOptions
from vlogcheck.budget.model import ModelConfig, ModelConfigError, overridden
from vlogcheck.budget.pool import Pool, PoolResult
from vlogcheck.budget.releases import parse_release
from vlogcheck.budget.specs import SpecCount, build_layers
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget._settings import Settings

__all__ = ["KVPlan", "UnknownArchitecture", "plan"]

Available = int | Interval | Sequence[int | Interval] | None


@dataclass(frozen=True)
class UnknownArchitecture:
    """The configuration describes caches that are not modelled here; nothing is guessed.

    Attributes:
        architecture: the name the configuration gives.
        reason: what is not known about it.
        checkable: what can still be checked without knowing the layers.

    """

    architecture: str | None
    reason: str
    checkable: tuple[str, ...] = (
        "the printed token count against blocks and block size",
        "the printed concurrency against the printed tokens and max_model_len, for models with one kind of layer",
        "printed memory terms against each other",
    )


@dataclass(frozen=True)
class KVPlan:
    """The KV cache vLLM makes of a model, its flags and the bytes that are available.

    Where the bytes are an interval (a log prints ``X.XX GiB``), :attr:`blocks`, :attr:`tokens` and
    :attr:`concurrency` are intervals too and
    ``num_blocks`` and the rest are those of the lower end. Without bytes only specs, groups and blocks per request
    are known.

    Attributes:
        num_blocks: blocks each rank uses, ``None`` where unknown or refused.
        kv_cache_tokens: tokens as printed.
        max_concurrency: concurrency as the float vLLM computes.
        max_concurrency_text: the same as printed (``17.82``).
        max_model_len: context length used, in tokens.
        specs: what the layers keep, with how many layers keep it.
        groups: the groups of the first pipeline rank.
        error: vLLM's refusal.
        cpu_blocks: blocks of host memory for swapping (V0 engine only).
        blocks_interval: blocks for the whole interval of available bytes.
        tokens_interval: tokens for it.
        assumptions: everything that was assumed rather than given.
        unknown: set where the architecture is not modelled; then everything else is empty.

    """

    num_blocks: int | None = None
    kv_cache_tokens: int | None = None
    max_concurrency: float | None = None
    max_model_len: int | None = None
    specs: tuple[SpecCount, ...] = ()
    groups: tuple[Group, ...] = ()
    error: PlanError | None = None
    cpu_blocks: int | None = None
    blocks_interval: Interval | None = None
    tokens_interval: Interval | None = None
    assumptions: tuple[str, ...] = ()
    unknown: UnknownArchitecture | None = None
    settings: Settings | None = field(default=None, repr=False)
    pool: Pool | None = field(default=None, repr=False)

    @property
    def max_concurrency_text(self) -> str | None:
        """The concurrency as vLLM prints it, without the ``x``."""
        return None if self.max_concurrency is None else f"{self.max_concurrency:.2f}"

    def blocks_per_request(self, length: int | None = None) -> int | None:
        """Blocks one request of ``length`` tokens (default: the whole context) takes at most."""
        if self.pool is None or self.max_model_len is None:
            return None
        return self.pool.blocks_per_request(self.max_model_len if length is None else length) or None

    def concurrency_at(self, length: int, blocks: int | None = None) -> float | None:
        """How many requests of ``length`` tokens the pool holds at once; ``blocks`` overrides the planned number.

        One block is the pool's null block and never holds tokens.
        """
        count = self.num_blocks if blocks is None else blocks
        per_request = self.blocks_per_request(length)
        if count is None or not per_request:
            return None
        return max(0, count - 1) / per_request

    def bytes_per_block(self, rank: int = 0) -> int | None:
        """Bytes one block takes on a pipeline rank."""
        return None if self.pool is None else self.pool.bytes_per_block(rank)


def plan(
    model: ModelConfig,
    options: ServeOptions | None = None,
    *,
    release: str | None = None,
    available: Available = None,
    env: Mapping[str, str] | None = None,
    device: str | None = None,
    total_memory: int | None = None,
) -> KVPlan:
    """Compute the KV cache vLLM would make.

    Args:
        model: the model's configuration.
        options: the flags, defaults where omitted.
        release: vLLM's version as a log prints it; ``None`` follows the newest rules, and says so.
        available: bytes for the KV cache per rank: one number or interval for all, or one per pipeline rank.
        env: vLLM's environment variables that matter (``VLLM_MLA_DISABLE``, ``VLLM_PP_LAYER_PARTITION`` …).
        device: the card's name; an H100-class card is assumed without one.
        total_memory: bytes the card reports, used where its name is not known.

    Raises:
        ModelConfigError: the configuration or an option has a value that cannot be followed.

    """
    options = options or ServeOptions()
    env = MappingProxyType(dict(env or {}))
    found = parse_release(release)
    if options.hf_overrides:
        model = overridden(model, options.hf_overrides)
    reason = unknown_reason(model, options, found)
    if reason is not None:
        return KVPlan(unknown=UnknownArchitecture(model.architecture, reason))
    settings = _settings.resolve(model, options, found, env, parse_device(device, total_memory))
    notes = list(settings.assumptions)
    if _traits.is_encoder_only(model):
        return KVPlan(1, max_model_len=settings.max_model_len, assumptions=tuple(notes), settings=settings)
    refusal = _split_refusal(model, settings) or _context_refusal(model, settings) or _cache_refusal(model, settings)
    if refusal is not None:
        return KVPlan(max_model_len=settings.max_model_len, error=refusal, assumptions=tuple(notes), settings=settings)
    if settings.max_model_len > model.default_max_model_len(found):
        notes.append("--max-model-len exceeds the model's own: vLLM refuses unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")
    layers = build_layers(model, settings)
    notes.extend(layers.assumptions)
    notes.extend(_notes(model))
    specs = tuple(layers.counted())
    try:
        pool = Pool(layers, settings)
    except CannotGroupError as error:
        refused = not_supported(str(error))
        if available is not None and settings.release.before("0.14.1"):
            ranks = [layers.on_stage(stage) for stage in range(layers.stages)]
            refused = check_layers(ranks, settings, _ends(available, settings.pp)[1]) or refused
        return KVPlan(
            specs=specs, max_model_len=settings.max_model_len, error=refused, assumptions=tuple(notes),
            settings=settings,
        )  # fmt: skip
    if (refusal := _window_refusal(pool, settings)) is not None:
        return KVPlan(
            specs=specs, max_model_len=settings.max_model_len, error=refusal, assumptions=tuple(notes),
            settings=settings,
        )  # fmt: skip
    base = KVPlan(
        max_model_len=settings.max_model_len, specs=specs, groups=tuple(pool.groups and pool.per_rank[0]),
        cpu_blocks=pool.cpu_blocks(), assumptions=tuple(notes), settings=settings, pool=pool,
    )  # fmt: skip
    if available is None:
        available = options.kv_cache_memory_bytes
    if available is None and settings.device.is_cpu:
        available = _cpu_space(env)
    override = options.num_gpu_blocks_override
    if available is None and override is not None:
        available = [override * pool.bytes_per_block(rank) for rank in range(settings.pp)]
    if available is None:
        return base
    low, high = _ends(available, settings.pp)
    least, most = pool.size(low), pool.size(high)
    if least.error is not None and most.error is None:
        least = pool.size(low, check=False)
        base = replace(
            base, assumptions=(*notes, "the least of the available bytes would be refused, the most would not")
        )
    return _filled(base, least, most)


def _split_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a tensor-parallel size the attention heads cannot be split over."""
    heads, ranks = model.num_attention_heads, settings.tp
    if ranks == 1 or not heads or not _traits.has_attention(model):
        return None
    if heads % ranks:
        return not_supported(
            f"Total number of attention heads ({heads}) must be divisible by tensor parallel size ({ranks})."
        )
    total = 1 if settings.use_mla else model.num_kv_heads
    if max(total, ranks) % min(total, ranks):
        return not_supported(f"{total} KV heads can neither be split nor replicated over {ranks} ranks.")
    return None


def _cache_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a block size no CUDA backend takes, or of a cache type an fp8 checkpoint excludes."""
    size, release = settings.options.block_size, settings.release
    if size is not None and size % 16 and release.since("0.18.1") and not settings.device.is_cpu:
        return not_supported(f"No attention backend takes blocks of {size} tokens: a multiple of 16 is needed.")
    if settings.options.kv_cache_dtype == "fp8_e5m2" and model.quantization_method == "fp8":
        return not_supported("fp8_e5m2 kv-cache is not supported with fp8 checkpoints.")
    return None


def _context_refusal(model: ModelConfig, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of a decode-context-parallel size.

    The size divides the tensor-parallel one; from 0.11.0 on attention with KV heads also needs that many copies of each
    head, and query heads per KV head to divide (``verify_with_parallel_config``, vllm/config/model.py).
    """
    shards, ranks = settings.options.decode_context_parallel_size, settings.tp
    if shards <= 1 or settings.release.before("0.10.2"):
        return None
    if ranks % shards:
        return not_supported(
            f"Tensor parallel size {ranks} must be divisible by decode context parallel size {shards}."
        )
    heads, total = model.num_attention_heads, model.num_kv_heads
    if settings.use_mla or settings.release.before("0.11.0") or not heads or not total:
        return None
    if ranks <= total:
        return not_supported(
            f"Decode context parallelism needs a tensor parallel size ({ranks}) above the number of KV heads ({total})."
        )
    if shards > ranks // total:
        return not_supported(
            f"Decode context parallel size {shards} exceeds {ranks // total}, the copies of each of the {total} KV heads."
        )
    if heads // total % shards:
        return not_supported(
            f"{heads // total} query heads per KV head must be divisible by decode context parallel size {shards}."
        )
    return None


def _window_refusal(pool: Pool, settings: Settings) -> PlanError | None:
    """Return vLLM's refusal of decode context parallelism for layers with a sliding window."""
    if settings.options.decode_context_parallel_size <= 1 or settings.release.before("0.10.2"):
        return None
    if any(spec.kind == SLIDING for groups in pool.per_rank for group in groups for spec in group.specs):
        return not_supported("DCP not support sliding window.")
    return None


def _cpu_space(env: Mapping[str, str]) -> int | None:
    """Bytes of ``VLLM_CPU_KVCACHE_SPACE`` (GiB), where the variable holds a whole number."""
    stated = env.get("VLLM_CPU_KVCACHE_SPACE", "").strip()
    return int(stated) << 30 if stated.isdecimal() and len(stated) < 6 and int(stated) else None


def _filled(base: KVPlan, low: PoolResult, high: PoolResult) -> KVPlan:
    blocks = tokens = None
    if low.num_blocks is not None and high.num_blocks is not None:
        blocks = Interval(low.num_blocks, high.num_blocks)
    if low.tokens is not None and high.tokens is not None:
        tokens = Interval(low.tokens, high.tokens)
    return replace(
        base,
        num_blocks=low.num_blocks,
        kv_cache_tokens=low.tokens,
        max_concurrency=low.concurrency,
        max_model_len=low.length or base.max_model_len,
        error=low.error,
        blocks_interval=blocks,
        tokens_interval=tokens,
    )


def _ends(available: Available, ranks: int) -> tuple[list[int], list[int]]:
    """Lower and upper bytes per pipeline rank."""
    given: list[int | Interval]
    if isinstance(available, (int, Interval)):
        given = [available] * ranks
    else:
        given = [*(available or ())]
        if len(given) != ranks:
            if not given or len(given) % ranks:
                raise ModelConfigError(f"{len(given)} numbers of available bytes for {ranks} pipeline ranks")
            each = len(given) // ranks
            given = [_least(given[rank * each : (rank + 1) * each]) for rank in range(ranks)]
    lows = [value.lo if isinstance(value, Interval) else value for value in given]
    highs = [value.hi if isinstance(value, Interval) else value for value in given]
    return lows, highs


def _least(values: Sequence[int | Interval]) -> Interval:
    """Return the tightest of a stage's tensor-parallel ranks."""
    lows = [v.lo if isinstance(v, Interval) else v for v in values]
    highs = [v.hi if isinstance(v, Interval) else v for v in values]
    return Interval(min(lows), min(highs))


def _notes(model: ModelConfig) -> list[str]:
    filled = [f"config leaves out {', '.join(model.filled)}: its class's defaults assumed"] if model.filled else []
    if is_known_name(model):
        return filled
    return [
        *filled,
        f"architecture {model.architecture or 'not named'} is not known by name: plain attention assumed",
    ]
