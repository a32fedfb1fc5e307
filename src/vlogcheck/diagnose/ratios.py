"""Diagnoses without a model's configuration, and of weights: the changed term is a factor of the whole figure."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vlogcheck._tuples import NamedTuple
from vlogcheck.diagnose._result import Diagnosis, Reading, of, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vlogcheck.diagnose._case import Bounds
    from vlogcheck.expected import Setup
    from vlogcheck.units import Interval

__all__ = ["Parallel", "diagnose_ratio", "diagnose_weights"]

GB_PER_GIB = Fraction(1 << 30, 10**9)


class Parallel(NamedTuple):
    """How one engine is split."""

    tp: int = 1
    pp: int = 1
    dp: int = 1


_SINGLE = Parallel()

_MOST_HEADS = 16
"""Attention heads that share one KV head, at most, in the models people serve."""


def _factors(parallel: Parallel, unit: Fraction) -> Iterator[tuple[str, str, Fraction]]:
    """Yield key, words and factor: what a hand figure is multiplied by through the mistake."""
    tp, pp, dp = parallel
    if tp > 1:
        yield (
            "tp_share_not_taken",
            f"it is the figure of all {tp} tensor-parallel ranks, the log's is one rank's",
            Fraction(tp),
        )
    if pp > 1:
        yield "all_pipeline_stages", f"it is the figure of all {pp} pipeline stages", Fraction(pp)
    if tp > 1 and pp > 1:
        yield "whole_model", f"it is the whole model's figure ({tp * pp} ranks)", Fraction(tp * pp)
    if tp > 1:
        text = f"the TP share was taken twice (TP={tp}): one rank's figure was taken for the total"
        yield "tp_share_taken_twice", text, Fraction(1, tp)
    if pp > 1:
        text = f"the PP share was taken twice (PP={pp}): one stage's figure was divided again"
        yield "pp_share_taken_twice", text, Fraction(1, pp)
    yield "bytes_per_element", "elements of twice as many bytes (K and V counted twice would do the same)", Fraction(2)
    yield "kv_counted_once", "K or V counted once, or elements of half as many bytes", Fraction(1, 2)
    yield "bytes_per_element_4", "elements of four times as many bytes", Fraction(4)
    yield "bytes_per_element_quarter", "elements of a quarter of the bytes", Fraction(1, 4)
    yield "gb_for_gib", "a binary unit was written where the decimal one was meant", unit
    yield "gb_for_gib_inverse", "a decimal unit was written where the binary one was meant", 1 / unit
    if dp > 1:
        yield "all_engines", f"it is the figure of all {dp} data-parallel engines", Fraction(dp)


def diagnose_ratio(
    stated: Bounds, seen: Bounds, parallel: Parallel = _SINGLE, *, unit: Fraction = Fraction(1024, 1000)
) -> Diagnosis:
    """Return the mistakes that make the `seen` figure of a log the `stated` one, both as bounds, without a configuration.

    `unit` is the binary over the decimal unit the figure is written in.
    """
    found = [
        reading(key, text, (seen[0] * factor, seen[1] * factor), stated)
        for key, text, factor in _factors(parallel, unit)
    ]
    for ratio in range(2, _MOST_HEADS + 1):
        text = f"attention heads counted instead of KV heads, if the model has {ratio} of them for each KV head"
        found.append(reading("attention_heads", text, (seen[0] * ratio, seen[1] * ratio), stated))
    return of(found)


def diagnose_weights(setup: Setup, seen: Interval, stage: int = 0) -> Diagnosis:
    """Return the mistakes with which the configuration's weights of one rank are the `seen` bytes (bounds).

    The estimate is computed again with the changed term; an estimate that is not modelled explains nothing.
    """
    from vlogcheck.budget._device import parse_device
    from vlogcheck.budget.model import ModelConfigError, load_model_config
    from vlogcheck.budget.weights import estimate_weights

    tp, pp = setup.options.tensor_parallel_size, setup.options.pipeline_parallel_size
    device = parse_device(setup.device, setup.total_memory)

    def bytes_of(setup: Setup, *, every_stage: bool = False) -> Bounds | None:
        try:
            stages = estimate_weights(setup.config, setup.options, setup.release, setup.env, device)
        except ModelConfigError:
            return None
        if any(found.unknown for found in stages):
            return None
        if every_stage:
            return sum(found.low_bytes for found in stages), sum(found.high_bytes for found in stages)
        chosen = stages[min(stage, len(stages) - 1)]
        return chosen.low_bytes, chosen.high_bytes

    def changed(**options: object) -> Setup:
        from dataclasses import replace

        return setup._replace(options=replace(setup.options, **options))  # type: ignore[arg-type]

    def unquantised() -> Setup:
        keys = ("quantization_config", "compression_config")
        raw = {key: value for key, value in setup.config.raw.items() if key not in keys}
        return changed(quantization=None)._replace(config=load_model_config(raw))

    def scaled(bounds: Bounds | None, factor: Fraction) -> Bounds | None:
        return None if bounds is None else (bounds[0] * factor, bounds[1] * factor)

    def variants() -> Iterator[tuple[str, str, Bounds | None]]:
        if tp > 1:
            text = f"the TP share is not taken (TP={tp}): all ranks' weights together"
            yield "tp_share_not_taken", text, bytes_of(changed(tensor_parallel_size=1))
            text = f"one rank's weights taken for the total and divided by TP={tp} again"
            yield "tp_share_taken_twice", text, scaled(bytes_of(setup), Fraction(1, tp))
        if pp > 1:
            yield "all_pipeline_stages", f"the weights of all {pp} pipeline stages", bytes_of(setup, every_stage=True)
        if setup.config.quantization_config is not None or setup.options.quantization:
            yield "quantisation_not_applied", "the weights are not quantised", bytes_of(unquantised())
        if setup.options.dtype not in ("float32", "float"):
            yield (
                "bytes_per_element",
                "4 bytes per parameter (float32) instead of 2",
                bytes_of(changed(dtype="float32")),
            )
        if setup.options.speculative_config:
            yield "drafter_forgotten", "the drafter's weights forgotten", bytes_of(changed(speculative_config=None))
        text = "GB (10^9 bytes) taken where GiB (2^30) is meant"
        yield "gb_for_gib", text, scaled(bytes_of(setup), 1 / GB_PER_GIB)
        yield "gb_for_gib", "GiB taken where GB (10^9) is meant", scaled(bytes_of(setup), GB_PER_GIB)

    found: dict[str, Reading] = {}
    for key, text, bounds in variants():
        known = None if bounds is None else reading(key, text, bounds, (seen.lo, seen.hi))
        if known is not None:
            found.setdefault(key, known)
    return Diagnosis(tuple(found.values()))
