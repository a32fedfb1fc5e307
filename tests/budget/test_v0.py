"""The V0 engine's rules (vllm/config.py, worker/cache_engine.py and worker/worker.py, 0.2 to 0.10.2), and public logs of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.budget import _configs
from tests.conftest import SHARED
from vlogcheck._reading import read
from vlogcheck.budget.flags import options_from_mapping
from vlogcheck.budget.model import load_model_config
from vlogcheck.budget.plan import KVPlan, plan
from vlogcheck.expected import Model
from vlogcheck.observed import observe
from vlogcheck.units import GIB

V0 = {"VLLM_USE_V1": "0"}


def planned(config: dict[str, Any], release: str, available: int = 40 * GIB, **options: Any) -> KVPlan:
    return plan(
        load_model_config(config), options_from_mapping({"max_model_len": 4096, **options}), release=release,
        available=available, env=V0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "release", "width"),
    [
        ("deepseek_v2", "0.5.1", 2 * 16 * 256), ("deepseek_v2", "0.6.4.post1", 2 * 16 * 256),
        ("deepseek_v3", "0.6.6", 2 * 16 * 256), ("deepseek_v3", "0.7.0", 2 * 16 * 192), ("deepseek_v2", "0.7.1", 576),
        ("deepseek_v3", "0.7.2", 640), ("deepseek_v3", "0.7.3", 640), ("deepseek_v3", "0.8.5", 576),
    ],
)  # fmt: skip
def test_latent_attention_was_padded_full_attention_first(model_type: str, release: str, width: int) -> None:
    config = {**_configs.DEEPSEEK_V2_LITE, "model_type": model_type}
    found = planned(config, release)
    size = found.specs[0].spec.block_size
    assert found.num_blocks == 40 * GIB // (27 * size * width * 2)
    assert found.cpu_blocks == 4 * GIB // (27 * size * width * 2)


def test_a_drafter_shares_the_targets_blocks() -> None:
    """Two roundings, and host memory for the target only (`split_num_cache_blocks_evenly`)."""
    config = {**_configs.DEEPSEEK_V2_LITE, "num_nextn_predict_layers": 1, "model_type": "deepseek_v3"}
    drafting = {"method": "mtp", "num_speculative_tokens": 1}
    odd = 40 * GIB + 12345678
    found = planned(config, "0.8.5", odd, speculative_config=drafting)
    target = 27 * found.specs[0].spec.block_size * 576 * 2
    assert found.num_blocks == int(odd // target * target / (target + target // 27))
    assert found.cpu_blocks == 4 * GIB // target


def test_cross_attention_lies_in_the_decoders_own_blocks() -> None:
    whisper = {
        "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": 1280,
        "decoder_layers": 32, "encoder_layers": 32, "decoder_attention_heads": 20, "encoder_attention_heads": 20,
        "num_hidden_layers": 32, "max_target_positions": 448, "max_source_positions": 1500, "vocab_size": 51866,
        "torch_dtype": "float16",
    }  # fmt: skip
    found = planned(whisper, "0.7.3", max_model_len=448)
    assert found.num_blocks == 40 * GIB // (32 * 2 * 16 * 1280 * 2)


LOGS = [("46bca075a5", "Llama-3.1-8B"), ("90dc541099", "Llama-3.1-8B"), ("dcc8cb9281", "Mistral-7B-v0.3")]


@pytest.mark.parametrize(("name", "model"), LOGS)
def test_public_logs_of_the_v0_engine(name: str, model: str) -> None:
    """Blocks of host memory to the block; blocks of the device within the printed memory, where it is printed."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: set VLOGCHECK_SHARED to the folder that holds it")
    known = Model.load(SHARED / "oracle" / "configs" / f"{model}.json")
    for startup in read(SHARED / "corpus" / f"{name}.log").startups:
        engine = observe(startup).engines[0]
        found = known.setup(startup, engine).plan()
        assert found.settings is not None
        assert found.settings.is_v0
        printed = next(r for r in engine.engine.records if type(r).__name__ == "DeviceBlocks")
        assert found.cpu_blocks == printed.cpu_blocks  # type: ignore[attr-defined]
        if engine.available is not None:
            assert found.blocks_interval is not None
            assert found.blocks_interval.lo <= printed.device_blocks <= found.blocks_interval.hi  # type: ignore[attr-defined]
        assert found.pool is not None
        seen = engine.ledger["kv_bytes_per_token"]
        size = max(found.pool.bytes_per_block(stage) for stage in range(found.pool.layers.stages))
        assert seen.lo is not None
        assert seen.hi is not None
        assert seen.lo < size / 16 <= seen.hi


@pytest.mark.parametrize(("release", "size"), [("0.7.1", 16), ("0.7.3", 16), ("0.8.0", 64), ("0.8.5", 64)])
def test_the_latent_kernels_block_came_with_0_8(release: str, size: int) -> None:
    assert planned(_configs.DEEPSEEK_V2_LITE, release).specs[0].spec.block_size == size


JAMBA = {
    "architectures": ["JambaForCausalLM"], "model_type": "jamba", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_period": 8, "attn_layer_offset": 4,
    "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256, "intermediate_size": 14336,
    "vocab_size": 65536, "max_position_embeddings": 262144, "torch_dtype": "bfloat16", "expert_layer_period": 2,
    "expert_layer_offset": 1, "num_experts": 16, "num_experts_per_tok": 2,
}  # fmt: skip


@pytest.mark.parametrize("release", ["0.6.6", "0.8.5", "0.9.1"])
def test_states_lie_outside_the_blocks(release: str) -> None:
    """Four of Jamba's 32 layers attend: the V0 engine's blocks are theirs alone, and V1 did not serve it yet."""
    block = 4 * 2 * 16 * 8 * 128 * 2
    found = plan(
        load_model_config(JAMBA), options_from_mapping({"max_model_len": 4096}), release=release, available=10 * GIB
    )
    assert (found.num_blocks, found.cpu_blocks) == (10 * GIB // block, 4 * GIB // block)
    assert found.settings is not None
    assert found.settings.is_v0
