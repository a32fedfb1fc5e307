"""What the checks about weights share: the configuration's estimate and the pipeline stage of a rank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlogcheck._tuples import NamedTuple
from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._memory import Worker
from vlogcheck.context import Context, provide
from vlogcheck.registry import Missing
from vlogcheck.startup import Startup
from vlogcheck.units import Interval

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights import WeightEstimate


class ExpectedWeights(NamedTuple):
    """What one rank of each pipeline stage should load, by the model's configuration."""

    stages: list[WeightEstimate]
    model: ModelConfig
    options: ServeOptions
    version: str | None
    stated: bool
    """Whether the user gave the configuration, rather than that it was found at the log's model path."""

    def bounds(self, stage: int | None) -> Interval:
        """Return the bytes a rank of a stage may load; of any stage where it is not known which one it is."""
        chosen = self.stages if stage is None or stage >= len(self.stages) else [self.stages[stage]]
        return Interval(min(s.low_bytes for s in chosen), max(s.high_bytes for s in chosen))

    def checkpoint(self) -> int | None:
        """Return the parameters of the whole model in bytes, or None where they are not modelled."""
        return self._again(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1)

    def otherwise(self, **changed: Any) -> list[WeightEstimate]:
        """Return the estimates with other options; empty where they are not modelled."""
        from dataclasses import replace

        from vlogcheck.budget.model import ModelConfigError
        from vlogcheck.budget.weights import estimate_weights

        try:
            model = self.model
            if changed.pop("unquantised", False):
                model = unquantised(model)
            found = estimate_weights(model, replace(self.options, **changed), parse_release(self.version))
        except (ModelConfigError, ValueError):
            return []
        return [] if any(stage.unknown for stage in found) else found

    def _again(self, **changed: Any) -> int | None:
        found = self.otherwise(**changed)
        return sum(stage.param_bytes for stage in found) or None


def unquantised(model: ModelConfig) -> ModelConfig:
    """Return a model's configuration without its quantisation. Raises `ModelConfigError`."""
    from vlogcheck.budget.model import load_model_config

    def strip(part: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: strip(value) if isinstance(value, Mapping) else value
            for key, value in part.items()
            if key not in ("quantization_config", "compression_config")
        }

    return load_model_config(strip(model.raw))


def _expected(context: Context) -> ExpectedWeights:
    model = context.model
    if model is None:
        raise Missing("no model configuration: give --model-config")
    from vlogcheck._stated_options import environment_from_log, options_from_log
    from vlogcheck.budget.model import ModelConfigError
    from vlogcheck.budget.weights import estimate_weights

    try:
        options = options_from_log(context.startup)
        env = environment_from_log(context.startup)
        stages = estimate_weights(model.config, options, parse_release(context.startup.version), env)
    except (ModelConfigError, ValueError) as error:
        raise Missing(f"the configuration gives no weights: {error}") from error
    unknown = next((stage for stage in stages if stage.unknown), None)
    if unknown is not None:
        raise Missing(f"the weights of this model are not modelled: {unknown.tolerance_reason}")
    return ExpectedWeights(stages, model.config, options, context.startup.version, model.stated)


provide(ExpectedWeights, _expected)


def parallel_sizes(startup: Startup) -> tuple[int, int]:
    """Return tensor and pipeline parallel size, 1 where the log does not state them."""
    config = startup.config

    def size(name: str) -> int:
        value = getattr(config, name) if config is not None else None
        value = value if value is not None else startup.args.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100_000 else 1

    return size("tensor_parallel_size"), size("pipeline_parallel_size")


def stage_of(worker: Worker, startup: Startup) -> int | None:
    """Return the pipeline stage of a rank, None where the log does not say it."""
    tp, pp = parallel_sizes(startup)
    rank = worker.rank.rank
    if match := re.search(r"PP(\d{1,9})(?!\d)", rank.process or ""):
        return int(match[1])  # also where no line states the number of stages
    if pp == 1:
        return 0
    if rank.number is not None and rank.process and not rank.process.startswith("VllmWorkerProcess"):
        return rank.number // tp
    return None
