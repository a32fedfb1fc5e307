"""Every mistake of the registry, planted in random deployments: the diagnosis names it, or lists it among three at most."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._planted import LENGTH, PLANTS, STATES, Deployment, deployments, figures, planted
from vlogcheck.diagnose import (
    MISTAKES,
    Diagnosis,
    Evidence,
    diagnose_bytes_per_token,
    diagnose_concurrency,
    diagnose_stated_bytes,
    diagnose_tokens,
)
from vlogcheck.diagnose._result import _TERMS
from vlogcheck.diagnose.quantities import SLIPS
from vlogcheck.units import GIB, Interval

if TYPE_CHECKING:
    from vlogcheck.diagnose._case import Bounds

PAIRS = [(key, family) for key, (families, _) in PLANTS.items() for family in families]


def named(diagnosis: Diagnosis, key: str, told: Bounds) -> None:
    """The mistake is among three candidates at most, each reading of which gives the figure, and is said in words."""
    assert key in diagnosis.keys, diagnosis.text
    assert len(diagnosis.candidates) <= 3
    for reading in diagnosis.readings:
        assert reading.lo <= told[1]
        assert told[0] <= reading.hi
        assert reading.text in diagnosis.text
    if len(diagnosis.readings) == 1:
        assert diagnosis.unique is not None
        assert diagnosis.text.startswith("explained by one changed term")


def outside(told: Bounds, right: Bounds | None) -> bool:
    """Whether the right ledger does not give the figure: else it needs no explanation."""
    assert right is not None
    return told[1] < right[0] or right[1] < told[0]


@pytest.mark.parametrize(("key", "family"), PAIRS)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), blocks=st.integers(200, 200_000), part=st.fractions(0, 1, max_denominator=1000))
def test_a_planted_mistake_is_named(key: str, family: str, data: st.DataObject, blocks: int, part: Fraction) -> None:
    """Stated bytes per token, tokens and requests, exact or cut to whole requests, of a printed amount of memory."""
    right = data.draw(deployments(family, key))
    wrong, scale, times = planted(right, key)
    sizes = [pool.bytes_per_block(rank) for pool in (right.pool(), wrong.pool()) for rank in range(len(pool.ranks))]
    memory = Interval(max(sizes) * blocks, max(sizes) * blocks + GIB // 100)  # as `X.XX GiB` tells it
    told = figures(wrong, memory.lo + part * (memory.hi - memory.lo), scale=scale, times=times)
    case = right.case(memory)
    unchanged = case.bytes_per_token(case.unchanged)
    told_bytes = unchanged * Fraction(1024, 1000) if key == "gb_for_gib" else told.bytes
    if told_bytes != unchanged:
        named(diagnose_bytes_per_token(case, (told_bytes, told_bytes)), key, (told_bytes, told_bytes))
    tokens = told.tokens, told.tokens
    if outside(tokens, case.tokens(case.unchanged, LENGTH)):
        named(diagnose_tokens(case, tokens, LENGTH), key, tokens)
    whole = Fraction(int(told.requests))
    for requests in ((told.requests, told.requests), (whole, whole + Fraction(999, 1000))):
        if outside(requests, case.concurrency(case.unchanged, LENGTH)):
            named(diagnose_concurrency(case, requests, LENGTH), key, requests)


NOT_OF_A_SHARE = ("bytes_per_element", "attention_heads", "kv_counted_once", "head_dim_from_hidden", "gb_for_gib")


@pytest.mark.parametrize(("key", "family"), [pair for pair in PAIRS if pair[0] in NOT_OF_A_SHARE])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_mistake_in_the_whole_models_bytes_is_named(key: str, family: str, data: st.DataObject) -> None:
    served = data.draw(deployments(family, key))
    whole = served.but(tensor_parallel_size=1, pipeline_parallel_size=1)
    wrong, scale, _ = planted(whole, key)
    told = figures(wrong, Fraction(0), scale=Fraction(1024, 1000) if key == "gb_for_gib" else scale).bytes
    case = served.case()
    if told not in (case.bytes_per_token(case.unchanged), figures(whole, Fraction(0)).bytes):
        named(diagnose_stated_bytes(case, (told, told)), key, (told, told))


def can_be_made(served: Deployment) -> set[str]:
    """The mistakes that are possible in a deployment."""
    config, family = served.config, served.family
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    explicit = "head_dim" in config and config["head_dim"] != config["hidden_size"] // heads
    rules = {
        "tp_share_not_taken": served.tp > 1 and family != "latent" and (kv > 1 or family == STATES),
        "tp_share_taken_twice": served.tp > 1 and family != "latent",
        "replication_forgotten": served.tp > kv and family != "latent",
        "whole_model": served.tp > 1 and served.pp > 1 and family != "latent",
        "all_pipeline_stages": served.pp > 1,
        "pp_share_taken_twice": served.pp > 1,
        "attention_heads": heads > kv and family != "latent",
        "head_dim_from_hidden": explicit,
        "kv_counted_once": family != "latent",
        "latent_divided": served.tp > 1 and family == "latent",
        "latent_as_k_and_v": family == "latent",
        "latent_as_full_attention": family == "latent",
        "local_layers_as_full": family == "sliding",
        "local_layers_left_out": family == "sliding",
        "states_as_full_attention": family == STATES,
        "drafter_forgotten": "speculative_config" in served.options,
        "all_engines": served.options["data_parallel_size"] > 1,
    }
    return {key for key in MISTAKES if rules.get(key, True)}


@pytest.mark.parametrize("family", ["uniform", "sliding", "latent", "states"])
@settings(max_examples=15, deadline=None)
@given(
    data=st.data(),
    ratio=st.sampled_from([Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(2), Fraction(4), Fraction(8)]),
)
def test_what_cannot_be_made_in_a_ledger_explains_nothing(family: str, data: st.DataObject, ratio: Fraction) -> None:
    served = data.draw(deployments(family, ""))
    memory = Interval(40 * GIB, 40 * GIB + GIB // 100)
    case = served.case(memory)
    right = case.concurrency(case.unchanged, LENGTH)
    assert right is not None
    told = right[0] * ratio, right[1] * ratio
    assert set(diagnose_concurrency(case, told, LENGTH).keys) <= can_be_made(served)
    size = case.bytes_per_token(case.unchanged) * ratio
    assert set(diagnose_bytes_per_token(case, (size, size)).keys) <= can_be_made(served)


def test_every_mistake_is_planted_and_about_a_term() -> None:
    assert set(PLANTS) == set(MISTAKES)
    assert set(MISTAKES) <= set(_TERMS)
    assert len({term[0] for term in _TERMS.values()}) == 3


@settings(max_examples=20, deadline=None)
@given(data=st.data(), family=st.sampled_from(["uniform", "sliding", "latent", "states"]))
def test_what_was_stated_beside_it_tells_engines_from_terms(family: str, data: st.DataObject) -> None:
    """Tokens of all engines beside the right bytes per token: no mistake in the bytes gives both."""
    served = data.draw(deployments(family, "all_engines"))
    memory = Interval(60 * GIB, 60 * GIB + GIB // 100)
    told = figures(served, Fraction(memory.lo), times=served.options["data_parallel_size"]).tokens
    case = served.case(memory)
    right = case.bytes_per_token(case.unchanged)
    found = diagnose_tokens(case, (told, told), LENGTH, Evidence(bytes_told=(right, right)))
    assert "all_engines" in found.keys
    assert not {"kv_counted_once", "bytes_per_element", "attention_heads", "tp_share_taken_twice"} & set(found.keys)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), family=st.sampled_from(["uniform", "sliding", "states"]))
def test_a_server_makes_no_slip_of_arithmetic(family: str, data: st.DataObject) -> None:
    """Half the bytes in the log itself: another type, or another share; never K or V forgotten."""
    served = data.draw(deployments(family, "bytes_per_element"))
    wrong, _, _ = planted(served, "bytes_per_element")
    told = figures(wrong, Fraction(0)).bytes
    found = diagnose_bytes_per_token(served.case(), (told, told), Evidence(printed=True))
    named(found, "bytes_per_element", (told, told))
    assert not SLIPS & set(found.keys)
