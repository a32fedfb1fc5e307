"""The expected ledger: what the model's configuration and the flags say, by the rules of the release in the log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vlogcheck._pool_blocks import add_block_terms, observed_blocks
from vlogcheck._tuples import NamedTuple
from vlogcheck.deployment import not_modelled, platform_of
from vlogcheck.ledger import Ledger
from vlogcheck.records import BlocksOverride
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.plan import KVPlan
    from vlogcheck.context import Context
    from vlogcheck.observed import EngineLedger
    from vlogcheck.startup import Startup

__all__ = ["ExpectedEngine", "Model", "Setup"]


class ExpectedEngine(NamedTuple):
    """What one engine's KV cache should be, by configuration, flags, release and the memory the log says is available."""

    engine: EngineLedger
    plan: KVPlan
    ledger: Ledger
    available: Interval | None
    """KV cache memory of the tightest rank in bytes, None where the log does not print it."""
    setup: Setup
    """What the plan was made from, to make it again with one thing changed."""


class Setup(NamedTuple):
    """The arguments of `plan` that a log and a configuration give."""

    config: ModelConfig
    options: ServeOptions
    release: str | None
    available: Interval | list[Interval] | None
    env: Mapping[str, str]
    device: str | None
    total_memory: int | None
    complete: bool
    """Whether every rank's available memory was printed; else one that printed none may have had less."""

    def plan(self, **changed: Any) -> KVPlan:
        """Plan, with options (by name) or arguments of `plan` changed. Raises `ModelConfigError`."""
        from dataclasses import replace

        from vlogcheck.budget.plan import plan

        own = {name: changed.pop(name) for name in tuple(changed) if name in Setup._fields}
        setup = self._replace(**own)
        options = replace(setup.options, **changed) if changed else setup.options
        return plan(
            setup.config, options, release=setup.release, available=setup.available, env=setup.env,
            device=setup.device, total_memory=setup.total_memory,
        )  # fmt: skip


class Model:
    """A model's configuration, to be planned with the flags and the release of a log."""

    def __init__(self, config: ModelConfig, origin: str, *, stated: bool = True) -> None:
        self.config = config
        self.origin = origin
        """Where the configuration came from."""
        self.stated = stated
        """Whether the user named it (else it was found in the log's model path)."""
        self._expected: dict[tuple[int, int], tuple[Startup, ExpectedEngine | Exception]] = {}

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
        if not os.path.isfile(os.path.join(path, "config.json")):  # no pipe, no device
            return None
        from vlogcheck.budget.model import ModelConfigError, load_model_config

        try:
            return cls(load_model_config(path), f"found in {path}", stated=False)
        except ModelConfigError:
            return None

    def expected(self, context: Context, engine: EngineLedger) -> ExpectedEngine:
        """Return what the engine's KV cache should be. Raises `Missing` where that cannot be computed, with the reason."""
        from vlogcheck.registry import Missing

        key = (context.number, engine.engine.index)
        kept = self._expected.get(key)
        if kept is not None and kept[0] is context.startup:
            found = kept[1]
        else:
            try:
                found = self._expect(context.startup, engine)
            except Missing as missing:
                found = missing
            self._expected[key] = (context.startup, found)
        if isinstance(found, Exception):
            raise found
        return found

    def _expect(self, startup: Startup, engine: EngineLedger) -> ExpectedEngine:
        from vlogcheck.budget.model import ModelConfigError
        from vlogcheck.registry import Missing

        if (why := not_modelled(startup)) is not None:
            raise Missing(f"not checked: {why}")
        try:
            setup = self.setup(startup, engine)
            plan = setup.plan()
        except (ModelConfigError, ValueError, OSError) as error:
            raise Missing(f"the expected ledger cannot be computed: {error}") from None
        if plan.unknown is not None:
            raise Missing(f"the architecture is not modelled: {plan.unknown.reason}")
        available = engine.available
        return ExpectedEngine(
            engine, plan, _ledger(plan, engine), available.tightest if available is not None else None, setup
        )

    def setup(self, startup: Startup, engine: EngineLedger) -> Setup:
        """Return what the plan is made from. Raises `ValueError` for an option that cannot be meant."""
        from vlogcheck._stated_options import environment_from_log, options_from_log

        options = options_from_log(startup, engine)
        available = engine.available
        stages = available.stages if available is not None else []
        complete = available.complete if available is not None else True
        memory: Interval | list[Interval] | None = None
        if len(stages) == options.pipeline_parallel_size:
            memory = list(stages)
        elif stages:
            memory, complete = min(stages, key=lambda i: i.hi), complete and len(stages) == 1 and _fixed(engine)
        overrides = [r for r in startup.all(BlocksOverride) if r.profiled_blocks > 0]
        if overrides and options.num_gpu_blocks_override is None:
            from dataclasses import replace

            options = replace(options, num_gpu_blocks_override=overrides[-1].blocks)
        total = next((t.hi for rank in engine.ranks if (t := rank.ledger["total"].interval)), None)
        device = "cpu" if platform_of(startup) == "cpu" else None
        return Setup(
            self.config, options, startup.version, memory, environment_from_log(startup), device, total, complete
        )

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


def _fixed(engine: EngineLedger) -> bool:
    return engine.available is not None and engine.available.tightest.exact


def _ledger(plan: KVPlan, engine: EngineLedger) -> Ledger:
    ledger = Ledger(f"{engine.ledger.name}, expected")
    ledger.assumptions += list(plan.assumptions)
    if plan.blocks_interval is not None:
        ledger.between("blocks", "KV cache blocks", "blocks", plan.blocks_interval, "derived")
    if plan.tokens_interval is not None:
        ledger.between("tokens", "KV cache size", "tokens", plan.tokens_interval, "derived")
    add_block_terms(ledger, plan)
    return ledger
