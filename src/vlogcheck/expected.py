"""The expected ledger: what the model's configuration and the flags say, by the rules of the release in the log."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlogcheck.ledger import Ledger
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.plan import KVPlan
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger
    from vlogcheck.startup import Startup

__all__ = ["ExpectedEngine", "Model", "options_from_log"]


class ExpectedEngine(NamedTuple):
    """What one engine's KV cache should be, by configuration, flags, release and the memory the log says is available."""

    engine: EngineLedger
    plan: KVPlan
    ledger: Ledger
    available: Interval | None
    """KV cache memory of the tightest rank in bytes, None where the log does not print it."""


class Model:
    """A model's configuration, to be planned with the flags and the release of a log."""

    def __init__(self, config: ModelConfig, origin: str) -> None:
        self.config = config
        self.origin = origin
        """Where the configuration came from."""
        self._plans: dict[Any, KVPlan] = {}

    @classmethod
    def load(cls, source: Any) -> Model:
        """Read a configuration (path, directory, mapping or `ModelConfig`). Raises `ModelConfigError`."""
        from vlogcheck.budget.model import ModelConfig, load_model_config

        if isinstance(source, Model):
            return source
        if isinstance(source, ModelConfig):
            return cls(source, "given")
        return cls(load_model_config(source), "given" if isinstance(source, Mapping) else str(source))

    @classmethod
    def find(cls, path: str) -> Model | None:
        """Read the configuration in the log's own model path, or None where there is none that can be read."""
        directory = Path(path).expanduser()
        try:
            if not (directory / "config.json").is_file():
                return None
        except (OSError, ValueError):
            return None
        from vlogcheck.budget.model import ModelConfigError, load_model_config

        try:
            return cls(load_model_config(directory), f"found in {path}")
        except ModelConfigError:
            return None

    def expected(self, context: Context, engine: EngineLedger) -> ExpectedEngine:
        """Return what the engine's KV cache should be. Raises `Missing` where the architecture or an option is unknown."""
        from vlogcheck.budget.model import ModelConfigError
        from vlogcheck.budget.plan import plan
        from vlogcheck.registry import Missing

        startup = context.startup
        per_stage = _available(engine)
        tightest = min(per_stage, key=lambda interval: interval.hi) if per_stage else None
        key = (context.number, engine.engine.index)
        found = self._plans.get(key)
        if found is None:
            total = next((t.hi for rank in engine.ranks if (t := rank.ledger["total"].interval)), None)
            try:
                found = plan(
                    self.config, options_from_log(startup, engine), release=startup.version,
                    available=per_stage if len(per_stage) > 1 else tightest, device=None, total_memory=total,
                )  # fmt: skip
            except (ModelConfigError, ValueError) as error:
                raise Missing(f"the expected ledger cannot be computed: {error}") from None
            self._plans[key] = found
        if found.unknown is not None:
            raise Missing(f"the architecture is not modelled: {found.unknown.reason}")
        return ExpectedEngine(engine, found, _ledger(found, engine), tightest)

    def concurrency(self, context: Context, engine: EngineLedger, length: int) -> tuple[Fraction, Fraction] | None:
        """Return the bounds of the requests of `length` tokens that the engine's pool holds, or None if unknown.

        The pool's blocks follow from the printed concurrency and the blocks a request of the printed length needs.
        """
        from vlogcheck.registry import Missing

        try:
            expected = self.expected(context, engine)
        except Missing:
            return None
        blocks = observed_blocks(expected)
        needed = expected.plan.blocks_per_request(length)
        if blocks is None or not needed:
            return None
        return Fraction(blocks.lo, needed), Fraction(blocks.hi, needed)


def observed_blocks(expected: ExpectedEngine) -> Interval | None:
    """Return the blocks the log's own figures mean under the expected layout of groups and pages."""
    ledger = expected.engine.ledger
    printed = ledger["blocks"].interval
    if printed is not None:
        return printed
    concurrency = ledger["concurrency"]
    length = ledger["max_model_len"].interval
    if concurrency.lo is None or concurrency.hi is None or length is None:
        return None
    needed = expected.plan.blocks_per_request(length.lo)
    if not needed:
        return None
    low, high = -((-concurrency.lo * needed) // 1), (concurrency.hi * needed) // 1
    bounds = Interval(int(low), int(high))
    if bounds.lo > bounds.hi:
        return None
    tokens = ledger["tokens"].interval
    size = ledger["block_size"].interval
    if tokens is not None and size is not None and len(expected.plan.groups) <= 1 and tokens.lo % size.lo == 0:
        whole = tokens.lo // size.lo
        if whole in bounds:
            return Interval.exactly(whole)
    return bounds


def _available(engine: EngineLedger) -> list[Interval]:
    """Return the KV cache memory per pipeline stage, the tightest rank of each."""
    stages: dict[int, Interval] = {}
    for rank in engine.ranks:
        pool = rank.ledger["kv_cache"].interval
        if pool is None:
            continue
        stage = rank.rank.stage
        known = stages.get(stage)
        stages[stage] = pool if known is None or pool.hi < known.hi else known
    return [stages[stage] for stage in sorted(stages)]


def _ledger(plan: KVPlan, engine: EngineLedger) -> Ledger:
    ledger = Ledger(f"{engine.ledger.name}, expected")
    ledger.assumptions += list(plan.assumptions)
    if plan.blocks_interval is not None:
        ledger.between("blocks", "KV cache blocks", "blocks", plan.blocks_interval, "derived")
    if plan.tokens_interval is not None:
        ledger.between("tokens", "KV cache size", "tokens", plan.tokens_interval, "derived")
    per_block = plan.bytes_per_block()
    if per_block:
        ledger.exact("bytes_per_block", "bytes per block", "bytes per block", per_block, "derived")
        if len(plan.specs) == 1:
            size = plan.specs[0].spec.block_size
            ledger.exact("block_size", "block size", "tokens per block", size, "derived")
            ledger.exact(
                "kv_bytes_per_token", "KV bytes per token and rank", "bytes per token", Fraction(per_block, size),
                "derived", formula="layers × page bytes ÷ block size",
            )  # fmt: skip
    return ledger


def options_from_log(startup: Startup, engine: EngineLedger | None = None) -> ServeOptions:
    """Return the options a log states: its arguments, with what vLLM made of them in the engine's banner.

    Raises `ValueError` (a `FlagError`) for an argument with a value that cannot be meant.
    """
    from vlogcheck.budget.flags import options_from_mapping

    given = {name: value for name, value in startup.args.items() if value is not None}
    config = (engine.engine.config if engine is not None else None) or startup.config
    if config is not None:
        resolved = {
            "dtype": config.dtype,
            "kv_cache_dtype": config.kv_cache_dtype,
            "max_model_len": config.max_model_len,
            "tensor_parallel_size": config.tensor_parallel_size,
            "pipeline_parallel_size": config.pipeline_parallel_size,
            "data_parallel_size": config.data_parallel_size,
            "quantization": config.quantization,
            "enforce_eager": config.enforce_eager,
            "enable_prefix_caching": config.enable_prefix_caching,
        }
        given |= {name: value for name, value in resolved.items() if value is not None}
    if engine is not None:
        for name, term in (("block_size", "block_size"), ("max_model_len", "max_model_len")):
            interval = engine.ledger[term].interval
            if interval is not None and engine.ledger[term].status == "printed":
                given[name] = interval.lo
    for name in ("speculative_config", "compilation_config", "kv_transfer_config", "hf_overrides"):
        if name in given and not isinstance(given[name], Mapping):
            del given[name]  # a class's repr: not the flag's JSON
    return options_from_mapping(given)
