"""What the checks about weights share: the configuration's estimate, pipeline stages, and mistakes of a hand figure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from vlogcheck.budget.releases import parse_release
from vlogcheck.checks._memory import Worker
from vlogcheck.context import Context, provide
from vlogcheck.registry import Missing
from vlogcheck.startup import Startup
from vlogcheck.units import GIB, MIB, Interval, format_gib

if TYPE_CHECKING:
    from vlogcheck.budget.flags import ServeOptions
    from vlogcheck.budget.model import ModelConfig
    from vlogcheck.budget.weights import WeightEstimate

GB = 10**9


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
    if pp == 1:
        return 0
    rank = worker.rank.rank
    if match := re.search(r"PP(\d+)", rank.process or ""):
        return int(match[1])
    if rank.number is not None and rank.process and not rank.process.startswith("VllmWorkerProcess"):
        return rank.number // tp
    return None


def loosely(stated: Interval) -> Interval:
    """Return the figures a hand-written size may stand for: people cut decimals as often as they round them."""
    if not stated.exact:
        return Interval(stated.lo, stated.hi + (stated.hi - stated.lo) // 2)
    unit = next((unit for unit in (GIB, GB, MIB, 10**6) if stated.lo and stated.lo % unit == 0), 0)
    return Interval(stated.lo - unit // 2, stated.hi + unit) if unit else stated


class Mistake(NamedTuple):
    """One mistake of a hand ledger that makes the stated figure the logged one."""

    key: str
    """Its key in the diagnoses."""
    text: str
    per_rank: Interval
    """What the figure becomes without it."""


def mistakes(stated: Interval, seen: Interval, startup: Startup, expected: ExpectedWeights | None) -> list[Mistake]:
    """Return the single mistakes that explain a stated weight, most likely first."""
    return [m for m in _candidates(loosely(stated), startup, expected, seen) if m.per_rank.overlaps(seen)]


def explanation(found: list[Mistake], stated: Interval, seen: Interval, expected: ExpectedWeights | None) -> str:
    """Return the mistakes in words, as three candidates at most; without any, those that the configuration's weights show."""
    from vlogcheck.diagnose import Diagnosis, Reading, diagnose_weights

    readings = [Reading(mistake.key, mistake.text, mistake.per_rank.lo, mistake.per_rank.hi) for mistake in found]
    if not readings and expected is not None and seen.overlaps(expected.bounds(None)):
        from vlogcheck.expected import Setup

        setup = Setup(expected.model, expected.options, expected.version, None, {}, None, None, True)
        for stage in range(len(expected.stages)):
            readings = readings or list(diagnose_weights(setup, loosely(stated), stage).readings)
    texts = [candidate.text for candidate in Diagnosis(tuple(readings)).candidates]
    if not texts:
        return "unexplained: no single mistake of a hand ledger gives this figure"
    return texts[0] if len(texts) == 1 else "one of: " + "; ".join(texts)


def _candidates(
    stated: Interval, startup: Startup, expected: ExpectedWeights | None, seen: Interval
) -> Iterator[Mistake]:
    tp, pp = parallel_sizes(startup)
    config = startup.config
    said = format_gib(seen.mid)
    if tp > 1:
        yield Mistake(
            "tp_share_taken_twice",
            f"the log's {said} are already per rank: the stated figure was divided by the tensor parallel size {tp}"
            " once more",
            stated.times(tp),
        )
    for name, count in (("tensor parallel size", tp), ("number of ranks", tp * pp)):
        if count > 1 and (name != "number of ranks" or pp > 1):
            text = f"the stated figure is the total of all ranks: {name} {count}"
            yield Mistake("tp_share_not_taken" if count == tp else "whole_model", text, stated.floordiv(count))
            yield Mistake(
                "total_in_other_unit",
                f"the stated figure is the total of all ranks ({name} {count}), in GiB that were called GB",
                _scaled(stated, GIB, GB * count),
            )
    yield Mistake("gb_for_gib", "GB were meant as GiB: the log counts in GiB (2**30 bytes)", _scaled(stated, GIB, GB))
    yield Mistake(
        "gb_for_gib_inverse", "the stated figure is in GB (10**9 bytes), written as GiB", _scaled(stated, GB, GIB)
    )
    dtype = config.dtype if config is not None else None
    method = config.quantization if config is not None else None
    if dtype == "float32" and method is None:
        yield Mistake("bytes_per_element", "the weights are in float32, 4 bytes instead of 2", stated.times(2))
    elif method is None and dtype is not None:
        key = "quantisation_not_applied"
        yield Mistake(key, f"the weights are not quantised: {dtype} takes twice what 8 bits do", stated.times(2))
        yield Mistake(key, f"the weights are not quantised: {dtype} takes four times what 4 bits do", stated.times(4))
    if expected is not None and seen.overlaps(expected.bounds(None)):
        whole = expected.checkpoint()
        share = min((stage.param_bytes for stage in expected.stages), default=0)
        if whole and stated.lo <= whole <= stated.hi and tp * pp > 1:
            yield Mistake(
                "checkpoint_size",
                f"the stated figure is the checkpoint's size on disk ({whole / GB:.1f} GB, all ranks together)",
                seen,
            )
        elif share and stated.lo <= share <= stated.hi:
            yield Mistake(
                "checkpoint_size",
                f"the stated figure is a share of the checkpoint's size ({share / GB:.2f} GB); on the device the"
                " allocator's rounding and buffers come on top",
                seen,
            )


def _scaled(interval: Interval, up: int, down: int) -> Interval:
    return Interval(interval.lo * up // down, -(-interval.hi * up // down))
