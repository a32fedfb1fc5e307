"""Random deployments and single mistakes planted in their ledgers, for the tests of the diagnosis.

A mistake is planted in the *inputs* (another configuration, other flags) and the ledger planned from them again, which is another
way than the one the diagnosis takes (it changes the layers of the right ledger). Where no input makes the mistake, the head size
is changed by the same factor.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from vlogcheck.budget.flags import options_from_mapping
from vlogcheck.budget.model import load_model_config
from vlogcheck.diagnose import Case
from vlogcheck.expected import Setup
from vlogcheck.units import GIB, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.budget.pool import Pool

RELEASES = ["0.8.5", "0.9.2", "0.10.2", "0.13.0", "0.16.0", "0.18.1", "0.22.1", "0.26.0", "0.29.0", "0.32.0", "0.33.0"]
LENGTH = 4096
UNIFORM, SLIDING, LATENT, STATES = "uniform", "sliding", "latent", "states"


class Deployment(NamedTuple):
    """A configuration with the flags it is served with."""

    family: str
    config: dict[str, Any]
    options: dict[str, Any]
    release: str
    env: dict[str, str]

    @property
    def tp(self) -> int:
        return int(self.options["tensor_parallel_size"])

    @property
    def pp(self) -> int:
        return int(self.options["pipeline_parallel_size"])

    def but(
        self, *, config: dict[str, Any] | None = None, env: dict[str, str] | None = None, **options: Any
    ) -> Deployment:
        """The same with keys replaced; a key that is None is left out."""
        merged = {k: v for k, v in {**self.config, **(config or {})}.items() if v is not None}
        flags = {k: v for k, v in {**self.options, **options}.items() if v is not None}
        return self._replace(config=merged, options=flags, env={**self.env, **(env or {})})

    def setup(self, memory: Interval | None = None) -> Setup:
        options = options_from_mapping({"max_model_len": LENGTH, **self.options})
        return Setup(load_model_config(self.config), options, self.release, memory, self.env, None, None, True)

    def pool(self) -> Pool:
        plan = self.but(block_size=None).setup().plan() if self.options.get("block_size") == 1 else self.setup().plan()
        assert plan.pool is not None, plan
        return plan.pool

    def case(self, memory: Interval | None = None) -> Case:
        setup = self.setup(memory)
        plan = setup.plan()
        assert plan.pool is not None, plan
        assert plan.settings is not None
        return Case(setup, setup.config, plan.settings, plan.pool.layers, () if memory is None else (memory,))


class Figures(NamedTuple):
    """What somebody computes by hand and states."""

    bytes: Fraction
    """Bytes of one token on the rank that holds most."""
    tokens: int
    requests: Fraction
    blocks: int


def figures(deployment: Deployment, memory: Fraction, *, scale: Fraction = Fraction(1), times: int = 1) -> Figures:
    """Return the figures for so many bytes; `scale` is a factor on the bytes of a token, `times` one on what fits."""
    pool = deployment.pool()
    held = [_cell(deployment) * sum(layer.spec.kind != "MambaSpec" for layer in rank) for rank in pool.ranks]
    sizes = [pool.bytes_per_block(rank) for rank, layers in enumerate(pool.ranks) if layers]
    blocks = min(int(memory / scale) // size for size in sizes)
    first = next(rank for rank, layers in enumerate(pool.ranks) if layers)
    requests = Fraction(blocks, pool.blocks_per_request(LENGTH, first)) * times
    if deployment.options.get("block_size") == 1:  # no kernel takes such blocks; a hand ledger that knows none does
        tokens = int(memory // max(held))
        return Figures(Fraction(max(held)), int(tokens / LENGTH * LENGTH), Fraction(tokens, LENGTH), tokens)
    return Figures(max(held) * scale, pool.printed(blocks, LENGTH)[0] * times, requests, blocks)


def _cell(deployment: Deployment) -> int:
    """Bytes of one token in one attention layer of a rank, by hand."""
    config, element = deployment.config, 1 if deployment.options["kv_cache_dtype"] == "fp8" else 2
    if deployment.family == LATENT and "VLLM_MLA_DISABLE" not in deployment.env:
        return int(config["kv_lora_rank"] + config["qk_rope_head_dim"]) * element
    if deployment.family == LATENT:
        heads, dim = config["num_attention_heads"], config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    else:
        heads, dim = config["num_key_value_heads"], config["head_dim"]
    return int(2 * max(1, heads // deployment.tp) * dim * element)


# Deployments
# -------------------------------------------------------------------------------------------------------------------


@st.composite
def deployments(draw: st.DrawFn, family: str, key: str) -> Deployment:
    """Deployments of a family in which the mistake `key` can be made."""
    tp = draw(st.sampled_from([2, 4, 8] if key in _NEED_TP else [1, 2, 4, 8]))
    pp = draw(st.sampled_from([2, 3, 4] if key in _NEED_PP else [1, 1, 2, 3, 4]))
    release = draw(st.sampled_from(RELEASES))
    options: dict[str, Any] = {
        "tensor_parallel_size": tp, "pipeline_parallel_size": pp,
        "data_parallel_size": draw(st.integers(2, 8)) if key == "all_engines" else draw(st.sampled_from([1, 1, 2])),
        "kv_cache_dtype": draw(st.sampled_from(["auto", "auto", "fp8"])),
    }  # fmt: skip
    make = {UNIFORM: _uniform, SLIDING: _sliding, LATENT: _latent, STATES: _states}[family]
    config, more = make(draw, key, tp, pp)
    if family == STATES:
        release = draw(st.sampled_from(["0.18.1", "0.22.1", "0.26.0", "0.29.0", "0.32.0", "0.33.0"]))
        options["pipeline_parallel_size"] = pp
    elif family == SLIDING:
        release = draw(st.sampled_from([r for r in RELEASES if r not in ("0.8.5", "0.9.2")]))
    if draw(st.booleans()):
        config["quantization_config"] = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    return Deployment(family, {**_COMMON, **config}, {**options, **more}, release, {})


_COMMON = {"vocab_size": 1000, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}
_NEED_TP = frozenset(
    {"tp_share_not_taken", "tp_share_taken_twice", "replication_forgotten", "latent_divided", "whole_model"}
)
_NEED_PP = frozenset({"all_pipeline_stages", "pp_share_taken_twice", "whole_model"})


def _heads(draw: st.DrawFn, key: str, tp: int) -> tuple[int, int, int, int]:
    """Query heads, KV heads, head size and hidden size: GQA, MHA or MQA."""
    kv = draw(st.sampled_from([1, 2, 4] if key == "replication_forgotten" else [1, 2, 4, 8, 16, 32]))
    if key == "replication_forgotten":
        kv = min(kv, tp // 2)
    group = draw(st.sampled_from([2, 3, 4, 5, 7, 8, 16] if key == "attention_heads" else [1, 1, 2, 4, 7, 8]))
    heads = kv * group
    heads *= tp // gcd(heads, tp)
    dim, other = draw(st.sampled_from([(64, 80), (96, 64), (128, 64), (128, 80), (192, 128), (256, 160)]))
    if key != "head_dim_from_hidden" and draw(st.booleans()):
        other = dim
    return heads, kv, dim, heads * other


def _uniform(draw: st.DrawFn, key: str, tp: int, pp: int) -> tuple[dict[str, Any], dict[str, Any]]:
    heads, kv, dim, hidden = _heads(draw, key, tp)
    return {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": draw(st.integers(2 * pp, 48)),
        "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dim,
        "intermediate_size": 4 * hidden,
    }, {}  # fmt: skip


def _sliding(draw: st.DrawFn, key: str, tp: int, pp: int) -> tuple[dict[str, Any], dict[str, Any]]:
    heads, kv, dim, hidden = _heads(draw, key, tp)
    period = draw(st.sampled_from([2, 2, 4, 6]))
    layers = period * pp * draw(st.integers(1, 4))
    kinds = (["sliding_attention"] * (period - 1) + ["full_attention"]) * (layers // period)
    return {
        "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": layers,
        "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dim,
        "sliding_window": draw(st.sampled_from([128, 512, 1024])), "layer_types": kinds, "intermediate_size": 2880,
    }, {"max_num_batched_tokens": draw(st.sampled_from([1024, 2048]))}  # fmt: skip


def _latent(draw: st.DrawFn, key: str, tp: int, pp: int) -> tuple[dict[str, Any], dict[str, Any]]:
    drafted = key == "drafter_forgotten" or draw(st.booleans())
    heads = tp * draw(st.sampled_from([2, 4, 16]))
    config = {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 2048,
        "num_hidden_layers": draw(st.integers(2 * pp, 62)), "num_attention_heads": heads, "num_key_value_heads": heads,
        "kv_lora_rank": draw(st.sampled_from([256, 512])), "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128, "num_nextn_predict_layers": 1,
    }  # fmt: skip
    return config, {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}} if drafted else {}


def _states(draw: st.DrawFn, key: str, tp: int, pp: int) -> tuple[dict[str, Any], dict[str, Any]]:
    heads, kv, dim, hidden = _heads(draw, key, tp)
    interval = draw(st.sampled_from([2, 4]))
    layers = interval * pp * draw(st.integers(1, 4))
    kinds = (["linear_attention"] * (interval - 1) + ["full_attention"]) * (layers // interval)
    return {
        "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "num_hidden_layers": layers,
        "layer_types": kinds, "full_attention_interval": interval, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv, "head_dim": dim, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "intermediate_size": 5120,
    }, {}  # fmt: skip


# Mistakes
# -------------------------------------------------------------------------------------------------------------------

Plant = tuple[Deployment, Fraction, int]
"""The wrong inputs, what else the bytes of a token are multiplied by, and what else that fits."""

_ONE = Fraction(1)


def _thinner(d: Deployment, factor: Fraction) -> Plant:
    """A ledger with another head size, or latent: the mistake is a factor of it."""
    names = ("kv_lora_rank", "qk_rope_head_dim") if d.family == LATENT else ("head_dim",)
    sizes = {name: d.config[name] * factor for name in names}
    if any(size.denominator > 1 for size in sizes.values()):
        return d, factor, 1
    return d.but(config={name: int(size) for name, size in sizes.items()}), _ONE, 1


def _full_only(d: Deployment) -> Plant:
    """Only the full-attention layers, each on the pipeline stage it is on."""
    pool = d.pool()
    counts = [sum(layer.spec.kind == "FullAttentionSpec" for layer in rank) for rank in pool.ranks]
    kinds = ["full_attention"] * sum(counts)
    env = {"VLLM_PP_LAYER_PARTITION": ",".join(map(str, counts))} if d.pp > 1 else {}
    return d.but(config={"layer_types": kinds, "num_hidden_layers": len(kinds)}, env=env), _ONE, 1


def _all_full(d: Deployment) -> Plant:
    kinds = ["full_attention"] * d.config["num_hidden_layers"]
    return d.but(config={"layer_types": kinds, "full_attention_interval": 1 if d.family == STATES else None}), _ONE, 1


def _inputs(**options: Any) -> Callable[[Deployment], Plant]:
    return lambda d: (d.but(**options), _ONE, 1)


PLANTS: dict[str, tuple[tuple[str, ...], Callable[[Deployment], Plant]]] = {
    "tp_share_not_taken": ((UNIFORM, SLIDING, STATES), _inputs(tensor_parallel_size=1)),
    "bytes_per_element": (
        (UNIFORM, SLIDING, LATENT, STATES),
        lambda d: (d.but(kv_cache_dtype="auto" if d.options["kv_cache_dtype"] == "fp8" else "fp8"), _ONE, 1),
    ),
    "attention_heads": (
        (UNIFORM, SLIDING, STATES),
        lambda d: (d.but(config={"num_key_value_heads": d.config["num_attention_heads"]}), _ONE, 1),
    ),
    "kv_counted_once": ((UNIFORM, SLIDING, STATES), lambda d: _thinner(d, Fraction(1, 2))),
    "head_dim_from_hidden": (
        (UNIFORM, SLIDING, STATES),
        lambda d: (d.but(config={"head_dim": d.config["hidden_size"] // d.config["num_attention_heads"]}), _ONE, 1),
    ),
    "all_pipeline_stages": ((UNIFORM, SLIDING, LATENT, STATES), _inputs(pipeline_parallel_size=1)),
    "whole_model": ((UNIFORM, SLIDING, STATES), _inputs(tensor_parallel_size=1, pipeline_parallel_size=1)),
    "tp_share_taken_twice": ((UNIFORM, SLIDING, STATES), lambda d: _thinner(d, Fraction(1, d.tp))),
    "pp_share_taken_twice": ((UNIFORM, SLIDING, LATENT, STATES), lambda d: _thinner(d, Fraction(1, d.pp))),
    "replication_forgotten": (
        (UNIFORM, SLIDING, STATES), lambda d: _thinner(d, Fraction(d.config["num_key_value_heads"], d.tp)),
    ),
    "local_layers_as_full": ((SLIDING,), _all_full),
    "local_layers_left_out": ((SLIDING,), _full_only),
    "latent_as_k_and_v": ((LATENT,), lambda d: _thinner(d, Fraction(2))),
    "latent_as_full_attention": ((LATENT,), lambda d: (d.but(env={"VLLM_MLA_DISABLE": "1"}), _ONE, 1)),
    "latent_divided": ((LATENT,), lambda d: _thinner(d, Fraction(1, d.tp))),
    "states_as_full_attention": ((STATES,), _all_full),
    "drafter_forgotten": ((LATENT,), _inputs(speculative_config=None)),
    "gb_for_gib": ((UNIFORM, SLIDING, LATENT, STATES), lambda d: (d, Fraction(GIB, 10**9), 1)),
    "block_rounding": ((UNIFORM, LATENT), _inputs(block_size=1)),
    "all_engines": ((UNIFORM, SLIDING, LATENT, STATES), lambda d: (d, _ONE, d.options["data_parallel_size"])),
}  # fmt: skip
"""For every mistake of the registry: the families it can be made in, and how."""


def planted(d: Deployment, key: str) -> Plant:
    """Return the wrong inputs."""
    return PLANTS[key][1](d)
